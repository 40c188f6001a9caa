// Any HTTP transport, with its calls counted and timed as calls to the cloud.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/http/transport.h"
#include "lib/os/clock.h"

namespace spoke::ipam {

// It is as thread-safe as Transport. It borrows all but the transport.
class CountedTransport final : public http::Transport {
 public:
  CountedTransport(std::unique_ptr<http::Transport> transport, ServerMetrics& metrics,
                   const os::Clock& clock)
      : transport_(std::move(transport)), metrics_(metrics), clock_(clock) {}

  void Send(uint64_t id, http::Request request, absl::Duration timeout) override {
    sent_[id] = clock_.Now();
    transport_->Send(id, std::move(request), timeout);
  }
  std::vector<http::Completion> Wait(absl::Duration wait) override {
    std::vector<http::Completion> completions = transport_->Wait(wait);
    for (const http::Completion& completion : completions) {
      const auto sent = sent_.extract(completion.id);
      if (sent.empty()) continue;
      metrics_.CountCloudCall(CloudCall::kHttp, ResultOf(completion.response),
                              clock_.Now() - sent.mapped());
    }
    return completions;
  }
  void Wake() override { transport_->Wake(); }

  // What a response means, as far as its status says.
  static absl::Status ResultOf(const absl::StatusOr<http::Response>& response) {
    if (!response.ok()) return absl::UnavailableError(response.status().message());
    const int status = response->status;
    if (status < 400) return absl::OkStatus();
    if (status == 429) return absl::ResourceExhaustedError("throttled");
    if (status == 401 || status == 403) return absl::PermissionDeniedError("denied");
    if (status >= 500) return absl::UnavailableError("server error");
    return absl::UnknownError("refused");
  }

 private:
  std::unique_ptr<http::Transport> transport_;
  ServerMetrics& metrics_;
  const os::Clock& clock_;
  absl::flat_hash_map<uint64_t, absl::Time> sent_;
};

}  // namespace spoke::ipam
