#include "lib/daemon/served_health.h"

#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace spoke::daemon {
namespace {

telemetry::TextPage PageOf(const rpc::Reasons& reasons) {
  if (reasons.empty()) return {.body = "ok\n"};
  return {.status = telemetry::TextPage::Status::kServiceUnavailable,
          .body = fmt::format("{}\n", fmt::join(reasons, "\n"))};
}

}  // namespace

rpc::Reasons StuckLoops(const std::vector<std::string>& names,
                        const std::vector<absl::Duration>& silences, absl::Duration longest) {
  rpc::Reasons reasons;
  for (size_t i = 0; i < names.size(); ++i) {
    if (silences[i] <= longest) continue;
    reasons.push_back(
        fmt::format("{} has not turned for {}: it is stuck; a restart loses nothing", names[i],
                    absl::FormatDuration(absl::Trunc(silences[i], absl::Seconds(1)))));
  }
  return reasons;
}

ServedHealth::ServedHealth(HealthSettings settings, telemetry::Log& log)
    : log_(log), heartbeats_(std::make_shared<std::vector<os::Heartbeat>>(settings.loops.size())) {
  const auto liveness = [heartbeats = heartbeats_, names = settings.loops,
                         longest = settings.longest_silence] {
    std::vector<absl::Duration> silences;
    for (const os::Heartbeat& heartbeat : *heartbeats) silences.push_back(heartbeat.SilentFor());
    return StuckLoops(names, silences, longest);
  };
  if (!settings.address.empty()) {
    auto service = rpc::HealthService::Listen(
        {.address = settings.address, .not_ready = said_, .liveness = liveness});
    Keep(settings.address, std::move(service), service_);
  }
  if (!settings.http.empty()) {
    const auto readiness = [this] {
      const absl::MutexLock lock(&mutex_);
      return said_;
    };
    auto endpoint = telemetry::TextEndpoint::Open(
        {.address = settings.http}, {{"/livez", [liveness] { return PageOf(liveness()); }},
                                     {"/readyz", [readiness] { return PageOf(readiness()); }}});
    Keep(settings.http, std::move(endpoint), http_);
  }
}

template <typename Served>
void ServedHealth::Keep(const std::string& address, absl::StatusOr<Served> opened, Served& to) {
  if (opened.ok()) {
    to = *std::move(opened);
  } else {
    log_.Warn("health_not_served", {{"address", address}, {"error", opened.status()}});
  }
}

void ServedHealth::Say(rpc::Reasons not_ready) {
  const absl::MutexLock lock(&mutex_);
  if (said_any_ && said_ == not_ready) return;
  said_any_ = true;
  if (not_ready.empty()) {
    log_.Info("ready", {});
  } else {
    log_.Info("not_ready", {{"reasons", fmt::format("{}", fmt::join(not_ready, " | "))}});
  }
  said_ = not_ready;
  if (service_ != nullptr) service_->SetReadiness(std::move(not_ready));
}

}  // namespace spoke::daemon
