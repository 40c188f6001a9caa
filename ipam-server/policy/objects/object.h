// What operators decide, as values: objects with a kind, a name and a spec. Pure.
//
// The rest of ipam-server/policy knows no kind by name. A kind is one class derived from Spec,
// beside its reader in policy/kinds/: it says what the object claims for itself, what nodes get of
// it, and which changes its present use forbids.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

inline constexpr std::string_view kObjectApiVersion = "spoke/v1";

struct ObjectKey {
  std::string kind;  // "Pool"
  std::string name;  // A label of RFC 1123: "blue".

  // Returns "Pool \"blue\"", for messages.
  std::string ToString() const;
  auto operator<=>(const ObjectKey&) const = default;
};

// Labels of a node, or those that an object wants a node to bear.
using NodeLabels = std::map<std::string, std::string>;

// Whether `labels` has all of `wanted`. Nothing wanted is borne by every node.
bool BearsLabels(const NodeLabels& labels, const NodeLabels& wanted);

// Something that an object has for itself. Two claims of one space clash when they meet (two blocks
// overlap, two words are equal), unless they have the same share: each Pool has its own, while all
// blocks of one traffic class are one share, whichever objects list them.
struct Claim {
  std::string space;  // What they meet in: "addresses", "namespaces".
  std::string share;
  std::variant<ip::Prefix, std::string> what;
  std::string role;  // The role of `what`, for messages: "the cidr", "a block of hub".
  std::string path;  // Where the object says so: "spec.hub".
  int line = 0;      // The line in the object's file; means nothing once it is stored.
};

// Another object that has to be there.
struct Reference {
  ObjectKey key;
  std::string path;  // Where the object says so: "spec.teams".
  int line = 0;      // The line, as in a claim.
};

// A block that must not lie inside one that is claimed: it would have no effect there, or a bad
// one. It may hold such a block: 0.0.0.0/0 holds them all.
struct Avoidance {
  ip::Prefix block;
  std::string space;                // The space of the claims to keep out of.
  std::vector<std::string> shares;  // The shares of those claims; none: any.
  std::string why;                  // The reason and what to do, for messages.
  std::string path;
  int line = 0;
  // How the object has come to the block, for messages: "data.example.org resolves to 10.1.0.5".
  // Empty: it lists it.
  std::string origin = {};
};

// A host that an object names, and whose addresses must keep out of what the rest of the set
// claims; who knows them gives them along (SourcedObject).
struct HostName {
  std::string name;   // The name in lower case, without '*'.
  std::string space;  // The space, as in an avoidance, like the rest.
  std::string why;
  std::string path;
  int line = 0;
};

// What of an object nodes get.
struct NodeEntry {
  std::string value;  // A v1::PolicyEntry, serialized.
  NodeLabels wanted;  // The labels of the nodes that get it.
};

// How the world uses an object now, as the caller found it. Only pools are used so far.
struct ObjectUse {
  uint64_t held = 0;   // Addresses not free: on a NIC, on the way, in cooldown or quarantine.
  ip::Address lowest;  // The lowest of these; means nothing when none is held.
  ip::Address highest;
};

// One kind's decision, right in itself: what it says has been checked by its reader. Immutable.
class Spec {
 public:
  virtual ~Spec() = default;

  // The canonical form: JSON, keys sorted, defaults written out, so that a later version with other
  // defaults reads the same decision. Two specs with the same text are the same.
  virtual std::string ToJson() const = 0;

  virtual std::vector<Claim> Claims() const { return {}; }
  virtual std::vector<Reference> References() const { return {}; }
  virtual std::vector<Avoidance> Avoidances() const { return {}; }
  virtual std::vector<HostName> HostNames() const { return {}; }

  // Returns what nodes get; nullopt: it is for the server only.
  virtual std::optional<NodeEntry> ForNodes(const ObjectKey& /*key*/) const { return std::nullopt; }

  // Whether an object with this spec, used as `use` says, may become `next` (of the same kind), or
  // go (nullptr). Errors: kFailedPrecondition, with what to do first.
  virtual absl::Status CheckChange(const Spec* /*next*/, const ObjectUse& /*use*/) const {
    return absl::OkStatus();
  }
};

struct PolicyObject {
  ObjectKey key;
  // The spec is shared, since the sets before and after a change have most of their objects in
  // common.
  std::shared_ptr<const Spec> spec;
  uint64_t version = 0;  // Policy version of the last change.
  absl::Time changed;
};

// The spec of `object` as its own type; nullptr when it is of another kind.
template <typename T>
const T* SpecOf(const PolicyObject& object) {
  return dynamic_cast<const T*>(object.spec.get());
}

// Whether `name` is a label of RFC 1123: 1 to 63 of a-z, 0-9 and '-', neither end a '-'.
// Errors: kInvalidArgument, with what is allowed.
absl::Status CheckLabel(std::string_view name);

}  // namespace spoke::ipam
