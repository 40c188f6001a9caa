// The way in which policy is carried to a node, and what the node says of it. Values and their
// codec. Pure.
//
// The bundle is carried as the message that the server has compiled it into: one message is made
// for the thousands of nodes that need the same, so it is shared, and the agent reads it itself, as
// it reads the file that it keeps the bundle in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/ip/address.h"
#include "lib/node_api/fields.h"

namespace spoke::v1 {
class CutCount;
class PolicyAck;
class PolicyBundle;
class PolicyTrial;
class PolicyTrialResult;
}  // namespace spoke::v1

namespace spoke::node_api {

// The policy that a node shall have: all of it, or what has changed.
struct PolicyUpdate {
  std::shared_ptr<const v1::PolicyBundle> bundle;  // The bundle, never nullptr.
  // The share of its connections that the node may end by it, of a thousand; nullopt: all.
  std::optional<uint32_t> max_cut_permille = std::nullopt;

  bool operator==(const PolicyUpdate&) const = default;
};

// An operator's question: what would this policy, which is not put in force, end on the node?
struct PolicyTrial {
  uint64_t id = 0;
  std::shared_ptr<const v1::PolicyBundle> policy;  // The policy, all of it; never nullptr.

  bool operator==(const PolicyTrial&) const = default;
};

// The number of the connections that a node tracks that a policy ends. Only the agent knows which
// rule ends which.
struct CutCount {
  uint64_t connections = 0;  // The connections with a pod at an end.
  uint64_t cut = 0;          // The number of them that are ended.

  bool operator==(const CutCount&) const = default;
};

struct PolicyAck {
  uint64_t version = 0;
  std::string error;  // The error; empty: kept and in force.
  // The number it ends, or would end; nullopt: not counted.
  std::optional<CutCount> cut = std::nullopt;
  bool held = false;  // Whether it would end more than it may.

  bool operator==(const PolicyAck&) const = default;
};

// A connection that a policy ends.
struct CutFlow {
  std::string pod_namespace;  // The pod of the node at an end of it; both empty: none is known.
  std::string pod_name;
  ip::Address address;      // Its end on the node: the pod's, where there is one.
  ip::Address far_address;  // The other end.
  // Whether it ends since peer spokes are kept apart; else an egress policy ends it.
  bool peer_spoke = false;

  bool operator==(const CutFlow&) const = default;
};

// The most connections that an answer names; what is beyond is not taken.
inline constexpr size_t kMaxCutFlows = 5;

// The answer to the trial of that id.
struct PolicyTrialAnswer {
  uint64_t id = 0;
  CutCount cut;
  std::string error;                // The reason why it is not known.
  std::vector<CutFlow> flows = {};  // The first connections that it ends, at most kMaxCutFlows.

  bool operator==(const PolicyTrialAnswer&) const = default;
};

// The most connections that are believed, more than any kernel tracks; so the sum of all nodes
// fits.
inline constexpr uint64_t kMaxTrackedConnections = uint64_t{1} << 32U;
inline constexpr uint32_t kAllPermille = 1000;
inline constexpr size_t kMaxPolicyErrorBytes = 1024;

// None of these fails. A share ends at 1000, a count at kMaxTrackedConnections and a cut at its
// count; errors are cut.
void ToWire(const PolicyUpdate& in, v1::PolicyBundle& out);
PolicyUpdate FromWire(const v1::PolicyBundle& in);
void ToWire(const PolicyTrial& in, v1::PolicyTrial& out);
PolicyTrial FromWire(const v1::PolicyTrial& in);
void ToWire(const PolicyAck& in, v1::PolicyAck& out);
PolicyAck FromWire(const v1::PolicyAck& in);
void ToWire(const PolicyTrialAnswer& in, v1::PolicyTrialResult& out);
PolicyTrialAnswer FromWire(const v1::PolicyTrialResult& in);

}  // namespace spoke::node_api
