#include "netagent/azure/imds.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent::azure {
namespace {

// The oldest version whose document has all that is read here; every region has it.
constexpr std::string_view kInstancePath = "/metadata/instance?api-version=2021-02-01&format=json";
constexpr absl::Duration kPace = absl::Milliseconds(200);
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLongestPause = absl::Seconds(10);
constexpr size_t kShownBytes = 200;  // The part of an error's body.

bool IsWorthAnother(int status) { return status == 410 || status == 429 || status >= 500; }

http::Request InstanceRequest(const std::string& url) {
  return {.url = fmt::format("{}{}", url, kInstancePath), .headers = {{"Metadata", "true"}}};
}

// Makes one request. kUnavailable: another may work.
absl::StatusOr<std::string> Ask(const Fetch& fetch, const http::Request& request) {
  auto response = fetch(request, kImdsTimeout);
  if (!response.ok()) {
    const bool passes =
        absl::IsUnavailable(response.status()) || absl::IsDeadlineExceeded(response.status());
    return absl::Status(
        passes ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition,
        response.status().message());
  }
  if (response->status == 200) return std::move(response->body);
  const std::string answer =
      fmt::format("HTTP {} {}", response->status, response->body.substr(0, kShownBytes));
  if (IsWorthAnother(response->status)) return absl::UnavailableError(answer);
  return absl::FailedPreconditionError(answer);
}

}  // namespace

absl::StatusOr<std::set<ip::Address>> ReadImdsIpv6(const std::string& url, const Fetch& fetch) {
  const http::Request request = InstanceRequest(url);
  const auto text = Ask(fetch, request);
  if (!text.ok()) return base::Annotate(text.status(), request.url);
  const auto instance = ParseImdsInstance(*text);
  if (!instance.ok()) return base::Annotate(instance.status(), request.url);
  std::set<ip::Address> listed;
  for (const ImdsNic& nic : instance->nics) {
    for (const ip::Address& address : nic.addresses) {
      if (!address.is_v4()) listed.insert(address);
    }
  }
  return listed;
}

Imds::Imds(std::string url, Fetch fetch, const os::Clock& clock, Sleep sleep)
    : url_(std::move(url)), fetch_(std::move(fetch)), clock_(clock), sleep_(std::move(sleep)) {}

void Imds::KeepPace() {
  const absl::Time next = last_request_ + kPace;
  if (const absl::Time now = clock_.Now(); next > now) sleep_(next - now);
  last_request_ = clock_.Now();
}

absl::StatusOr<ImdsReading> Imds::ReadInstance() {
  const http::Request request = InstanceRequest(url_);
  const absl::Time give_up = clock_.Now() + kImdsPatience;
  absl::Duration pause = kFirstPause;
  while (true) {
    KeepPace();
    auto text = Ask(fetch_, request);
    if (text.ok()) {
      auto instance = ParseImdsInstance(*text);
      if (!instance.ok()) return base::Annotate(instance.status(), request.url);
      return ImdsReading{*std::move(instance), *std::move(text)};
    }
    if (!absl::IsUnavailable(text.status()) || clock_.Now() + pause > give_up) {
      return base::Annotate(text.status(), request.url);
    }
    sleep_(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace spoke::netagent::azure
