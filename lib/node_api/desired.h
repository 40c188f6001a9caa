// The addresses that a node shall have, and the server's wishes to get some back. Values and their
// codec. Pure.
//
// What is said has one entry an IP configuration, which is an address or a block. Who assigns them
// (the agent) takes blocks apart.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_api/fields.h"

namespace spoke::v1 {

class DesiredState;
class ReclaimAnswer;
class ReclaimRequest;

// The pods of a node that wait for addresses, and how that stands. Values and their codec. Pure.

class Demand;
class Forecast;

}  // namespace spoke::v1

namespace spoke::node_api {

// One IP configuration that the node shall have: an address or a block.
struct DesiredConfiguration {
  ip::Prefix range;
  std::string name;  // The name on the NIC.
  std::string pool;
  std::optional<ip::MacAddress> nic_mac = std::nullopt;  // The NIC it is on; nullopt: not said.
  absl::Duration cooldown;  // The time for which it is not to be assigned.

  bool operator==(const DesiredConfiguration&) const = default;
};

// A pool that the node draws from, so that an agent with nothing left can say why.
struct PoolState {
  std::string name;
  std::string cidr;
  uint64_t usable = 0;
  uint64_t attached = 0;
  uint64_t free = 0;
  // The namespaces; empty: it is for every pod no other pool is meant for.
  std::vector<std::string> namespaces = {};
  // The address that is given to no node, ever; nullopt: none is known.
  std::optional<ip::Address> unused = {};

  bool operator==(const PoolState&) const = default;
};

// `full` replaces everything; otherwise added and removed are relative to the version before.
struct DesiredState {
  uint64_t version = 0;
  bool full = false;
  std::vector<DesiredConfiguration> added;
  std::vector<ip::Prefix> removed;
  std::vector<PoolState> pools;
  std::string store_token = {};  // The token to keep for the next hello; empty: nothing to keep.

  bool operator==(const DesiredState&) const = default;
};

struct DesiredAck {
  uint64_t version = 0;

  bool operator==(const DesiredAck&) const = default;
};

// The addresses that the server would like back, each entry as a whole.
struct ReclaimRequest {
  uint64_t id = 0;
  std::vector<ip::Prefix> ranges;

  bool operator==(const ReclaimRequest&) const = default;
};

struct ReclaimAnswer {
  uint64_t id = 0;
  std::vector<ip::Prefix> agreed;
  std::vector<ip::Prefix> denied;

  bool operator==(const ReclaimAnswer&) const = default;
};

// Errors of the functions that follow: kInvalidArgument (an address or length that is none; ranges
// of more than kMaxAddresses addresses in all, or in an answer more than kMaxAddresses ranges). A
// MAC or an unused address that is none counts as not said.
void ToWire(const DesiredState& in, v1::DesiredState& out);
absl::StatusOr<DesiredState> FromWire(const v1::DesiredState& in);
void ToWire(const ReclaimRequest& in, v1::ReclaimRequest& out);
absl::StatusOr<ReclaimRequest> FromWire(const v1::ReclaimRequest& in);
void ToWire(const ReclaimAnswer& in, v1::ReclaimAnswer& out);
absl::StatusOr<ReclaimAnswer> FromWire(const v1::ReclaimAnswer& in);

// The numbers of pods of each namespace that wait for addresses that the node does not have: all of
// them, not a change.
struct Demand {
  std::map<std::string, uint32_t> waiting;

  uint64_t pods() const;
  bool operator==(const Demand&) const = default;
};

// The state of what was demanded.
struct Forecast {
  std::string reason;  // The reason: what is being done, or why nothing can be.
  absl::Duration eta;  // The time from when it was said; zero: unknown.

  bool operator==(const Forecast&) const = default;
};

inline constexpr uint32_t kMaxWaitingPods = 4096;
inline constexpr size_t kMaxWaitingNamespaces = 256;
inline constexpr absl::Duration kMaxForecast = absl::Hours(24);

void ToWire(const Demand& in, v1::Demand& out);
// Reads a demand. Never fails. Takes kMaxWaitingPods pods and kMaxWaitingNamespaces namespaces; a
// node cannot serve more at once, and the rest is there when these are served.
Demand FromWire(const v1::Demand& in);

// Neither fails: a reason is cut, an ETA is rounded up to milliseconds and kept within
// kMaxForecast.
void ToWire(const Forecast& in, v1::Forecast& out);
Forecast FromWire(const v1::Forecast& in);

}  // namespace spoke::node_api
