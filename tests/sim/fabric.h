// The fabric: which addresses are on the NIC of which machine. And each server's way to the cloud
// that changes it, which is slow, fails, answers late, and lists what was.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ipam-server/cloud/cloud.h"
#include "tests/sim/process.h"
#include "tests/sim/schedule.h"
#include "tests/sim/trace.h"

namespace spoke::sim {

// Not thread-safe.
class Fabric {
 public:
  // Called with what has left a NIC, once it has.
  using OnDetached = std::function<void(const std::string& vm, const ip::Prefix& range)>;
  void Watch(OnDetached on_detached) { on_detached_ = std::move(on_detached); }

  void AddVm(const ipam::NodeKey& node, const ip::MacAddress& mac);
  void RemoveVm(const std::string& vm);
  bool Has(const std::string& vm, const ip::Address& address) const;
  bool Exists(const std::string& vm) const { return nics_.contains(vm); }

  // Makes the NIC hold what is desired, but for addresses that another NIC has. `order`: an
  // operation is refused once a later one has been carried out there, as by its ETag. Errors:
  // kNotFound (no such VM), kAborted (too late).
  absl::StatusOr<ipam::NicAddresses> Apply(const ipam::NicRequest& desired, uint64_t order);
  uint64_t NextOrder() { return ++last_order_; }
  std::vector<ipam::NicAddresses> List() const;
  const ipam::NicAddresses* Find(const std::string& vm) const;
  // Another writer than ours makes the NIC hold `configurations`, but for addresses that another
  // NIC has. Our operations that are under way there are refused. Nobody is called. Returns what
  // has left the NIC.
  std::vector<ip::Prefix> Overwrite(const std::string& vm,
                                    std::vector<ipam::IpConfiguration> configurations);

 private:
  struct Nic {
    ipam::NicAddresses holds;
    uint64_t order = 0;
  };
  std::vector<ip::Prefix> Replace(const std::string& vm, std::vector<ipam::IpConfiguration> next);

  std::map<std::string, Nic> nics_;  // Keyed by VM id.
  // The VM, keyed by first address.
  absl::flat_hash_map<ip::Address, std::string, ip::AddressHash> holders_;
  uint64_t last_order_ = 0;
  OnDetached on_detached_;
};

// What may go wrong with the cloud at present.
struct CloudFaults {
  absl::Duration least = absl::Milliseconds(200);  // How long an operation takes.
  absl::Duration most = absl::Seconds(3);
  double refused = 0;         // The share of operations that fail and change nothing.
  double answers_lost = 0;    // The share that are carried out and answer with an error.
  double listings_stale = 0;  // The share of listings that show what was a minute ago.
  double listings_failed = 0;
};

// The client of one server. It takes what addresses the server has chosen.
class SimCloud final : public ipam::Cloud {
 public:
  struct Edges {
    Fabric& fabric;
    Schedule& schedule;
    Life& life;
    const CloudFaults& faults;
    Random& random;
    Trace& trace;
    // Whether nobody else can lead: only then anything is written.
    std::function<bool()> leads;
  };
  SimCloud(const Edges& edges, ipam::CloudAnswer answer)
      : edges_(edges), answer_(std::move(answer)), alive_(std::make_shared<bool>(true)) {}
  ~SimCloud() override { *alive_ = false; }

  void Request(ipam::NicRequest desired) override;
  std::optional<ipam::CloudForecast> ForecastOf(const ipam::NodeKey& node) const override;
  void List(ipam::CloudListed listed) override;
  absl::Duration listing_period() const override { return absl::Seconds(60); }
  std::string Describe() const override { return "simulated"; }
  void Stop() override { *alive_ = false; }

 private:
  void Send(ipam::NicRequest desired);
  void Finish(const ipam::NodeKey& node, absl::StatusOr<ipam::NicAddresses> result);

  const Edges edges_;
  const ipam::CloudAnswer answer_;
  const std::shared_ptr<bool> alive_;  // Shared with operations that outlive the process.
  std::set<ipam::NodeKey> under_way_;
  std::map<ipam::NodeKey, ipam::NicRequest> waiting_;
};

}  // namespace spoke::sim
