#include "lib/node_api/assignments.h"

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {

using base::CutText;

void ToWire(const Assignment& in, v1::Assignment& out) {
  out.set_address(in.address.ToBytes());
  out.set_container_id(in.lessee.container_id);
  out.set_ifname(in.lessee.ifname);
  out.set_pod_namespace(in.lessee.pod_namespace);
  out.set_pod_name(in.lessee.pod_name);
  out.set_pod_uid(in.lessee.pod_uid);
  out.set_generation(in.generation);
  out.set_since_unix_ms(absl::ToUnixMillis(in.since));
}

absl::StatusOr<Assignment> FromWire(const v1::Assignment& in) {
  Assignment assignment;
  ASSIGN_OR_RETURN(assignment.address, ip::Address::FromBytes(in.address()));
  RETURN_IF_ERROR(CheckName("container_id", in.container_id(), kMaxIdBytes));
  RETURN_IF_ERROR(CheckName("ifname", in.ifname(), kMaxNameBytes));
  assignment.generation = in.generation();
  assignment.since = absl::FromUnixMillis(in.since_unix_ms());
  assignment.lessee = {.container_id = in.container_id(),
                       .ifname = in.ifname(),
                       .pod_namespace = CutText(in.pod_namespace(), kMaxNameBytes),
                       .pod_name = CutText(in.pod_name(), kMaxNameBytes),
                       .pod_uid = CutText(in.pod_uid(), kMaxNameBytes)};
  return assignment;
}

absl::StatusOr<std::vector<Assignment>> AssignmentsFromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<v1::Assignment>& in) {
  RETURN_IF_ERROR(CheckCount(field, in.size(), kMaxAssignments));
  std::vector<Assignment> assignments;
  for (int i = 0; i < in.size(); ++i) {
    auto assignment = FromWire(in[i]);
    if (!assignment.ok()) return At(field, i, assignment.status());
    assignments.push_back(*std::move(assignment));
  }
  return assignments;
}

void ToWire(const AssignmentReport& in, v1::AssignmentReport& out) {
  out.set_sequence(in.sequence);
  for (const Assignment& assignment : in.in_use) ToWire(assignment, *out.add_in_use());
  for (const Release& released : in.released) {
    v1::Release& release = *out.add_released();
    release.set_address(released.address.ToBytes());
    release.set_generation(released.generation);
  }
  for (const ip::Address& address : in.cooled) out.add_cooled(address.ToBytes());
}

absl::StatusOr<AssignmentReport> FromWire(const v1::AssignmentReport& in) {
  AssignmentReport report{.sequence = in.sequence()};
  ASSIGN_OR_RETURN(report.in_use, AssignmentsFromWire("in_use", in.in_use()));
  RETURN_IF_ERROR(CheckCount("released", in.released_size(), kMaxAssignments));
  for (int i = 0; i < in.released_size(); ++i) {
    const auto address = ip::Address::FromBytes(in.released(i).address());
    if (!address.ok()) return At("released", i, address.status());
    report.released.push_back({.address = *address, .generation = in.released(i).generation()});
  }
  ASSIGN_OR_RETURN(report.cooled, AddressesFromWire("cooled", in.cooled()));
  return report;
}

void ToWire(const Inventory& in, v1::Inventory& out) {
  out.set_id(in.id);
  for (const ip::Address& address : in.held) out.add_held(address.ToBytes());
  for (const Assignment& assignment : in.in_use) ToWire(assignment, *out.add_in_use());
}

absl::StatusOr<Inventory> FromWire(const v1::Inventory& in) {
  Inventory inventory{.id = in.id()};
  ASSIGN_OR_RETURN(inventory.held, AddressesFromWire("held", in.held()));
  ASSIGN_OR_RETURN(inventory.in_use, AssignmentsFromWire("in_use", in.in_use()));
  return inventory;
}

void ToWire(const ConflictReport& in, v1::ConflictReport& out) {
  out.set_address(in.address.ToBytes());
  if (in.other_mac) out.set_other_mac(in.other_mac->ToString());
}

absl::StatusOr<ConflictReport> FromWire(const v1::ConflictReport& in) {
  ConflictReport report;
  ASSIGN_OR_RETURN(report.address, ip::Address::FromBytes(in.address()));
  if (!in.other_mac().empty()) {
    ASSIGN_OR_RETURN(report.other_mac, ip::MacAddress::Parse(in.other_mac()));
  }
  return report;
}

void ToWire(const EndAssignment& in, v1::EndAssignment& out) {
  out.set_address(in.address.ToBytes());
  out.set_generation(in.generation);
  out.set_reason(CutText(in.reason, kMaxReasonBytes));
}

absl::StatusOr<EndAssignment> FromWire(const v1::EndAssignment& in) {
  EndAssignment end{.generation = in.generation(), .reason = CutText(in.reason(), kMaxReasonBytes)};
  ASSIGN_OR_RETURN(end.address, ip::Address::FromBytes(in.address()));
  return end;
}

}  // namespace spoke::node_api
