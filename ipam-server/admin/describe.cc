#include "ipam-server/admin/describe.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/promises.h"
#include "ipam-server/ledger/targets.h"
#include "lib/base/time_text.h"

namespace spoke::ipam {
namespace {

// The number of nodes named, of those that a recovery waits for.
constexpr int kMostSilent = 20;

std::string_view NameOf(AddressPool::State state) {
  switch (state) {
    case AddressPool::State::kExcluded:
      return "excluded";
    case AddressPool::State::kFree:
      return "free";
    case AddressPool::State::kHeld:
      return "held";
    case AddressPool::State::kCooldown:
      return "released";
    case AddressPool::State::kQuarantined:
      return "quarantined";
  }
  return "free";
}

void NoteQuarantine(const Fleet& fleet, const ip::Address& address, v1::AddressInfo& info) {
  const auto& quarantine = fleet.ledger.quarantine().entries;
  const auto it = quarantine.find(address);
  if (it == quarantine.end()) return;
  info.set_note("in quarantine: " + it->second.reason);
}

v1::AddressInfo Released(const AddressPool& pool, const NodeRecord& record,
                         const ip::Address& address, absl::Time at) {
  v1::AddressInfo info;
  info.set_address(address.ToString());
  info.set_state("released");
  info.set_pool(pool.spec().name);
  info.set_node(record.key.name);
  info.set_vm_id(record.key.vm_id);
  info.set_since_unix_ms(absl::ToUnixMillis(at));
  return info;
}

// What the cloud gave and nobody may use.
v1::AddressInfo Unusable(const NodeRecord& record, const std::string& name,
                         const WantedEntry& wanted) {
  v1::AddressInfo info;
  info.set_address(wanted.given->base().ToString());
  if (wanted.size() > 1) info.set_block(wanted.given->ToString());
  info.set_state("unusable");
  info.set_pool(wanted.pool);
  info.set_node(record.key.name);
  info.set_vm_id(record.key.vm_id);
  info.set_nic_mac(record.nic_mac.ToString());
  info.set_ip_configuration(name);
  info.set_since_unix_ms(absl::ToUnixMillis(wanted.since));
  info.set_note(wanted.problem);
  return info;
}

// Such an address may be held, or in cooldown, elsewhere: both rows are true.
bool IsUnusable(const v1::AddressInfo& info) { return info.state() == "unusable"; }

}  // namespace

uint64_t CountWithheld(const Fleet& fleet, const NodeRecord& record) {
  uint64_t count = 0;
  for (const auto& [base, configuration] : record.configurations) {
    if (configuration.state != AddressState::kAttached) continue;
    count += CountAddresses(configuration).available - CountOfUse(fleet, configuration).available;
  }
  return count;
}

void DescribeFamilies(const Fleet& fleet, v1::GetStatusResponse& out) {
  for (const PoolEntry& entry : fleet.ledger.pools()) {
    const bool v4 = entry.pool.spec().cidr.family() == ip::Family::kV4;
    v1::PoolInfo& counts = v4 ? *out.mutable_ipv4() : *out.mutable_ipv6();
    counts.set_usable(counts.usable() + entry.pool.usable());
    counts.set_free(counts.free() + entry.free());
    counts.set_attaching(counts.attaching() + entry.counts.attaching);
    counts.set_available(counts.available() + entry.counts.available);
    counts.set_in_use(counts.in_use() + entry.counts.in_use);
    counts.set_cooldown(counts.cooldown() + entry.counts.cooldown);
    counts.set_detaching(counts.detaching() + entry.counts.detaching);
  }
}

v1::PoolInfo DescribePool(const Fleet& fleet, const PoolEntry& entry) {
  const PoolSpec& spec = entry.pool.spec();
  v1::PoolInfo info;
  info.set_name(spec.name);
  info.set_cidr(spec.cidr.ToString());
  info.set_usable(entry.pool.usable());
  info.set_free(entry.free());
  info.set_attaching(entry.counts.attaching);
  info.set_available(entry.counts.available);
  info.set_in_use(entry.counts.in_use);
  info.set_cooldown(entry.counts.cooldown);
  info.set_detaching(entry.counts.detaching);
  info.set_released(entry.pool.cooldown());
  info.set_quarantined(entry.pool.quarantined());
  info.set_reserved(PromisedOf(fleet, spec.name));
  info.set_block_prefix_length(spec.block_length);
  info.set_vnet(spec.vnet);
  for (const auto& [key, value] : spec.node_labels) (*info.mutable_node_labels())[key] = value;
  for (const std::string& name : spec.namespaces) info.add_namespaces(name);
  info.set_source(spec.from_file ? "file" : "applied");
  return info;
}

bool RefusesCloud(const FleetView& view, const NodeKey& node) {
  return view.problems.contains(CloudTopicOf(node));
}

v1::NodeInfo DescribeNode(const FleetView& view, const NodeRecord& record) {
  const Fleet& fleet = view.fleet;
  const AddressCounts counts = CountAddresses(record);
  v1::NodeInfo info;
  info.set_name(record.key.name);
  info.set_vm_id(record.key.vm_id);
  info.set_boot_id(record.boot_id);
  info.set_session_epoch(record.session_epoch);
  info.set_mode(std::string(NameOf(record.mode)));
  info.set_attaching(counts.attaching);
  info.set_attached(counts.attached());
  info.set_in_use(counts.in_use);
  info.set_cooldown(counts.cooldown);
  info.set_detaching(counts.detaching);
  info.set_withheld(CountWithheld(fleet, record));
  info.set_target(TargetOf(fleet, record));
  info.set_shortage(ShortageOf(fleet, record));
  if (const auto demand = fleet.demands.find(record.key); demand != fleet.demands.end()) {
    info.set_pods_waiting(demand->second.said.pods());
  }
  info.set_reserved(fleet.reservations.ReservedFor(record.key.name));
  for (const auto& [key, value] : record.labels) (*info.mutable_labels())[key] = value;
  info.set_vnet(record.vnet);
  info.set_nic_mac(record.nic_mac.ToString());
  info.set_instance(record.instance);
  if (const auto forecast = view.cloud.ForecastOf(record.key)) {
    const bool refused = RefusesCloud(view, record.key);
    info.set_cloud_lane(std::string(NameOf(forecast->lane)));
    if (!refused) info.set_cloud_eta_unix_ms(absl::ToUnixMillis(forecast->eta));
    info.set_cloud_waits_for(refused ? "another attempt: the cloud refused the last"
                                     : forecast->waits_for);
  }
  const auto found = view.sessions.find(record.key);
  info.set_connected(found != view.sessions.end());
  if (found == view.sessions.end()) return info;
  const Session* const session = &found->second;
  info.set_desired_version(session->desired_version);
  info.set_acked_version(session->acked_version);
  info.set_policy_version(session->policy_acked);
  info.set_policy_error(session->policy_error);
  for (const node_api::NodeFinding& finding : session->findings) {
    v1::NodeFinding& said = *info.add_findings();
    said.set_check(finding.check);
    said.set_blocking(finding.blocking);
    said.set_object(finding.object);
    said.set_what(finding.what);
    said.set_remedy(finding.remedy);
  }
  if (session->maintenance) {
    for (const node_api::MaintenanceEvent& event : session->maintenance->events) {
      node_api::ToWire(event, *info.add_maintenance());
    }
  }
  info.set_agent_version(session->agent_version);
  info.set_last_seen_unix_ms(absl::ToUnixMillis(session->last_seen));
  return info;
}

v1::AddressInfo DescribeAddress(const Fleet& fleet, const NodeRecord& record,
                                const Configuration& configuration, const ip::Address& address) {
  const Slot& slot = configuration.At(address);
  v1::AddressInfo info;
  info.set_address(address.ToString());
  info.set_state(std::string(NameOf(configuration.state, slot.use)));
  info.set_pool(configuration.pool);
  info.set_node(record.key.name);
  info.set_vm_id(record.key.vm_id);
  info.set_nic_mac(record.nic_mac.ToString());
  info.set_ip_configuration(configuration.name);
  const bool on_its_way = configuration.state != AddressState::kAttached;
  info.set_since_unix_ms(absl::ToUnixMillis(on_its_way ? configuration.since : slot.since));
  if (configuration.slots.size() > 1) info.set_block(configuration.range.ToString());
  if (configuration.denied_until > absl::UnixEpoch()) {
    info.set_note(fmt::format("its agent denied it; asked again after {}",
                              base::ClockText(configuration.denied_until)));
  }
  NoteQuarantine(fleet, address, info);
  if (slot.lessee != nullptr) {
    info.set_pod_namespace(slot.lessee->pod_namespace);
    info.set_pod_name(slot.lessee->pod_name);
    info.set_container_id(slot.lessee->container_id);
    info.set_ifname(slot.lessee->ifname);
  }
  return info;
}

std::optional<v1::AddressInfo> DescribeAddress(const Fleet& fleet, const ip::Address& address) {
  const PoolEntry* entry = fleet.ledger.pools().Covering(address);
  if (entry == nullptr) return std::nullopt;
  const AddressPool& pool = entry->pool;
  if (const NodeRecord* record = pool.OwnerOf(address); record != nullptr) {
    return DescribeAddress(fleet, *record, *record->Holding(address), address);
  }
  v1::AddressInfo info;
  info.set_address(address.ToString());
  info.set_state(std::string(NameOf(pool.StateOf(address))));
  info.set_pool(pool.spec().name);
  NoteQuarantine(fleet, address, info);
  const auto& quarantine = fleet.ledger.quarantine().entries;
  if (const auto it = quarantine.find(address); it != quarantine.end()) {
    info.set_since_unix_ms(absl::ToUnixMillis(it->second.since));
  } else if (pool.StateOf(address) == AddressPool::State::kCooldown) {
    info.set_since_unix_ms(absl::ToUnixMillis(pool.UsableFrom(address) - fleet.policy.cooldown));
  }
  return info;
}

std::vector<v1::AddressInfo> DescribeAddresses(const Fleet& fleet, const NodeRecord& record) {
  std::vector<v1::AddressInfo> infos;
  for (const auto& [base, configuration] : record.configurations) {
    for (size_t i = 0; i < configuration.slots.size(); ++i) {
      infos.push_back(DescribeAddress(fleet, record, configuration, configuration.AddressAt(i)));
    }
  }
  for (const auto& [name, wanted] : record.wanted) {
    if (wanted.given) infos.push_back(Unusable(record, name, wanted));
  }
  for (const auto& [range, at] : record.released) {
    const PoolEntry* entry = fleet.ledger.pools().Covering(range.base());
    if (entry == nullptr || entry->pool.StateOf(range.base()) != AddressPool::State::kCooldown) {
      continue;
    }
    for (uint64_t i = 0; i < range.size(); ++i) {
      infos.push_back(Released(entry->pool, record, ip::Advance(range.base(), i), at));
    }
  }
  return infos;
}

std::vector<size_t> RowsByAddress(const std::deque<v1::AddressInfo>& rows) {
  std::vector<std::pair<ip::Address, size_t>> order;
  order.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    order.emplace_back(*ip::Address::Parse(rows[i].address()), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<size_t> kept;
  kept.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& [address, row] = order[i];
    const bool moved = i + 1 < order.size() && order[i + 1].first == address &&
                       !IsUnusable(rows[row]) && !IsUnusable(rows[order[i + 1].second]);
    if (!moved) kept.push_back(row);
  }
  return kept;
}

v1::ReservationInfo DescribeReservation(const Reservation& reservation) {
  v1::ReservationInfo info;
  info.set_name(reservation.name);
  for (const auto& [node, missing] : reservation.missing) info.add_nodes(node);
  info.set_count(reservation.by_count
                     ? static_cast<uint32_t>(reservation.missing.size()) + reservation.open_places
                     : 0);
  info.set_addresses_per_node(reservation.addresses_per_node);
  info.set_created_unix_ms(absl::ToUnixMillis(reservation.created));
  info.set_expires_unix_ms(absl::ToUnixMillis(reservation.expires));
  info.set_nodes_ready(reservation.ReadyNodes());
  return info;
}

v1::RecoveryInfo DescribeRecovery(const Fleet& fleet, const Recovery& recovery) {
  v1::RecoveryInfo info;
  info.set_phase(std::string(NameOf(recovery.phase())));
  info.set_reason(recovery.Reason());
  if (const auto& cause = recovery.state().cause; cause) {
    info.set_since_unix_ms(absl::ToUnixMillis(cause->since));
  }
  if (!recovery.open()) {
    const std::vector<NodeKey> known = NodesWithAddresses(fleet.ledger);
    info.set_nodes_spoken(recovery.spoken().size());
    info.set_nodes_silent(recovery.Silent(known));
    for (const NodeKey& key : known) {
      if (info.silent_size() == kMostSilent) break;
      if (!recovery.IsAwaited(key)) continue;
      const bool replaced = fleet.ledger.Find(key)->mode == NodeMode::kRetired;
      info.add_silent(replaced ? fmt::format("{} (VM {}, which was replaced)", key.name, key.vm_id)
                               : key.name);
    }
  }
  for (const auto& [node, refusal] : recovery.refused()) {
    if (info.unverified_size() == kMostSilent) break;
    info.add_unverified(fmt::format("{}: {}", node, refusal.why));
  }
  info.set_claimed(fleet.hold.claims.size());
  info.set_store_id(recovery.state().store_id);
  info.set_epoch(recovery.state().epoch);
  return info;
}

}  // namespace spoke::ipam
