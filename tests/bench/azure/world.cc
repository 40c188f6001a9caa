#include "tests/bench/azure/world.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::azure_bench {
namespace {

// The pause after which the loop gets a turn though nothing has happened.
constexpr absl::Duration kTurn = absl::Seconds(1);

ip::Prefix SubnetOf(int set) { return ip::Prefix::Parse(fmt::format("10.{}.0.0/16", set)).value(); }

std::string SubnetId(int set) {
  return fmt::format(
      "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet{}/"
      "subnets/pods",
      set);
}

}  // namespace

// --- Agents. ---

void Agents::Add(ipam::SessionId session, const ip::Prefix& range) {
  for (uint64_t i = 0; i < range.size(); ++i) {
    const ip::Address address = ip::Advance(range.base(), i);
    if (!assignable[session].emplace(address, false).second) continue;
    ++total;
    const auto [holder, free] = holders_.emplace(address.ToBytes(), session);
    if (!free && holder->second != session) ++doubled;
  }
}

void Agents::Remove(ipam::SessionId session, const ip::Prefix& range) {
  for (uint64_t i = 0; i < range.size(); ++i) {
    const ip::Address address = ip::Advance(range.base(), i);
    total -= assignable[session].erase(address);
    const auto holder = holders_.find(address.ToBytes());
    if (holder != holders_.end() && holder->second == session) holders_.erase(holder);
  }
}

void Agents::Send(ipam::SessionId session, ipam::ToAgent message) {
  if (const auto* desired = std::get_if<node_api::DesiredState>(&message)) {
    for (const ip::Prefix& range : desired->removed) Remove(session, range);
    for (const node_api::DesiredConfiguration& added : desired->added) Add(session, added.range);
  } else if (auto* reclaim = std::get_if<node_api::ReclaimRequest>(&message)) {
    reclaims.emplace_back(session, std::move(*reclaim));
  }
}

// --- The cluster. ---

void World::CountingLog::Write(telemetry::Level level, std::string_view,
                               std::initializer_list<telemetry::Field>) {
  if (level >= telemetry::Level::kError) ++problems;
}

absl::StatusOr<std::unique_ptr<World>> World::Create(const WorldOptions& options) {
  std::unique_ptr<World> world(new World(options));
  RETURN_IF_ERROR(world->SetUp());
  return world;
}

std::string World::SetId(int set) const {
  return fmt::format(
      "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/"
      "virtualMachineScaleSets/set{}",
      set);
}

azure_sim::SimSpec World::Spec() const {
  azure_sim::SimSpec spec{.seed = options_.seed};
  for (int set = 0; set < options_.scale_sets; ++set) {
    spec.subnets.push_back({.id = SubnetId(set), .prefix = SubnetOf(set)});
    azure_sim::ScaleSetSpec scale_set{.subscription = "sub", .resource_group = "rg"};
    scale_set.name = fmt::format("set{}", set);
    scale_set.subnet_id = SubnetId(set);
    scale_set.instances =
        options_.nodes / options_.scale_sets + (set < options_.nodes % options_.scale_sets ? 1 : 0);
    scale_set.network_security_group =
        "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/networkSecurityGroups/n";
    (options_.blocks ? scale_set.baked_blocks : scale_set.baked_addresses) = options_.baked;
    spec.scale_sets.push_back(std::move(scale_set));
  }
  return spec;
}

ipam::azure::Settings World::AzureSettings() const {
  ipam::azure::Settings settings;
  settings.endpoints.resource_manager = "https://management.azure.com";
  settings.identities.resize(static_cast<size_t>(options_.identities));
  for (int set = 0; set < options_.scale_sets; ++set) settings.scale_sets.push_back(SetId(set));
  settings.share_for_others = options_.share_for_others;
  settings.blocks_on_scale_sets = options_.blocks;
  settings.listing = options_.listing;
  return settings;
}

ipam::ServerSettings World::Settings() const {
  ipam::ServerSettings settings;
  for (int set = 0; set < options_.scale_sets; ++set) {
    ipam::PoolSpec pool{.name = fmt::format("pool{}", set), .cidr = SubnetOf(set)};
    if (options_.blocks) pool.block_length = 28;
    settings.pools.push_back(std::move(pool));
  }
  settings.fleet.target = {
      .min = options_.addresses, .batch = options_.batch, .spare = 0.5, .max = 250};
  settings.fleet.cloud_chooses = true;
  return settings;
}

absl::Status World::SetUp() {
  ASSIGN_OR_RETURN(arm_, azure_sim::ArmModel::Build(Spec(), began_, options_.knobs));
  azure_ = std::make_unique<SimulatedAzure>(
      SimulatedAzure::Options{
          .settings = AzureSettings(), .round_trip = options_.round_trip, .seed = options_.seed},
      *arm_, clock_, ipam::AnswersTo(mailbox_));
  const ipam::ServerSettings settings = Settings();
  ASSIGN_OR_RETURN(ipam::LoadedState loaded, ipam::LoadState(store_, settings, clock_.Now()));
  loop_ = std::make_unique<ipam::FleetLoop>(
      settings, std::move(loaded),
      ipam::FleetLoop::Edges{store_, agents_, *azure_, mailbox_, clock_, log_});
  std::vector<int> next(static_cast<size_t>(options_.scale_sets));
  for (int node = 0; node < options_.nodes; ++node) {
    const int set = SetOf(node);
    const std::string id =
        fmt::format("{}/virtualMachines/{}", SetId(set), next[static_cast<size_t>(set)]++);
    const azure_sim::Instance* instance = arm_->world().FindInstance(id);
    if (instance == nullptr) return absl::InternalError("the simulated Azure lacks " + id);
    node_api::Hello hello{.node = {.node_name = fmt::format("node-{:05}", node),
                                   .vm_id = instance->vm_id,
                                   .boot_id = "boot",
                                   .subnets = {SubnetOf(set)}},
                          .nic = {.mac = instance->nics.front()->mac}};
    for (const char c : id) {
      hello.node.instance += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    hellos_.push_back(std::move(hello));
  }
  agents_.assignable.resize(hellos_.size() + 1);
  next_listing_ = began_ + options_.listing;
  next_audit_ = began_ + options_.audit;
  return absl::OkStatus();
}

void World::List() {
  azure_->List([this](ipam::CloudListing listing) { OnListing(std::move(listing)); });
}

void World::OnListing(ipam::CloudListing listing) {
  const bool audited = std::exchange(auditing_, false);
  // What an audit lists it only compares.
  if (!audited && listing.ok()) {
    loop_->PostListing(*std::move(listing), [](const std::string&) { return true; });
  }
  if (!audited && clock_.Now() >= next_audit_) {
    next_audit_ = clock_.Now() + options_.audit;
    auditing_ = true;
    List();
    return;
  }
  next_listing_ = clock_.Now() + options_.listing;
}

void World::Hello() {
  for (size_t node = 0; node < hellos_.size(); ++node) loop_->PostHello(node + 1, hellos_[node]);
}

void World::Run(absl::Time until, const std::function<bool()>& done) {
  while (!done() && clock_.Now() < until) {
    azure_->Work();
    loop_->RunOnce(absl::ZeroDuration());
    if (clock_.Now() >= next_listing_) {
      next_listing_ = absl::InfiniteFuture();
      List();
    }
    absl::Time next = std::min({azure_->NextEvent(), next_listing_, next_turn_, until});
    if (clock_.Now() >= next_turn_) next_turn_ = clock_.Now() + kTurn;
    next = std::max(next, clock_.Now());
    // What the loop has just asked for is due at once, without time passing.
    clock_.Advance(next - clock_.Now());
  }
}

void World::Report(int node, node_api::AssignmentReport report) {
  loop_->PostFromAgent(
      ipam::ReportEvent{static_cast<ipam::SessionId>(node) + 1, std::move(report)});
}

void World::AnswerReclaims() {
  for (auto& [session, request] : std::exchange(agents_.reclaims, {})) {
    node_api::ReclaimAnswer answer{.id = request.id};
    for (const ip::Prefix& range : request.ranges) {
      bool used = false;
      for (uint64_t i = 0; i < range.size(); ++i) {
        const auto it = agents_.assignable[session].find(ip::Advance(range.base(), i));
        used = used || (it != agents_.assignable[session].end() && it->second);
      }
      (used ? answer.denied : answer.agreed).push_back(range);
    }
    loop_->PostFromAgent(ipam::ReclaimAnswerEvent{session, std::move(answer)});
  }
}

uint64_t World::NotOnTheWire() const {
  std::map<ip::MacAddress, ipam::SessionId> sessions;
  for (size_t node = 0; node < hellos_.size(); ++node) {
    sessions.emplace(hellos_[node].nic.mac, node + 1);
  }
  std::vector<std::map<ip::Address, bool>> missing = agents_.assignable;
  for (const azure_sim::ArmModel::OnWire& wire : arm_->Wire()) {
    const auto session = sessions.find(wire.nic->mac);
    if (session == sessions.end()) continue;
    for (uint64_t i = 0; i < wire.entry->range.size(); ++i) {
      missing[session->second].erase(ip::Advance(wire.entry->range.base(), i));
    }
  }
  uint64_t count = 0;
  for (const auto& addresses : missing) count += addresses.size();
  return count;
}

}  // namespace spoke::azure_bench
