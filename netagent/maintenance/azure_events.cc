#include "netagent/maintenance/azure_events.h"

#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/maintenance/scheduled_events.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kPath = "/metadata/scheduledevents?api-version=2020-07-01";
constexpr absl::Duration kLook = absl::Seconds(1);  // How often it looks whether it is interrupted.
constexpr size_t kShownBytes = 200;                 // The part of an error's body.

}  // namespace

AzureEvents::AzureEvents(std::string url, std::string self,
                         std::unique_ptr<http::Transport> transport)
    : url_(std::move(url)), self_(std::move(self)), transport_(std::move(transport)) {}

absl::StatusOr<std::string> AzureEvents::Ask(http::Request request) {
  const std::string url = request.url;
  request.headers = {{"Metadata", "true"}};
  const uint64_t id = ++last_call_;
  transport_->Send(id, std::move(request), answered_ ? kTimeout : kFirstTimeout);
  while (!interrupted_) {
    for (http::Completion& completion : transport_->Wait(kLook)) {
      if (completion.id != id) continue;
      if (!completion.response.ok()) {
        return absl::UnavailableError(
            fmt::format("{}: {}", url, base::MessageOf(completion.response.status())));
      }
      http::Response& response = *completion.response;
      if (response.status == 200) {
        answered_ = true;
        return std::move(response.body);
      }
      const std::string answer =
          fmt::format("{}: HTTP {} {}", url, response.status, response.body.substr(0, kShownBytes));
      const bool passes =
          response.status == 410 || response.status == 429 || response.status >= 500;
      return passes ? absl::UnavailableError(answer) : absl::FailedPreconditionError(answer);
    }
  }
  return absl::CancelledError("interrupted");
}

absl::StatusOr<node_api::Maintenance> AzureEvents::Read() {
  const std::string url = fmt::format("{}{}", url_, kPath);
  ASSIGN_OR_RETURN(const std::string text, Ask({.url = url}));
  auto maintenance = ParseScheduledEvents(text, self_);
  if (!maintenance.ok()) return base::Annotate(maintenance.status(), url);
  return maintenance;
}

absl::Status AzureEvents::Begin(const std::vector<std::string>& events) {
  return Ask({.method = "POST",
              .url = fmt::format("{}{}", url_, kPath),
              .body = StartRequestsOf(events)})
      .status();
}

void AzureEvents::Interrupt() {
  interrupted_ = true;
  transport_->Wake();
}

}  // namespace spoke::netagent
