#include "ipam-server/audit/audit_job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "fmt/core.h"
#include "ipam-server/ledger/decisions/report.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kLoopPatience = absl::Seconds(30);
// Many scale sets, and limits that are used up, may take a while.
constexpr absl::Duration kMostListing = absl::Minutes(10);

AuditNode NodeOf(const NodeKey& key) { return {key.name, key.vm_id}; }
NodeKey KeyOf(const AuditNode& node) { return {node.name, node.vm_id}; }

AuditState StateOf(AddressState state) {
  switch (state) {
    case AddressState::kAttaching:
      return AuditState::kAttaching;
    case AddressState::kDetaching:
      return AuditState::kDetaching;
    case AddressState::kAttached:
    case AddressState::kFree:
      break;
  }
  return AuditState::kAttached;
}

AuditUse UseOf(Use use) {
  switch (use) {
    case Use::kAvailable:
      return AuditUse::kAvailable;
    case Use::kInUse:
      return AuditUse::kInUse;
    case Use::kCooldown:
      return AuditUse::kCooldown;
  }
  return AuditUse::kAvailable;
}

StoredNode Describe(const NodeRecord& record) {
  StoredNode node{.node = NodeOf(record.key),
                  .nic_mac = record.nic_mac,
                  .retired = record.mode == NodeMode::kRetired};
  for (const auto& [base, configuration] : record.configurations) {
    for (size_t i = 0; i < configuration.slots.size(); ++i) {
      const Slot& slot = configuration.slots[i];
      StoredAddress& address = node.addresses.emplace_back();
      address.address = configuration.AddressAt(i);
      address.state = StateOf(configuration.state);
      address.use = UseOf(slot.use);
      address.configuration = configuration.name;
      address.pool = configuration.pool;
      address.since = std::max(configuration.since, slot.since);
      address.generation = slot.generation;
      if (slot.lessee == nullptr) continue;
      address.container_id = slot.lessee->container_id;
      address.ifname = slot.lessee->ifname;
    }
  }
  for (const auto& [name, wanted] : record.wanted) {
    for (uint64_t i = 0; wanted.given && i < wanted.given->size(); ++i) {
      StoredAddress& address = node.addresses.emplace_back();
      address.address = ip::Advance(wanted.given->base(), i);
      address.state = AuditState::kAttaching;
      address.configuration = name;
      address.pool = wanted.pool;
      address.since = wanted.since;
    }
  }
  return node;
}

CloudNic Describe(const NicAddresses& nic) {
  CloudNic out{.node = NodeOf(nic.node), .nic_mac = nic.nic_mac};
  for (const IpConfiguration& configuration : nic.configurations) {
    for (uint64_t i = 0; i < configuration.range.size(); ++i) {
      out.configurations.emplace(ip::Advance(configuration.range.base(), i), configuration.name);
    }
  }
  return out;
}

// A cloud that knows instances only is told whose they are; those of nobody are none of ours.
std::vector<CloudNic> NicsOf(const std::vector<NicAddresses>& listing,
                             const std::map<std::string, NodeKey>& on_instance) {
  std::vector<CloudNic> nics;
  for (NicAddresses nic : listing) {
    if (nic.node.name.empty()) {
      const auto node = on_instance.find(nic.instance);
      if (node == on_instance.end()) continue;
      nic.node = node->second;
    }
    nics.push_back(Describe(nic));
  }
  return nics;
}

AgentInventory Describe(const NodeKey& key, const node_api::Inventory& inventory) {
  AgentInventory out{.node = NodeOf(key), .held = inventory.held};
  for (const node_api::Assignment& assignment : inventory.in_use) {
    out.in_use.push_back({.address = assignment.address,
                          .generation = assignment.generation,
                          .container_id = assignment.lessee.container_id,
                          .ifname = assignment.lessee.ifname,
                          .since = assignment.since});
  }
  return out;
}

const node_api::Assignment* FindAssignment(
    const std::map<NodeKey, node_api::Inventory>& inventories, const NodeKey& key,
    const ip::Address& address) {
  const auto inventory = inventories.find(key);
  if (inventory == inventories.end()) return nullptr;
  for (const node_api::Assignment& assignment : inventory->second.in_use) {
    if (assignment.address == address) return &assignment;
  }
  return nullptr;
}

std::optional<StoredAddress> FindStored(const StoredNode& node, const ip::Address& address) {
  for (const StoredAddress& stored : node.addresses) {
    if (stored.address == address) return stored;
  }
  return std::nullopt;
}

// One address as it was compared.
struct Compared {
  std::optional<StoredAddress> stored;             // nullopt: it was not the node's.
  std::optional<node_api::Assignment> assignment;  // What its agent said; nullopt: nothing.
};

// What carries the repair out. An assignment that has moved on since it was compared is left alone:
// whatever is wrong with it now, the next audit finds.
std::optional<Effects> Carry(Fleet& fleet, const AuditDifference& difference,
                             const Compared& compared, absl::Time now) {
  const NodeKey key = KeyOf(difference.node);
  const bool of_assignment = difference.repair == AuditRepair::kTakeAssignment ||
                             difference.repair == AuditRepair::kEndAssignment;
  if (of_assignment) {
    const NodeRecord* record = fleet.ledger.Find(key);
    if (record == nullptr) return std::nullopt;
    if (FindStored(Describe(*record), *difference.address) != compared.stored) return std::nullopt;
  }
  Effects effects;
  switch (difference.repair) {
    case AuditRepair::kNone:
      return std::nullopt;
    case AuditRepair::kReattach:
    case AuditRepair::kDetach:
      // The NIC as the record has it: with the address, or without.
      effects.attach.insert(key);
      break;
    case AuditRepair::kResendDesired:
      effects.resend.insert(key);
      break;
    case AuditRepair::kTakeAssignment:
      if (!compared.assignment) return std::nullopt;
      effects = OnAuditedAssignment(fleet, key, *compared.assignment, now);
      break;
    case AuditRepair::kEndAssignment:
      if (!compared.stored) return std::nullopt;
      effects = OnReport(fleet, key,
                         {.released = {{.address = *difference.address,
                                        .generation = compared.stored->generation}}},
                         now);
      break;
  }
  return effects;
}

}  // namespace

AuditJob::AuditJob(const Settings& settings, const Edges& edges)
    : settings_(settings),
      loop_(edges.loop),
      cloud_(edges.cloud),
      clock_(edges.clock),
      log_(edges.log),
      metrics_(edges.metrics) {}

AuditJob::~AuditJob() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void AuditJob::Start() {
  thread_ = std::thread([this] { Work(); });
}

void AuditJob::Work() {
  absl::Time next_audit = clock_.Now() + settings_.period;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), cloud_.listing_period())) return;
    }
    ListCloud();
    if (settings_.period == absl::ZeroDuration() || clock_.Now() < next_audit) continue;
    next_audit = clock_.Now() + settings_.period;
    const auto report = Run(/*repair=*/false, [](uint64_t, uint64_t) {});
    if (!report.ok()) {
      log_.Warn("audit_failed", {{"error", report.status()}});
    } else if (!report->differences.empty()) {
      log_.Warn("audit_differences", {{"count", report->differences.size()},
                                      {"first", NameOf(report->differences[0].kind)},
                                      {"node", report->differences[0].node.name}});
    }
  }
}

// Asks the cloud, waits for its answer, and counts it.
CloudListing AuditJob::AwaitListing() const {
  struct Awaited {
    absl::Notification done;
    CloudListing listing = absl::UnavailableError("it is not there yet");
  };
  const absl::Time begin = clock_.Now();
  // Shared with the cloud, whose listing may come after nobody waits for it any more.
  const auto awaited = std::make_shared<Awaited>();
  cloud_.List([awaited](CloudListing listing) {
    awaited->listing = std::move(listing);
    awaited->done.Notify();
  });
  CloudListing listing = absl::UnavailableError("the cloud has not listed all in time");
  if (awaited->done.WaitForNotificationWithTimeout(kMostListing)) {
    listing = std::move(awaited->listing);
  }
  if (metrics_ != nullptr) {
    metrics_->CountCloudCall(CloudCall::kList, listing.status(), clock_.Now() - begin);
  }
  return listing;
}

void AuditJob::ListCloud() {
  CloudListing listing = AwaitListing();
  if (!listing.ok()) {
    log_.Warn("cloud_list_failed", {{"error", listing.status()}});
    return;
  }
  loop_.PostListing(*std::move(listing),
                    [this](const std::string& instance) { return cloud_.Covers(instance); });
}

absl::Status AuditJob::TakeSnapshot(const Progress& progress, Snapshot& snapshot) {
  RETURN_IF_ERROR(AskLoop(loop_, kLoopPatience, [&](const FleetView& view) {
    snapshot.connected = view.sessions.size();
    for (const PoolEntry& entry : view.fleet.ledger.pools()) {
      snapshot.input.pools[entry.pool.spec().name] = {entry.pool.spec().cidr};
    }
  }));
  const auto visit = [&](const FleetView&, const NodeRecord& record) {
    snapshot.stored.emplace(record.key, snapshot.input.store.size());
    snapshot.input.store.push_back(Describe(record));
    if (!record.instance.empty()) snapshot.on_instance[record.instance] = record.key;
    for (const auto& [range, at] : record.released) {
      for (uint64_t n = 0; n < range.size(); ++n) {
        snapshot.input.freed[ip::Advance(range.base(), n)] = at;
      }
    }
  };
  return VisitNodes(loop_, kLoopPatience, visit, progress);
}

void AuditJob::CollectInventories(Snapshot& snapshot) {
  {
    absl::MutexLock lock(&mutex_);
    inventories_.clear();
  }
  loop_.PostAskInventories([this](const NodeKey& key, node_api::Inventory inventory) {
    absl::MutexLock lock(&mutex_);
    inventories_.insert_or_assign(key, std::move(inventory));
  });
  absl::MutexLock lock(&mutex_);
  const auto complete = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || inventories_.size() >= snapshot.connected;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&complete), settings_.patience);
  snapshot.inventories = std::exchange(inventories_, {});
}

absl::StatusOr<AuditReport> AuditJob::Run(bool repair, const Progress& progress) {
  absl::MutexLock lock(&one_at_a_time_);
  absl::StatusOr<AuditReport> report = RunOne(repair, progress);
  if (!report.ok()) {
    if (metrics_ != nullptr) metrics_->CountAuditFailed();
    return report;
  }
  if (metrics_ != nullptr) Count(*report);
  absl::MutexLock publish(&mutex_);
  last_ = *report;
  return report;
}

// What is left, and what was repaired.
void AuditJob::Count(const AuditReport& report) const {
  std::map<std::string, uint64_t> left;
  uint64_t repairs = 0;
  for (size_t i = 0; i < report.differences.size(); ++i) {
    if (report.repaired[i]) {
      ++repairs;
    } else {
      ++left[std::string(NameOf(report.differences[i].kind))];
    }
  }
  metrics_->CountAudit(left, report.at);
  metrics_->CountAuditRepairs(repairs);
}

absl::StatusOr<AuditReport> AuditJob::RunOne(bool repair, const Progress& progress) {
  Snapshot snapshot;
  const CloudListing listing = AwaitListing();
  if (!listing.ok()) log_.Warn("cloud_list_failed", {{"error", listing.status()}});
  RETURN_IF_ERROR(TakeSnapshot(progress, snapshot));
  if (listing.ok()) snapshot.input.cloud = NicsOf(*listing, snapshot.on_instance);
  CollectInventories(snapshot);
  for (const auto& [key, inventory] : snapshot.inventories) {
    snapshot.input.agents.push_back(Describe(key, inventory));
  }
  AuditReport report{.at = clock_.Now(), .agents_asked = snapshot.connected};
  report.agents_silent =
      snapshot.connected - std::min<uint64_t>(snapshot.connected, snapshot.inventories.size());
  report.differences = Audit(snapshot.input, settings_.policy, report.at);
  memory_.Remember(report.differences, report.at);
  report.repaired.resize(report.differences.size());
  for (size_t i = 0; repair && i < report.differences.size(); ++i) {
    ASSIGN_OR_RETURN(const bool repaired, Repair(report.differences[i], snapshot));
    report.repaired[i] = repaired;
  }
  return report;
}

absl::StatusOr<bool> AuditJob::Repair(const AuditDifference& difference, const Snapshot& snapshot) {
  if (difference.repair == AuditRepair::kNone) return false;
  Compared compared;
  if (difference.address) {
    const NodeKey key = KeyOf(difference.node);
    if (const auto stored = snapshot.stored.find(key); stored != snapshot.stored.end()) {
      compared.stored = FindStored(snapshot.input.store[stored->second], *difference.address);
    }
    const node_api::Assignment* assignment =
        FindAssignment(snapshot.inventories, key, *difference.address);
    if (assignment != nullptr) compared.assignment = *assignment;
  }
  bool repaired = false;
  RETURN_IF_ERROR(
      ChangeInLoop(loop_, kLoopPatience,
                   [&repaired, difference, compared = std::move(compared), now = clock_.Now()](
                       ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
                     std::optional<Effects> effects = Carry(state.fleet, difference, compared, now);
                     repaired = effects.has_value();
                     return repaired ? *std::move(effects) : Effects();
                   }));
  const std::initializer_list<telemetry::Field> fields = {{"kind", NameOf(difference.kind)},
                                                          {"node", difference.node.name},
                                                          {"repair", NameOf(difference.repair)}};
  if (repaired) {
    log_.Info("audit_repaired", fields);
  } else {
    log_.Info("audit_repair_skipped", fields);
  }
  return repaired;
}

std::optional<AuditReport> AuditJob::Last() const {
  absl::MutexLock lock(&mutex_);
  return last_;
}

}  // namespace spoke::ipam
