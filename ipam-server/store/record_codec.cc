#include "ipam-server/store/record_codec.h"

#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/record.pb.h"

namespace spoke::ipam {
namespace {

absl::Status Damaged(std::string_view node, std::string_view what) {
  return absl::DataLossError(fmt::format("record of node \"{}\": {}", node, what));
}

void Encode(const ip::Address& address, const HeldAddress& held, v1::HeldAddress& out) {
  out.set_address(address.ToBytes());
  out.set_pool(held.pool);
  out.set_configuration(held.configuration);
  out.set_state(held.state == LeaseState::kAttached ? v1::HeldAddress::STATE_ATTACHED
                                                    : v1::HeldAddress::STATE_ATTACHING);
  out.set_since_unix_ms(absl::ToUnixMillis(held.since));
  out.set_generation(held.generation);
  out.set_cooling(held.use == Use::kCooling);
  if (!held.lessee) return;
  v1::StoredLending& lending = *out.mutable_lending();
  lending.set_container_id(held.lessee->container_id);
  lending.set_ifname(held.lessee->ifname);
  lending.set_pod_namespace(held.lessee->pod_namespace);
  lending.set_pod_name(held.lessee->pod_name);
  lending.set_pod_uid(held.lessee->pod_uid);
}

absl::StatusOr<HeldAddress> Decode(const v1::HeldAddress& in) {
  HeldAddress held;
  switch (in.state()) {
    case v1::HeldAddress::STATE_ATTACHING:
      held.state = LeaseState::kAttaching;
      break;
    case v1::HeldAddress::STATE_ATTACHED:
      held.state = LeaseState::kAttached;
      break;
    default:
      return absl::DataLossError(fmt::format("unknown address state {}", in.state()));
  }
  if (in.has_lending() && in.cooling()) {
    return absl::DataLossError("an address is lent and cooling at once");
  }
  held.pool = in.pool();
  held.configuration = in.configuration();
  held.since = absl::FromUnixMillis(in.since_unix_ms());
  held.generation = in.generation();
  held.use = in.cooling() ? Use::kCooling : Use::kIdle;
  if (in.has_lending()) {
    held.use = Use::kLent;
    held.lessee = Lessee{.container_id = in.lending().container_id(),
                         .ifname = in.lending().ifname(),
                         .pod_namespace = in.lending().pod_namespace(),
                         .pod_name = in.lending().pod_name(),
                         .pod_uid = in.lending().pod_uid()};
  }
  return held;
}

}  // namespace

std::string StoreKeyOf(const NodeKey& key) {
  return fmt::format("{}{}/{}", kNodeKeyPrefix, key.name, key.vm_id);
}

std::string EncodeNode(const NodeRecord& record) {
  v1::NodeRecord out;
  out.set_node_name(record.key.name);
  out.set_vm_id(record.key.vm_id);
  out.set_boot_id(record.boot_id);
  out.set_session_epoch(record.session_epoch);
  out.set_nic_mac(record.nic_mac.ToString());
  out.set_next_configuration(record.next_configuration);
  for (const auto& [address, held] : record.addresses) Encode(address, held, *out.add_addresses());
  return out.SerializeAsString();
}

absl::StatusOr<NodeRecord> DecodeNode(std::string_view bytes) {
  v1::NodeRecord in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || in.node_name().empty()) {
    return absl::DataLossError("not a node record");
  }
  NodeRecord record;
  record.key = {.name = in.node_name(), .vm_id = in.vm_id()};
  record.boot_id = in.boot_id();
  record.session_epoch = in.session_epoch();
  record.next_configuration = in.next_configuration();
  const auto mac = ip::MacAddress::Parse(in.nic_mac());
  if (!mac.ok()) return Damaged(in.node_name(), base::MessageOf(mac.status()));
  record.nic_mac = *mac;
  for (const v1::HeldAddress& stored : in.addresses()) {
    const auto address = ip::Address::FromBytes(stored.address());
    if (!address.ok()) return Damaged(in.node_name(), base::MessageOf(address.status()));
    auto held = Decode(stored);
    if (!held.ok()) return Damaged(in.node_name(), base::MessageOf(held.status()));
    if (!record.addresses.emplace(*address, *std::move(held)).second) {
      return Damaged(in.node_name(), address->ToString() + " stands in it twice");
    }
  }
  return record;
}

}  // namespace spoke::ipam
