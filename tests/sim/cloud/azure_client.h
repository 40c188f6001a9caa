// The server's real client of Azure in one process of a simulated server: its messages take their
// time both ways, and arrive though who has sent them is dead by then.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ipam-server/cloud/azure/azure_state.h"
#include "ipam-server/cloud/cloud.h"
#include "lib/http/message.h"
#include "tests/sim/cloud/provider.h"

namespace spoke::sim {

// Not thread-safe.
class AzureClient final : public ipam::Cloud {
 public:
  struct Edges {
    Schedule& schedule;
    Trace& trace;
    Provider::Client client;
    bool blocks = false;  // Whether NICs may have blocks.
    // What Azure answers to a request that arrives now.
    std::function<http::Response(http::Request request, const std::string& principal)> handle;
  };

  // Borrows what is in `edges`. `scale_set`: the id of the one whose machines it looks after.
  AzureClient(Edges edges, const std::string& scale_set, ipam::CloudAnswer answer);

  void Request(ipam::NicRequest desired) override;
  std::optional<ipam::CloudForecast> ForecastOf(const ipam::NodeKey& node) const override;
  void List(ipam::CloudListed listed) override;
  absl::Duration listing_period() const override { return absl::Seconds(60); }
  bool ChoosesAddresses() const override { return true; }
  std::string Describe() const override { return "simulated Azure"; }
  void Stop() override { alive_.reset(); }

 private:
  absl::Time Now() const { return edges_.client.clock.Now(); }
  void WorkSoon();
  void WorkAt(absl::Time at);
  void Work();
  void Send(ipam::azure::MachineCall call);
  void Receive(uint64_t call, const absl::StatusOr<http::Response>& response);
  void HandOver();

  const Edges edges_;
  const ipam::CloudAnswer answer_;
  // Asking for a forecast brings its table up to date.
  mutable ipam::azure::AzureState state_;
  std::deque<ipam::CloudListed> listings_;  // Who waits, in order.
  absl::Time next_work_ = absl::InfiniteFuture();
  // What is on the schedule for this process does nothing once it is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace spoke::sim
