#include "tests/sim/azure_fabric.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "ipam-server/cloud/azure/azure_state.h"
#include "lib/base/check.h"
#include "tests/azure-sim/arm_model.h"

namespace spoke::sim {
namespace {

using azure_sim::ArmModel;

constexpr std::string_view kOurs = "spoke-";

azure_sim::Knobs DrawKnobs(Random& random) {
  azure_sim::Knobs knobs;
  knobs.nic_lag = absl::Seconds(static_cast<int64_t>(random.Below(4)));
  knobs.list_lag = absl::Seconds(static_cast<int64_t>(random.Below(60)));
  knobs.free_after_removal = absl::Seconds(static_cast<int64_t>(random.Below(20)));
  knobs.on_concurrent_write = random.Chance(0.5) ? azure_sim::OnConcurrentWrite::kConflict
                                                 : azure_sim::OnConcurrentWrite::kPreempt;
  knobs.failed_operations = 0.04;
  knobs.failed_after_write = 0.3;
  knobs.canceled_operations = 0.01;
  knobs.server_errors = 0.03;
  knobs.lost_responses = 0.03;
  knobs.lost_reads = 0.02;
  knobs.foreign_writes_at_put = 0.03;
  knobs.conflicts = 0.02;
  return knobs;
}

class AzureFabric final : public Fabric {
 public:
  AzureFabric(Basis& basis, const ip::Prefix& pods) : basis_(basis), pods_(pods) {
    azure_sim::SimSpec spec = azure_sim::SmallSpec(0, pods.ToString());
    spec.seed = basis.random.Next();
    auto model = ArmModel::Build(spec, basis.schedule.now(), DrawKnobs(basis.random));
    CHECK(model.ok(), "a small Azure can be built");
    model_ = *std::move(model);
    set_id_ = spec.scale_sets[0].id();
  }

  std::optional<CloudMachine> AddMachine(const std::string& node, uint64_t number) override;
  void RemoveMachine(const NodeKey& machine) override;
  std::unique_ptr<ipam::Cloud> NewClient(CloudClientEdges edges) override;
  void EndFaults() override {
    const azure_sim::Knobs calm;
    azure_sim::Knobs& knobs = model_->knobs();
    knobs.failed_operations = knobs.failed_after_write = knobs.canceled_operations = 0;
    knobs.server_errors = knobs.lost_responses = knobs.lost_reads = 0;
    knobs.foreign_writes_at_put = knobs.conflicts = 0;
    knobs.latency = calm.latency;
  }

  // Answers a request that arrives now.
  absl::StatusOr<http::Response> Handle(const http::Request& request);
  const std::string& set_id() const { return set_id_; }

 private:
  // Tells the judge what has changed on the wire, and comes back when something will by itself.
  void Observe();
  std::set<ip::Address> OnWire(const azure_sim::Instance& instance) const;

  Basis& basis_;
  const ip::Prefix pods_;
  std::unique_ptr<ArmModel> model_;
  std::string set_id_;
  struct Machine {
    std::string instance;  // Its id, as the model writes it.
    std::set<ip::Address> addresses;
  };
  std::map<NodeKey, Machine> machines_;
  uint64_t wire_version_ = 0;
  absl::Time next_look_ = absl::InfiniteFuture();
};

// The client in one server: the machine of values, whose calls travel through the world.
class AzureClient final : public ipam::Cloud {
 public:
  AzureClient(Basis& basis, AzureFabric& fabric, CloudClientEdges edges)
      : basis_(basis),
        fabric_(fabric),
        edges_(std::move(edges)),
        machine_(SettingsOf(fabric), basis.random.Next()) {}

  void Request(ipam::NicRequest desired) override {
    machine_.Request(std::move(desired), edges_.clock());
    PumpSoon();
  }
  void List(ipam::CloudListed listed) override {
    listings_.push_back(std::move(listed));
    machine_.List(edges_.clock());
    PumpSoon();
  }
  std::optional<ipam::CloudForecast> ForecastOf(const NodeKey& node) const override {
    return machine_.ForecastOf(node, edges_.clock());
  }
  absl::Duration listing_period() const override { return absl::Minutes(2); }
  bool ChoosesAddresses() const override { return true; }
  std::string Describe() const override { return "simulated Azure"; }
  void Stop() override {}

 private:
  static ipam::azure::Settings SettingsOf(const AzureFabric& fabric) {
    ipam::azure::Settings settings;
    settings.endpoints.resource_manager = "https://management.azure.com";
    settings.identities = {{}};
    settings.scale_sets = {fabric.set_id()};
    return settings;
  }
  void PumpSoon() {
    edges_.process.After(absl::ZeroDuration(), [this] { Pump(); });
  }
  void Pump();
  void Send(ipam::azure::MachineCall call);
  void HandOver();

  Basis& basis_;
  AzureFabric& fabric_;
  const CloudClientEdges edges_;
  mutable ipam::azure::AzureState machine_;
  std::deque<ipam::CloudListed> listings_;
  uint64_t wake_ = 0;
};

std::optional<CloudMachine> AzureFabric::AddMachine(const std::string& node, uint64_t /*number*/) {
  azure_sim::ScaleSet* set = model_->world().FindSet(set_id_);
  const auto added = model_->world().AddInstance(*set, basis_.schedule.now());
  if (!added.ok()) return std::nullopt;
  const azure_sim::Instance& instance = **added;
  CloudMachine machine{.key = {node, instance.vm_id},
                       .mac = instance.nics.at(0)->mac,
                       .instance = instance.id,
                       .subnets = {pods_}};
  std::transform(
      machine.instance.begin(), machine.instance.end(), machine.instance.begin(),
      [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  machines_[machine.key] = {.instance = instance.id, .addresses = {}};
  Observe();
  return machine;
}

void AzureFabric::RemoveMachine(const NodeKey& machine) {
  const auto found = machines_.extract(machine);
  if (found.empty()) return;
  if (auto* instance = model_->world().FindInstance(found.mapped().instance); instance != nullptr) {
    model_->compute().RemoveInstance(*instance, basis_.schedule.now());
  }
  basis_.judge.MachineGone(machine);
  Observe();
}

std::unique_ptr<ipam::Cloud> AzureFabric::NewClient(CloudClientEdges edges) {
  return std::make_unique<AzureClient>(basis_, *this, std::move(edges));
}

absl::StatusOr<http::Response> AzureFabric::Handle(const http::Request& request) {
  http::Response response = model_->Handle(request, basis_.schedule.now());
  Observe();
  basis_.trace.Tell("azure", "answers {} to {} {}", response.status, request.method, request.url);
  if (response.status == 0) return absl::DeadlineExceededError("no answer");
  return response;
}

std::set<ip::Address> AzureFabric::OnWire(const azure_sim::Instance& instance) const {
  std::set<ip::Address> addresses;
  for (const azure_sim::NicEntry& entry : instance.nics.at(0)->entries) {
    if (entry.name.rfind(kOurs, 0) != 0) continue;
    for (uint64_t i = 0; i < entry.range.size(); ++i) {
      addresses.insert(ip::Advance(entry.range.base(), i));
    }
  }
  return addresses;
}

void AzureFabric::Observe() {
  model_->Advance(basis_.schedule.now());
  if (std::exchange(wire_version_, model_->world().wire_version()) !=
      model_->world().wire_version()) {
    std::vector<std::pair<NodeKey, ip::Address>> come;
    for (auto& [key, machine] : machines_) {
      const azure_sim::Instance* instance = model_->world().FindInstance(machine.instance);
      if (instance == nullptr) continue;
      const std::set<ip::Address> now = OnWire(*instance);
      for (const ip::Address& address : machine.addresses) {
        if (now.contains(address)) continue;
        basis_.trace.Tell("fabric", "takes {} off {}", address.ToString(), key.name);
        basis_.judge.NicLoses(key, address);
      }
      for (const ip::Address& address : now) {
        if (!machine.addresses.contains(address)) come.emplace_back(key, address);
      }
      machine.addresses = now;
    }
    for (const auto& [key, address] : come) {
      basis_.trace.Tell("fabric", "puts {} on {}", address.ToString(), key.name);
      basis_.judge.NicGets(key, address);
    }
  }
  const absl::Time next = model_->NextEvent();
  if (next == next_look_ || next == absl::InfiniteFuture()) return;
  next_look_ = next;
  basis_.schedule.At(next, [this, next] {
    if (next == next_look_) next_look_ = absl::InfiniteFuture();
    Observe();
  });
}

void AzureClient::Pump() {
  for (ipam::azure::MachineCall& call :
       machine_.Next(edges_.clock(), basis_.Has(Mutant::kMarginZero) ? absl::InfiniteDuration()
                                                                     : edges_.margin())) {
    Send(std::move(call));
  }
  HandOver();
  const absl::Time wake = machine_.NextWake();
  if (wake == absl::InfiniteFuture()) return;
  edges_.process.After(std::max(wake - edges_.clock(), absl::Milliseconds(1)),
                       [this, number = ++wake_] {
                         if (number == wake_) Pump();
                       });
}

// What has left is Azure's, whatever becomes of the server.
void AzureClient::Send(ipam::azure::MachineCall call) {
  edges_.process.Step("call of Azure");
  const absl::Duration there =
      basis_.random.Between(absl::Milliseconds(20), absl::Milliseconds(200));
  const absl::Duration back =
      basis_.random.Between(absl::Milliseconds(20), absl::Milliseconds(400));
  const auto response =
      std::make_shared<absl::StatusOr<http::Response>>(absl::DeadlineExceededError("no answer"));
  basis_.schedule.After(there, [fabric = &fabric_, request = std::move(call.request), response] {
    *response = fabric->Handle(request);
  });
  const auto hear = [this, id = call.id, response] {
    machine_.OnResponse(id, *response, edges_.clock());
    Pump();
  };
  edges_.process.After(there + back, [this, hear, response, timeout = call.timeout] {
    if (response->ok()) return hear();
    edges_.process.After(timeout, hear);
  });
}

void AzureClient::HandOver() {
  for (ipam::azure::MachineAnswer& answer : machine_.TakeAnswers()) {
    edges_.answer(answer.node, std::move(answer.result));
  }
  for (auto& listing : machine_.TakeListings()) {
    const ipam::CloudListed listed = std::move(listings_.front());
    listings_.pop_front();
    listed(std::move(listing));
  }
}

}  // namespace

std::unique_ptr<Fabric> NewAzureFabric(Basis& basis, const ip::Prefix& pods) {
  return std::make_unique<AzureFabric>(basis, pods);
}

}  // namespace spoke::sim
