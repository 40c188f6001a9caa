#include "tests/sim/cloud/plain_provider.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/sim/mutant.h"

namespace spoke::sim {
namespace {

// The client of one server. It takes what addresses the server has chosen.
class PlainClient final : public ipam::Cloud {
 public:
  PlainClient(const Provider::Edges& edges, Provider::Client client, ipam::CloudAnswer answer)
      : edges_(edges),
        client_(std::move(client)),
        answer_(std::move(answer)),
        alive_(std::make_shared<bool>(true)) {}
  ~PlainClient() override { *alive_ = false; }

  void Request(ipam::NicRequest desired) override;
  std::optional<ipam::CloudForecast> ForecastOf(const ipam::NodeKey& node) const override;
  void List(ipam::CloudListed listed) override;
  absl::Duration listing_period() const override { return absl::Seconds(60); }
  std::string Describe() const override { return "simulated"; }
  void Stop() override { *alive_ = false; }

 private:
  void Send(ipam::NicRequest desired);
  void Finish(const ipam::NodeKey& node, absl::StatusOr<ipam::NicAddresses> result);

  const Provider::Edges& edges_;
  const Provider::Client client_;
  const ipam::CloudAnswer answer_;
  const std::shared_ptr<bool> alive_;  // Shared with operations that outlive the process.
  std::set<ipam::NodeKey> under_way_;
  std::map<ipam::NodeKey, ipam::NicRequest> waiting_;
};

// One operation a NIC at a time; of the requests that wait for it the last decides.
void PlainClient::Request(ipam::NicRequest desired) {
  if (!client_.life.Acts()) return;
  if (under_way_.contains(desired.node)) {
    waiting_.insert_or_assign(desired.node, std::move(desired));
    return;
  }
  Send(std::move(desired));
}

void PlainClient::Send(ipam::NicRequest desired) {
  under_way_.insert(desired.node);
  if (client_.write_margin() <= absl::ZeroDuration() && !Mutant(38)) {
    edges_.trace.Count("cloud not asked by who may not lead");
    edges_.schedule.After(absl::Seconds(1), [this, alive = alive_, node = desired.node] {
      if (*alive) Finish(node, absl::UnavailableError("another server may lead"));
    });
    return;
  }
  const uint64_t order = edges_.fabric.NextOrder();
  const absl::Duration there = client_.random.Between(edges_.faults.least, edges_.faults.most);
  const absl::Duration back = client_.random.Between(absl::Milliseconds(10), edges_.faults.least);
  const bool refused = client_.random.Chance(edges_.faults.refused);
  const bool lost = client_.random.Chance(edges_.faults.answers_lost);
  // What has been sent is carried out though its sender may be dead by then.
  edges_.schedule.After(
      there, [this, alive = alive_, &schedule = edges_.schedule, &fabric = edges_.fabric,
              &trace = edges_.trace, order, back, refused, lost, desired = std::move(desired)] {
        absl::StatusOr<ipam::NicAddresses> result = absl::UnavailableError("the cloud refuses");
        if (refused) {
          trace.Count("cloud refused");
        } else {
          result = fabric.Apply(desired, order);
          trace.Say("cloud vm={} entries={} {}", desired.node.vm_id, desired.configurations.size(),
                    base::MessageOf(result.status()));
          if (!*alive) trace.Count("cloud carried out for a dead server");
          if (absl::IsNotFound(result.status())) {
            trace.Count("cloud asked for a machine that is gone");
          }
        }
        if (lost && result.ok()) {
          trace.Count("cloud answer lost");
          result = absl::UnavailableError("the cloud's answer was lost");
        }
        schedule.After(back, [this, alive, node = desired.node, result = std::move(result)] {
          if (*alive) Finish(node, result);
        });
      });
}

void PlainClient::Finish(const ipam::NodeKey& node, absl::StatusOr<ipam::NicAddresses> result) {
  if (edges_.schedule.now() < client_.life.still_until()) {
    edges_.schedule.At(client_.life.still_until(), [this, alive = alive_, node, result] {
      if (*alive) Finish(node, result);
    });
    return;
  }
  under_way_.erase(node);
  if (auto next = waiting_.extract(node); !next.empty()) Send(std::move(next.mapped()));
  answer_(node, std::move(result));
}

std::optional<ipam::CloudForecast> PlainClient::ForecastOf(const ipam::NodeKey& node) const {
  if (!under_way_.contains(node)) return std::nullopt;
  return ipam::CloudForecast{.eta = edges_.schedule.now() + edges_.faults.most,
                             .waits_for = "the cloud"};
}

void PlainClient::List(ipam::CloudListed listed) {
  absl::Duration wait = client_.random.Between(edges_.faults.least, edges_.faults.most);
  if (client_.random.Chance(edges_.faults.listings_stale)) {
    wait += absl::Minutes(1);
    edges_.trace.Count("stale listing");
  }
  ipam::CloudListing listing = edges_.fabric.List();
  if (client_.random.Chance(edges_.faults.listings_failed)) {
    listing = absl::UnavailableError("the cloud does not list");
  }
  edges_.schedule.After(
      wait, [alive = alive_, listed = std::move(listed), listing = std::move(listing)]() mutable {
        if (*alive) listed(std::move(listing));
      });
}

}  // namespace

Vm PlainProvider::AddVm(const std::string& node, size_t index, Random& random) {
  const uint64_t number = random.Next();
  const auto byte = [number](int place) { return static_cast<uint8_t>(number >> place); };
  const Vm vm{
      .id = fmt::format("vm-{}-{:08x}", index, number & 0xFFFFFFFFU),
      .mac = ip::MacAddress::Parse(fmt::format("02:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", byte(32),
                                               byte(24), byte(16), byte(8), byte(0)))
                 .value(),
      .instance = {}};
  edges_.fabric.AddVm({node, vm.id}, vm.mac);
  return vm;
}

void PlainProvider::TakeOff(const std::string& vm, size_t which) {
  const ipam::NicAddresses* const nic = edges_.fabric.Find(vm);
  if (nic == nullptr || nic->configurations.empty()) return;
  std::vector<ipam::IpConfiguration> next = nic->configurations;
  next.erase(next.begin() + static_cast<std::ptrdiff_t>(which % next.size()));
  Overwrite(vm, next);
}

void PlainProvider::WriteBack(const std::string& vm, absl::Duration after) {
  const ipam::NicAddresses* const nic = edges_.fabric.Find(vm);
  if (nic == nullptr) return;
  edges_.schedule.After(after, [this, vm, next = nic->configurations] { Overwrite(vm, next); });
}

void PlainProvider::Overwrite(const std::string& vm,
                              const std::vector<ipam::IpConfiguration>& entries) {
  const ipam::NicAddresses* const nic = edges_.fabric.Find(vm);
  if (nic == nullptr) return;
  const size_t had = nic->configurations.size();
  const std::vector<ip::Prefix> lost = edges_.fabric.Overwrite(vm, entries);
  const size_t come = nic->configurations.size() + lost.size() - had;
  edges_.trace.Say("somebody else takes {} off vm={}, and puts {} there", lost.size(), vm, come);
  edges_.trace.Count("taken off by others", lost.size());
  edges_.trace.Count("put there by others", come);
  edges_.changed_by_others(vm, lost);
}

std::unique_ptr<ipam::Cloud> PlainProvider::Connect(const Client& client,
                                                    ipam::CloudAnswer answer) {
  return std::make_unique<PlainClient>(edges_, client, std::move(answer));
}

}  // namespace spoke::sim
