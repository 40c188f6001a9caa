#include "ipam-server/store/record_codec.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/record.pb.h"

namespace spoke::ipam {
namespace {

// The most that a damaged record may make us allocate: many times what a NIC can hold.
constexpr uint64_t kMaxBlock = 4096;
// The bytes on the stack that hold most records while they are encoded or decoded: no allocation in
// place of hundreds.
constexpr size_t kFirstBlock = 8192;

absl::Status Damaged(std::string_view node, std::string_view what) {
  return absl::DataLossError(fmt::format("record of node \"{}\": {}", node, what));
}

// --- Slots. ---

void EncodeAssignment(const node_api::Lessee& lessee, v1::StoredAssignment& out) {
  out.set_container_id(lessee.container_id);
  out.set_ifname(lessee.ifname);
  out.set_pod_namespace(lessee.pod_namespace);
  out.set_pod_name(lessee.pod_name);
  out.set_pod_uid(lessee.pod_uid);
}

// Writes either proto form of a slot: that of a single address, and that within a block.
template <typename Proto>
void EncodeSlot(const Slot& slot, Proto& out) {
  out.set_since_unix_ms(absl::ToUnixMillis(slot.since));
  out.set_generation(slot.generation);
  out.set_cooldown(slot.use == Use::kCooldown);
  if (slot.lessee != nullptr) EncodeAssignment(*slot.lessee, *out.mutable_assignment());
}

template <typename Proto>
absl::StatusOr<Slot> DecodeSlot(const Proto& in) {
  if (in.has_assignment() && in.cooldown()) {
    return absl::DataLossError("an address is in use and in cooldown at once");
  }
  Slot slot{.use = in.cooldown() ? Use::kCooldown : Use::kAvailable,
            .generation = in.generation(),
            .since = absl::FromUnixMillis(in.since_unix_ms())};
  if (in.has_assignment()) {
    slot.use = Use::kInUse;
    const v1::StoredAssignment& assignment = in.assignment();
    slot.lessee = std::make_shared<const node_api::Lessee>(
        node_api::Lessee{.container_id = assignment.container_id(),
                         .ifname = assignment.ifname(),
                         .pod_namespace = assignment.pod_namespace(),
                         .pod_name = assignment.pod_name(),
                         .pod_uid = assignment.pod_uid()});
  }
  return slot;
}

// --- Configurations. ---

// States and modes have the numbers of the wire.
static_assert(static_cast<int>(AddressState::kFree) == v1::HeldAddress::STATE_UNSPECIFIED &&
              static_cast<int>(AddressState::kAttaching) == v1::HeldAddress::STATE_ATTACHING &&
              static_cast<int>(AddressState::kAttached) == v1::HeldAddress::STATE_ATTACHED &&
              static_cast<int>(AddressState::kDetaching) == v1::HeldAddress::STATE_DETACHING);
static_assert(static_cast<int>(NodeMode::kActive) == v1::NodeRecord::MODE_ACTIVE &&
              static_cast<int>(NodeMode::kDraining) == v1::NodeRecord::MODE_DRAINING &&
              static_cast<int>(NodeMode::kFrozen) == v1::NodeRecord::MODE_FROZEN &&
              static_cast<int>(NodeMode::kRetired) == v1::NodeRecord::MODE_RETIRED);

absl::StatusOr<AddressState> StateFromProto(int state) {
  if (v1::HeldAddress::State_IsValid(state) && state != v1::HeldAddress::STATE_UNSPECIFIED) {
    return static_cast<AddressState>(state);
  }
  return absl::DataLossError(fmt::format("unknown address state {}", state));
}

void Encode(const Configuration& configuration, uint32_t pool_number, v1::HeldAddress& out) {
  out.set_address(configuration.range.base().ToBytes());
  out.set_pool_number(pool_number);
  out.set_configuration(configuration.name);
  out.set_state(static_cast<v1::HeldAddress::State>(configuration.state));
  out.set_state_since_unix_ms(absl::ToUnixMillis(configuration.since));
  if (configuration.denied_until > absl::UnixEpoch()) {
    out.set_denied_until_unix_ms(absl::ToUnixMillis(configuration.denied_until));
  }
  if (configuration.range.length() == configuration.range.base().bits()) {
    EncodeSlot(configuration.slots.front(), out);
    return;
  }
  out.set_prefix_length(static_cast<uint32_t>(configuration.range.length()));
  const Slot untouched{.since = configuration.since};
  for (uint32_t i = 0; i < configuration.slots.size(); ++i) {
    if (configuration.slots[i] == untouched) continue;
    v1::StoredSlot& slot = *out.add_slots();
    slot.set_offset(i);
    EncodeSlot(configuration.slots[i], slot);
  }
}

absl::StatusOr<ip::Prefix> RangeOf(const std::string& base, uint32_t prefix_length) {
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::FromBytes(base));
  if (prefix_length == 0) return ip::Prefix::Host(address);
  if (prefix_length > 128) return absl::DataLossError("a prefix length above 128");
  ASSIGN_OR_RETURN(const ip::Prefix range,
                   ip::Prefix::Of(address, static_cast<int>(prefix_length)));
  if (range.base() != address) return absl::DataLossError("a block with host bits");
  if (range.size() > kMaxBlock) return absl::DataLossError("a block that is too large");
  return range;
}

absl::StatusOr<Configuration> Decode(const v1::HeldAddress& in, const v1::NodeRecord& record) {
  ASSIGN_OR_RETURN(const ip::Prefix range, RangeOf(in.address(), in.prefix_length()));
  std::string pool = in.pool();
  if (in.pool_number() > 0) {
    if (in.pool_number() > static_cast<uint32_t>(record.pools_size())) {
      return absl::DataLossError(fmt::format("unknown pool number {}", in.pool_number()));
    }
    pool = record.pools(static_cast<int>(in.pool_number()) - 1);
  }
  const int64_t since =
      in.state_since_unix_ms() != 0 ? in.state_since_unix_ms() : in.since_unix_ms();
  Configuration configuration(range, std::move(pool), in.configuration(),
                              absl::FromUnixMillis(since));
  ASSIGN_OR_RETURN(configuration.state, StateFromProto(in.state()));
  configuration.denied_until = absl::FromUnixMillis(in.denied_until_unix_ms());
  if (configuration.slots.size() == 1 && in.prefix_length() == 0) {
    ASSIGN_OR_RETURN(configuration.slots.front(), DecodeSlot(in));
    return configuration;
  }
  for (const v1::StoredSlot& slot : in.slots()) {
    if (slot.offset() >= configuration.slots.size()) {
      return absl::DataLossError("a slot outside its block");
    }
    ASSIGN_OR_RETURN(configuration.slots[slot.offset()], DecodeSlot(slot));
  }
  return configuration;
}

// --- What the cloud has yet to give. ---

void EncodePrefix(const ip::Prefix& prefix, v1::StoredPrefix& out) {
  out.set_base(prefix.base().ToBytes());
  out.set_prefix_length(static_cast<uint32_t>(prefix.length()));
}

absl::StatusOr<ip::Prefix> DecodePrefix(const v1::StoredPrefix& in) {
  ASSIGN_OR_RETURN(const ip::Address base, ip::Address::FromBytes(in.base()));
  if (in.prefix_length() > 128) return absl::DataLossError("a prefix length above 128");
  ASSIGN_OR_RETURN(const ip::Prefix prefix,
                   ip::Prefix::Of(base, static_cast<int>(in.prefix_length())));
  if (prefix.base() != base) return absl::DataLossError("a prefix with host bits");
  return prefix;
}

void Encode(const WantedEntry& wanted, v1::WantedAddress& out) {
  out.set_v6(wanted.family == ip::Family::kV6);
  out.set_prefix_length(static_cast<uint32_t>(wanted.prefix_length));
  out.set_since_unix_ms(absl::ToUnixMillis(wanted.since));
  if (wanted.given) EncodePrefix(*wanted.given, *out.mutable_given());
  out.set_problem(wanted.problem);
  out.set_given_back(wanted.given_back);
}

absl::StatusOr<WantedEntry> Decode(const v1::WantedAddress& in, const v1::NodeRecord& record) {
  const uint32_t bits = in.v6() ? 128 : 32;
  // A block may be as large as a record may hold.
  if (in.prefix_length() > bits || in.prefix_length() + 12 < bits) {
    return absl::DataLossError("a wanted block that is too large");
  }
  if (in.pool_number() > static_cast<uint32_t>(record.pools_size())) {
    return absl::DataLossError(fmt::format("unknown pool number {}", in.pool_number()));
  }
  WantedEntry wanted{.family = in.v6() ? ip::Family::kV6 : ip::Family::kV4,
                     .prefix_length = static_cast<int>(in.prefix_length()),
                     .since = absl::FromUnixMillis(in.since_unix_ms()),
                     .problem = in.problem(),
                     .given_back = in.given_back()};
  if (in.pool_number() > 0) wanted.pool = record.pools(static_cast<int>(in.pool_number()) - 1);
  if (in.has_given()) {
    ASSIGN_OR_RETURN(wanted.given, DecodePrefix(in.given()));
  }
  return wanted;
}

absl::Status DecodeWanted(const v1::NodeRecord& in, NodeRecord& record) {
  record.instance = in.instance();
  record.nic_read = in.nic_read();
  for (const v1::StoredPrefix& subnet : in.subnets()) {
    ASSIGN_OR_RETURN(record.subnets.emplace_back(), DecodePrefix(subnet));
  }
  for (const v1::WantedAddress& stored : in.wanted()) {
    ASSIGN_OR_RETURN(WantedEntry wanted, Decode(stored, in));
    if (!record.wanted.emplace(stored.configuration(), std::move(wanted)).second) {
      return absl::DataLossError(stored.configuration() + " is wanted twice");
    }
  }
  return absl::OkStatus();
}

// --- Nodes. ---

NodeMode ModeFromProto(int mode) {
  return v1::NodeRecord::Mode_IsValid(mode) ? static_cast<NodeMode>(mode) : NodeMode::kActive;
}

uint32_t PoolNumber(const std::string& pool, v1::NodeRecord& out) {
  for (int i = 0; i < out.pools_size(); ++i) {
    if (out.pools(i) == pool) return static_cast<uint32_t>(i) + 1;
  }
  out.add_pools(pool);
  return static_cast<uint32_t>(out.pools_size());
}

template <typename Proto>
absl::StatusOr<Proto> Parse(std::string_view bytes, std::string_view what) {
  Proto in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(fmt::format("not a {}", what));
  }
  return in;
}

}  // namespace

std::string StoreKeyOf(const NodeKey& key) {
  return fmt::format("{}{}/{}", kNodeKeyPrefix, key.name, key.vm_id);
}

std::string QuarantineKeyOf(const ip::Address& address) {
  return fmt::format("{}{}", kQuarantineKeyPrefix, address.ToString());
}

std::string ReservationKeyOf(const std::string& name) {
  return fmt::format("{}{}", kReservationKeyPrefix, name);
}

std::string EncodeNode(const NodeRecord& record) {
  alignas(std::max_align_t) std::array<char, kFirstBlock> block;
  google::protobuf::Arena arena(block.data(), block.size());
  auto& out = *google::protobuf::Arena::CreateMessage<v1::NodeRecord>(&arena);
  out.set_node_name(record.key.name);
  out.set_vm_id(record.key.vm_id);
  out.set_boot_id(record.boot_id);
  out.set_session_epoch(record.session_epoch);
  out.set_nic_mac(record.nic_mac.ToString());
  out.set_next_configuration(record.next_configuration);
  out.set_mode(static_cast<v1::NodeRecord::Mode>(record.mode));
  out.set_vnet(record.vnet);
  for (const auto& [key, value] : record.labels) (*out.mutable_labels())[key] = value;
  for (const auto& [base, configuration] : record.configurations) {
    Encode(configuration, PoolNumber(configuration.pool, out), *out.add_addresses());
  }
  for (const auto& [range, at] : record.released) {
    v1::ReleasedRange& released = *out.add_released();
    released.set_base(range.base().ToBytes());
    released.set_prefix_length(static_cast<uint32_t>(range.length()));
    released.set_released_unix_ms(absl::ToUnixMillis(at));
  }
  out.set_instance(record.instance);
  for (const ip::Prefix& subnet : record.subnets) EncodePrefix(subnet, *out.add_subnets());
  out.set_nic_read(record.nic_read);
  for (const auto& [name, wanted] : record.wanted) {
    v1::WantedAddress& entry = *out.add_wanted();
    entry.set_configuration(name);
    if (!wanted.pool.empty()) entry.set_pool_number(PoolNumber(wanted.pool, out));
    Encode(wanted, entry);
  }
  return out.SerializeAsString();
}

absl::StatusOr<NodeRecord> DecodeNode(std::string_view bytes) {
  alignas(std::max_align_t) std::array<char, kFirstBlock> block;
  google::protobuf::Arena arena(block.data(), block.size());
  auto& in = *google::protobuf::Arena::CreateMessage<v1::NodeRecord>(&arena);
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("not a node record");
  }
  if (in.node_name().empty()) return absl::DataLossError("not a node record");
  NodeRecord record;
  record.key = {.name = in.node_name(), .vm_id = in.vm_id()};
  record.boot_id = in.boot_id();
  record.session_epoch = in.session_epoch();
  record.next_configuration = in.next_configuration();
  record.mode = ModeFromProto(in.mode());
  record.vnet = in.vnet();
  record.labels.insert(in.labels().begin(), in.labels().end());
  const auto mac = ip::MacAddress::Parse(in.nic_mac());
  if (!mac.ok()) return Damaged(in.node_name(), base::MessageOf(mac.status()));
  record.nic_mac = *mac;
  for (const v1::HeldAddress& stored : in.addresses()) {
    auto configuration = Decode(stored, in);
    if (!configuration.ok()) {
      return Damaged(in.node_name(), base::MessageOf(configuration.status()));
    }
    const ip::Prefix range = configuration->range;
    if (record.Holding(range.base()) != nullptr || record.Holding(range.last()) != nullptr) {
      return Damaged(in.node_name(), range.ToString() + " stands in it twice");
    }
    record.configurations.emplace(range.base(), *std::move(configuration));
  }
  for (const v1::ReleasedRange& stored : in.released()) {
    const auto range = RangeOf(stored.base(), stored.prefix_length());
    if (!range.ok()) return Damaged(in.node_name(), base::MessageOf(range.status()));
    record.released[*range] = absl::FromUnixMillis(stored.released_unix_ms());
  }
  if (const absl::Status wanted = DecodeWanted(in, record); !wanted.ok()) {
    return Damaged(in.node_name(), base::MessageOf(wanted));
  }
  return record;
}

std::string EncodeQuarantine(const ip::Address& address, const Quarantine& quarantine) {
  v1::QuarantineRecord out;
  out.set_address(address.ToBytes());
  out.set_reason(quarantine.reason);
  out.set_since_unix_ms(absl::ToUnixMillis(quarantine.since));
  if (quarantine.until) out.set_until_unix_ms(absl::ToUnixMillis(*quarantine.until));
  out.set_doubled(quarantine.doubled);
  return out.SerializeAsString();
}

absl::StatusOr<std::pair<ip::Address, Quarantine>> DecodeQuarantine(std::string_view bytes) {
  ASSIGN_OR_RETURN(const v1::QuarantineRecord in,
                   Parse<v1::QuarantineRecord>(bytes, "quarantine record"));
  const auto address = ip::Address::FromBytes(in.address());
  if (!address.ok()) return absl::DataLossError("a quarantine record without an address");
  Quarantine quarantine{.reason = in.reason(),
                        .since = absl::FromUnixMillis(in.since_unix_ms()),
                        .doubled = in.doubled()};
  if (in.until_unix_ms() != 0) quarantine.until = absl::FromUnixMillis(in.until_unix_ms());
  return std::pair{*address, std::move(quarantine)};
}

std::string EncodeStore(const RecoveryState& state) {
  v1::StoreRecord out;
  out.set_store_id(state.store_id);
  out.set_epoch(state.epoch);
  for (const std::string& former : state.former) out.add_former(former);
  if (state.cause) {
    out.mutable_cause()->set_reason(state.cause->reason);
    out.mutable_cause()->set_since_unix_ms(absl::ToUnixMillis(state.cause->since));
    out.mutable_cause()->set_nodes(state.cause->nodes);
  }
  if (state.unverified_until != absl::InfinitePast()) {
    out.set_unverified_until_unix_ms(absl::ToUnixMillis(state.unverified_until));
  }
  out.set_opened_under(state.opened_under);
  if (state.recovered != absl::InfinitePast()) {
    out.set_recovered_unix_ms(absl::ToUnixMillis(state.recovered));
  }
  out.set_backup(state.backup);
  return out.SerializeAsString();
}

absl::StatusOr<RecoveryState> DecodeStore(std::string_view bytes) {
  ASSIGN_OR_RETURN(const v1::StoreRecord in, Parse<v1::StoreRecord>(bytes, "store record"));
  if (in.store_id().empty()) return absl::DataLossError("a store record without an id");
  RecoveryState state{.store_id = in.store_id(),
                      .epoch = in.epoch(),
                      .former = {in.former().begin(), in.former().end()}};
  if (in.has_cause()) {
    state.cause = {.reason = in.cause().reason(),
                   .since = absl::FromUnixMillis(in.cause().since_unix_ms()),
                   .nodes = in.cause().nodes()};
  }
  if (in.unverified_until_unix_ms() != 0) {
    state.unverified_until = absl::FromUnixMillis(in.unverified_until_unix_ms());
  }
  state.opened_under = in.opened_under();
  if (in.recovered_unix_ms() != 0) {
    state.recovered = absl::FromUnixMillis(in.recovered_unix_ms());
  }
  state.backup = in.backup();
  return state;
}

absl::StatusOr<std::string> MarkedAsBackup(std::string_view bytes) {
  ASSIGN_OR_RETURN(RecoveryState state, DecodeStore(bytes));
  state.backup = true;
  return EncodeStore(state);
}

std::string EncodeReservation(const Reservation& reservation) {
  v1::ReservationRecord out;
  out.set_name(reservation.name);
  out.set_by_count(reservation.by_count);
  out.set_addresses_per_node(reservation.addresses_per_node);
  out.set_created_unix_ms(absl::ToUnixMillis(reservation.created));
  out.set_expires_unix_ms(absl::ToUnixMillis(reservation.expires));
  for (const auto& [node, missing] : reservation.missing) out.add_nodes(node);
  out.set_open_places(reservation.open_places);
  return out.SerializeAsString();
}

absl::StatusOr<Reservation> DecodeReservation(std::string_view bytes) {
  ASSIGN_OR_RETURN(const v1::ReservationRecord in,
                   Parse<v1::ReservationRecord>(bytes, "reservation record"));
  if (in.name().empty()) return absl::DataLossError("a reservation record without a name");
  Reservation reservation{.name = in.name(),
                          .by_count = in.by_count(),
                          .addresses_per_node = in.addresses_per_node(),
                          .created = absl::FromUnixMillis(in.created_unix_ms()),
                          .expires = absl::FromUnixMillis(in.expires_unix_ms())};
  for (const std::string& node : in.nodes()) reservation.missing.try_emplace(node);
  reservation.open_places = in.open_places();
  return reservation;
}

void FillRefused(const BreakerState::Refused& refused, v1::BreakerRecord::Refused& out) {
  out.set_addresses(refused.addresses);
  out.set_source(refused.source);
  out.set_source_count(refused.source_count);
}

BreakerState::Refused RefusedFrom(const v1::BreakerRecord::Refused& in) {
  return {.addresses = in.addresses(), .source = in.source(), .source_count = in.source_count()};
}

std::string EncodeBreaker(const BreakerState& state) {
  v1::BreakerRecord out;
  if (state.freeze) {
    out.set_frozen_reason(state.freeze->reason);
    out.set_frozen_unix_ms(absl::ToUnixMillis(state.freeze->since));
    FillRefused(state.freeze->refused, *out.mutable_frozen());
  }
  for (const BreakerState::Freed& freed : state.freed) {
    v1::BreakerRecord::Freed& stored = *out.add_freed();
    stored.set_unix_ms(absl::ToUnixMillis(freed.at));
    stored.set_addresses(freed.addresses);
  }
  out.set_trips(state.trips);
  if (state.pardon) {
    out.set_pardoned_reason(state.pardon->reason);
    out.set_pardoned_unix_ms(absl::ToUnixMillis(state.pardon->since));
    FillRefused(state.pardon->refused, *out.mutable_pardoned());
    out.set_pardoned_drawn(state.pardon->drawn);
  }
  return out.SerializeAsString();
}

absl::StatusOr<BreakerState> DecodeBreaker(std::string_view bytes) {
  ASSIGN_OR_RETURN(const v1::BreakerRecord in, Parse<v1::BreakerRecord>(bytes, "breaker record"));
  BreakerState state{.trips = in.trips()};
  if (!in.frozen_reason().empty()) {
    state.freeze = {.since = absl::FromUnixMillis(in.frozen_unix_ms()),
                    .reason = in.frozen_reason(),
                    .refused = RefusedFrom(in.frozen())};
  }
  if (!in.pardoned_reason().empty()) {
    state.pardon = {.since = absl::FromUnixMillis(in.pardoned_unix_ms()),
                    .reason = in.pardoned_reason(),
                    .refused = RefusedFrom(in.pardoned()),
                    .drawn = in.pardoned_drawn()};
  }
  for (const v1::BreakerRecord::Freed& freed : in.freed()) {
    state.freed.push_back({absl::FromUnixMillis(freed.unix_ms()), freed.addresses()});
  }
  return state;
}

}  // namespace spoke::ipam
