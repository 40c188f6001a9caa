#include "lib/node_api/session.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/node_api/fields.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

using base::CutText;

absl::Status CheckLabels(const v1::Hello& in) {
  RETURN_IF_ERROR(CheckCount("labels", static_cast<int>(in.labels().size()), kMaxLabels));
  for (const auto& [key, value] : in.labels()) {
    RETURN_IF_ERROR(CheckName("a label", key, kMaxNameBytes));
    if (!value.empty()) RETURN_IF_ERROR(CheckName("label " + key, value, kMaxNameBytes));
  }
  return absl::OkStatus();
}

// Reads an instance in lower case, since that is how everybody compares it: the cloud itself varies
// the case.
absl::StatusOr<std::string> InstanceFromWire(const std::string& in) {
  if (in.empty()) return in;
  RETURN_IF_ERROR(CheckName("instance", in, kMaxIdBytes));
  return absl::AsciiStrToLower(in);
}

absl::StatusOr<std::vector<ip::Prefix>> SubnetsFromWire(
    const google::protobuf::RepeatedPtrField<std::string>& in) {
  RETURN_IF_ERROR(CheckCount("subnets", in.size(), kMaxSubnets));
  std::vector<ip::Prefix> subnets;
  for (const std::string& text : in) {
    auto subnet = ip::Prefix::Parse(text);
    if (!subnet.ok()) return base::Annotate(subnet.status(), "subnets");
    subnets.push_back(*subnet);
  }
  return subnets;
}

// The node's name has been checked.
absl::StatusOr<NodeIdentity> NodeFromWire(const v1::Hello& in) {
  RETURN_IF_ERROR(CheckName("vm_id", in.vm_id(), kMaxIdBytes));
  RETURN_IF_ERROR(CheckName("boot_id", in.boot_id(), kMaxNameBytes));
  RETURN_IF_ERROR(CheckLabels(in));
  if (!in.vnet().empty()) RETURN_IF_ERROR(CheckName("vnet", in.vnet(), kMaxIdBytes));
  NodeIdentity node{.node_name = in.node_name(),
                    .vm_id = in.vm_id(),
                    .boot_id = in.boot_id(),
                    .agent_version = CutText(in.agent_version(), kMaxNameBytes),
                    .labels = {in.labels().begin(), in.labels().end()},
                    .vnet = in.vnet()};
  ASSIGN_OR_RETURN(node.instance, InstanceFromWire(in.instance()));
  ASSIGN_OR_RETURN(node.subnets, SubnetsFromWire(in.subnets()));
  return node;
}

absl::StatusOr<Nic> NicFromWire(const google::protobuf::RepeatedPtrField<v1::Nic>& in) {
  if (in.empty()) return absl::InvalidArgumentError("nics names no NIC");
  RETURN_IF_ERROR(CheckCount("nics", in.size(), kMaxNics));
  Nic nic{.name = CutText(in[0].name(), kMaxNameBytes), .mtu = in[0].mtu()};
  ASSIGN_OR_RETURN(nic.mac, ip::MacAddress::Parse(in[0].mac()));
  ASSIGN_OR_RETURN(nic.addresses, AddressesFromWire("nics 0 addresses", in[0].addresses()));
  return nic;
}

absl::StatusOr<Hello> HelloFromWire(const v1::Hello& in) {
  Hello hello{.policy_version = in.policy_version(),
              .store_token = CutText(in.store_token(), kMaxIdBytes)};
  ASSIGN_OR_RETURN(hello.node, NodeFromWire(in));
  ASSIGN_OR_RETURN(hello.nic, NicFromWire(in.nics()));
  ASSIGN_OR_RETURN(hello.in_use, AssignmentsFromWire("in_use", in.in_use()));
  ASSIGN_OR_RETURN(hello.cooldown, AddressesFromWire("cooldown", in.cooldown()));
  return hello;
}

}  // namespace

void ToWire(const Hello& in, v1::Hello& out) {
  out.set_node_name(in.node.node_name);
  out.set_vm_id(in.node.vm_id);
  out.set_boot_id(in.node.boot_id);
  out.set_agent_version(in.node.agent_version);
  v1::Nic& nic = *out.add_nics();
  nic.set_name(in.nic.name);
  nic.set_mac(in.nic.mac.ToString());
  nic.set_mtu(in.nic.mtu);
  for (const ip::Address& address : in.nic.addresses) nic.add_addresses(address.ToBytes());
  for (const Assignment& assignment : in.in_use) ToWire(assignment, *out.add_in_use());
  for (const ip::Address& address : in.cooldown) out.add_cooldown(address.ToBytes());
  for (const auto& [key, value] : in.node.labels) (*out.mutable_labels())[key] = value;
  out.set_vnet(in.node.vnet);
  out.set_policy_version(in.policy_version);
  out.set_store_token(in.store_token);
  out.set_instance(in.node.instance);
  for (const ip::Prefix& subnet : in.node.subnets) out.add_subnets(subnet.ToString());
}

absl::StatusOr<Hello> FromWire(const v1::Hello& in) {
  RETURN_IF_ERROR(CheckName("node_name", in.node_name(), kMaxNameBytes));
  if (in.node_name().find('/') != std::string::npos) {
    return absl::InvalidArgumentError("node_name must not hold a slash");
  }
  auto hello = HelloFromWire(in);
  if (!hello.ok()) return base::Annotate(hello.status(), "node " + in.node_name());
  return hello;
}

void ToWire(const Welcome& in, v1::Welcome& out) {
  out.set_session_epoch(in.session_epoch);
  out.set_server_version(in.server_version);
  out.set_warning(CutText(in.warning, kMaxReasonBytes));
  out.set_reconnect_within_ms(static_cast<uint32_t>(
      absl::ToInt64Milliseconds(std::min(in.reconnect_within, kMaxReconnectWithin))));
}

Welcome FromWire(const v1::Welcome& in) {
  return {.session_epoch = in.session_epoch(),
          .server_version = in.server_version(),
          .warning = CutText(in.warning(), kMaxReasonBytes),
          .reconnect_within =
              std::min(absl::Milliseconds(in.reconnect_within_ms()), kMaxReconnectWithin)};
}

}  // namespace spoke::node_api
