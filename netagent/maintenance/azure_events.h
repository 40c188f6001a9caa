// Azure's Scheduled Events, asked for over HTTP.
//
// Microsoft's "Azure Metadata Service: Scheduled Events for Linux VMs": the first call enables the
// service for the machine and may take two minutes; it is disabled again when nobody has called for
// a day. The header "Metadata: true" and no proxy, as for all of the metadata service, whose five
// requests a second this one shares.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/http/transport.h"
#include "netagent/maintenance/maintenance_source.h"

namespace spoke::netagent {

class AzureEvents final : public MaintenanceSource {
 public:
  static constexpr absl::Duration kFirstTimeout = absl::Seconds(130);
  static constexpr absl::Duration kTimeout = absl::Seconds(10);

  // `url` is "http://169.254.169.254", `self` the machine's name there, such as "pool_7".
  AzureEvents(std::string url, std::string self, std::unique_ptr<http::Transport> transport);

  absl::StatusOr<node_api::Maintenance> Read() override;
  absl::Status Begin(const std::vector<std::string>& events) override;
  void Interrupt() override;

 private:
  absl::StatusOr<std::string> Ask(http::Request request);

  const std::string url_;
  const std::string self_;
  const std::unique_ptr<http::Transport> transport_;
  std::atomic<bool> interrupted_{false};
  uint64_t last_call_ = 0;
  bool answered_ = false;
};

}  // namespace spoke::netagent
