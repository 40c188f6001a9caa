// Policy as the wire and the files of nodes have it (proto/spoke/v1/policy.proto): the one codec of
// the values in values.h. Pure.
//
// An agent reads what it gets here once, when it comes or when the file that keeps it is read; what
// it then passes on is typed. Entries keep the bytes they came in, so that a kind or a field that
// only a newer agent knows survives in the file that agent will read.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/policy/values.h"

namespace spoke::v1 {
class PolicyBundle;
class PolicyEntry;
}  // namespace spoke::v1

namespace spoke::policy {

// The most items of a list. The server takes at most 4096 of an operator.
inline constexpr int kMaxItems = 10'000;

// Makes a v1::PolicyEntry, serialized. A value of UnknownKind gives a key alone.
std::string ToWire(std::string_view key, const Value& value);

// Reads an entry that an agent could act upon: the key is "Kind/name", of the value's own kind
// where that is known; every CIDR is one, without host bits; every namespace has a name that
// Kubernetes allows (RFC 1123 label); an egress policy has a mode, and gateways and a fallback when
// that says so; a limit has a rate. Errors: kInvalidArgument, naming the entry and the text.
absl::StatusOr<Entry> FromWire(const v1::PolicyEntry& in);

// Reads a bundle. Never fails: see Update::mistake.
Update FromWire(const v1::PolicyBundle& in);

}  // namespace spoke::policy
