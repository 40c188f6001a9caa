// Which pods of a node have which addresses: what the agent reports, what the server asks for an
// audit, and what both say of one address that has gone wrong. Values and their codec. Pure.
//
// An agent holds an assignment of one or two addresses under one attachment. What is said has one
// entry an address, since the server keeps each address by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/node_api/fields.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace spoke::v1 {
class ConflictReport;
class EndAssignment;
class Inventory;
class Assignment;
class AssignmentReport;
}  // namespace spoke::v1

namespace spoke::node_api {

// What is done with an address that is attached to a node: the agent decides it, and the server
// keeps what the agent reports.
enum class Use : uint8_t { kAvailable, kInUse, kCooldown };

// The holder of an assignment: the attachment, and the pod for people to read.
struct Lessee {
  std::string container_id;
  std::string ifname;
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;

  bool operator==(const Lessee&) const = default;
};

struct Assignment {
  ip::Address address;
  uint64_t generation = 0;  // The number rises with each assignment of the node.
  absl::Time since;
  Lessee lessee;

  bool operator==(const Assignment&) const = default;
};

struct Release {
  ip::Address address;
  uint64_t generation = 0;  // The generation of the assignment that is over.

  bool operator==(const Release&) const = default;
};

// The changes since the last report. It holds at most one of each for one address, in this
// order, which is also the order in which the server takes them.
struct AssignmentReport {
  uint64_t sequence = 0;  // The number rises by one with each report of a session, from 1.
  std::vector<Assignment> in_use;
  std::vector<Release> released;
  std::vector<ip::Address> cooled;

  bool operator==(const AssignmentReport&) const = default;
};

// The report of this number and all before it are durable.
struct ReportAck {
  uint64_t sequence = 0;

  bool operator==(const ReportAck&) const = default;
};

// A question for an audit: what does the agent hold?
struct InventoryRequest {
  uint64_t id = 0;

  bool operator==(const InventoryRequest&) const = default;
};

// The answer: what nobody else may have, that is everything the server has listed for the node but
// for what the agent has given up, and what is assigned. The names of pods may be left out of it.
struct Inventory {
  uint64_t id = 0;
  std::vector<ip::Address> held;
  std::vector<Assignment> in_use;

  bool operator==(const Inventory&) const = default;
};

// The report that another machine answers for an address of the node.
struct ConflictReport {
  ip::Address address;
  std::optional<ip::MacAddress> other_mac;  // The other MAC; nullopt: unknown.

  bool operator==(const ConflictReport&) const = default;
};

// The word that an operator has decided that this assignment is over.
struct EndAssignment {
  ip::Address address;
  uint64_t generation = 0;
  std::string reason;

  bool operator==(const EndAssignment&) const = default;
};

// Errors of all that follow: kInvalidArgument (an address or MAC that is none, a container or
// interface that has no name, more than kMaxAssignments or kMaxAddresses entries), naming the field
// and the place in it. Names of pods and reasons are cut.
void ToWire(const Assignment& in, v1::Assignment& out);
absl::StatusOr<Assignment> FromWire(const v1::Assignment& in);
absl::StatusOr<std::vector<Assignment>> AssignmentsFromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<v1::Assignment>& in);
void ToWire(const AssignmentReport& in, v1::AssignmentReport& out);
absl::StatusOr<AssignmentReport> FromWire(const v1::AssignmentReport& in);
void ToWire(const Inventory& in, v1::Inventory& out);
absl::StatusOr<Inventory> FromWire(const v1::Inventory& in);
void ToWire(const ConflictReport& in, v1::ConflictReport& out);
absl::StatusOr<ConflictReport> FromWire(const v1::ConflictReport& in);
void ToWire(const EndAssignment& in, v1::EndAssignment& out);
absl::StatusOr<EndAssignment> FromWire(const v1::EndAssignment& in);

}  // namespace spoke::node_api
