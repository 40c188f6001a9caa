#include "ipam-server/cloud/azure/token_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace spoke::ipam::azure {
namespace {

// Includes 404 while the identity is being updated, and 410 while the metadata service is.
bool MayPass(int status) {
  return status == 404 || status == 408 || status == 410 || status == 429 || status >= 500;
}

const std::string& FileOf(const Identity& identity) {
  return identity.kind == Identity::Kind::kWorkload ? identity.token_file : identity.secret_file;
}

}  // namespace

TokenSource::TokenSource(Identity identity, Endpoints endpoints)
    : identity_(std::move(identity)), endpoints_(std::move(endpoints)) {}

absl::StatusOr<std::string> TokenSource::TokenAt(absl::Time now) const {
  if (token_ && now < token_->expires && !rejected_) return token_->text;
  std::string why = "it is being asked for";
  if (!last_error_.ok()) {
    why = std::string(base::MessageOf(last_error_));
  } else if (rejected_) {
    why = "Azure refused the last one, and a new one is being asked for";
  }
  return absl::UnavailableError(fmt::format("no token for {}: {}", Describe(identity_), why));
}

absl::Time TokenSource::NextRequest() const { return under_way_ ? absl::InfiniteFuture() : next_; }

absl::StatusOr<http::Request> TokenSource::Start(absl::Time now, const FileReader& read) {
  std::string credential;
  if (identity_.kind != Identity::Kind::kManaged) {
    // The file is read each time: Kubernetes replaces it before what is in it expires.
    auto text = read(FileOf(identity_));
    if (!text.ok()) return Fail(text.status(), now);
    credential = *std::move(text);
  }
  auto request = BuildTokenRequest(identity_, endpoints_, credential);
  if (!request.ok()) return Fail(request.status(), now);
  under_way_ = true;
  return request;
}

absl::Status TokenSource::Finish(const absl::StatusOr<http::Response>& response, absl::Time now) {
  under_way_ = false;
  if (!response.ok()) return Retry(response.status(), absl::ZeroDuration(), now);
  if (response->status != 200) {
    const auto status = absl::UnavailableError(DescribeTokenError(*response));
    if (!MayPass(response->status)) return Fail(status, now);
    const absl::Duration asked =
        http::RetryAfter(response->headers, now).value_or(absl::ZeroDuration());
    return Retry(status, std::min(asked, kMaxTokenWait), now);
  }
  auto token = DecodeToken(*response, now);
  if (!token.ok()) return Retry(token.status(), absl::ZeroDuration(), now);
  token_ = *std::move(token);
  next_ = token_->refresh;
  rejected_ = false;
  retries_ = 0;
  last_error_ = absl::OkStatus();
  return absl::OkStatus();
}

void TokenSource::Reject(std::string_view token, absl::Time now) {
  // Answers of calls with the last token come in after the new one is there.
  if (!token_ || token_->text != token || now - last_reject_ < kMinRejectInterval) return;
  last_reject_ = now;
  rejected_ = true;
  next_ = now;
  retries_ = 0;
}

absl::Status TokenSource::Retry(const absl::Status& status, absl::Duration at_least,
                                absl::Time now) {
  if (retries_ >= kTokenRetryDelays.size()) {
    const absl::Status failed = Fail(status, now);
    next_ = std::max(next_, now + at_least);
    return failed;
  }
  next_ = now + std::max(kTokenRetryDelays[retries_], at_least);
  ++retries_;
  last_error_ = status;
  return base::Annotate(status, fmt::format("token for {}", Describe(identity_)));
}

absl::Status TokenSource::Fail(const absl::Status& status, absl::Time now) {
  // No better one is to be had soon: perhaps it was not the token's fault.
  rejected_ = false;
  retries_ = 0;
  next_ = now + kTokenRest;
  last_error_ = status;
  return base::Annotate(status, fmt::format("token for {}", Describe(identity_)));
}

}  // namespace spoke::ipam::azure
