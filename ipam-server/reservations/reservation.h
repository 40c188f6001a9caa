// Reservations: so many addresses on each of so many nodes, all or nothing, so that a job whose
// pods must all run at once starts whole or not at all. Pure.
//
// A reservation is decided in one step against everything that was promised before, and holds
// nothing while it waits, because it never waits: two jobs cannot block each other.
//
// What is promised and not yet on a NIC is taken from the free addresses of the pools: LeftFor()
// says how many of a pool a node may have without breaking a promise to another, and whoever
// allocates leaves the rest alone. What is there already is held by raising the node's target by
// ReservedFor(), until the reservation is released or its time is over.
//
// Promises are kept as one sum for all nodes that draw from the same pools, so that a question
// costs what a few sums cost, however many nodes there are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/pools/pool_shares.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

struct ReservationRequest {
  std::string name;
  std::vector<std::string> nodes;   // The known nodes it is for; empty: see `count`.
  uint32_t count = 0;               // The number of nodes that join from now on.
  uint32_t addresses_per_node = 0;  // Addresses of each family that the node has pools for.
  absl::Duration ttl;
};

using FamilyCounts = std::map<ip::Family, uint32_t>;

struct Reservation {
  std::string name;
  bool by_count = false;
  uint32_t addresses_per_node = 0;
  absl::Time created;
  absl::Time expires;
  // What was promised and the node does not hold yet, by node.
  std::map<std::string, FamilyCounts, std::less<>> missing;
  uint32_t open_places = 0;  // Places for nodes still to join.

  // Nodes that hold what was reserved for them.
  uint32_t ReadyNodes() const;
  bool operator==(const Reservation&) const = default;
};

// What of one family a node has and could have.
struct FamilyRoom {
  ip::Family family = ip::Family::kV4;
  std::vector<size_t> pools;  // Pools that it may use: indices into CapacityView::pools, sorted.
  uint32_t unit = 1;          // The largest of theirs.
  uint32_t held = 0;          // The attaching and attached ones.
  uint32_t target = 0;        // The target without reservations.
  uint32_t cap = 0;           // What the NIC can hold.
};

using NodeRoom = std::vector<FamilyRoom>;

struct CapacityView {
  struct Pool {
    std::string_view name;
    uint64_t free = 0;  // Addresses that may be handed out now.
    uint32_t unit = 1;  // 16 when it is handed out in /28 blocks.
  };
  std::vector<Pool> pools;
  // The nodes that a call is about, by name.
  std::map<std::string, NodeRoom, std::less<>> nodes;
  NodeRoom joining;  // What a node that joins may be taken to look like.
};

// How many addresses are promised and not yet held.
struct Promises {
  std::vector<uint64_t> by_pool;  // Where they are to come from, all together.
  // Addresses that were promised and are not there, as after a pool was made smaller. 0 otherwise.
  uint64_t short_by = 0;
};

struct ReservationLimits {
  size_t reservations = 1000;
  uint32_t nodes = 10'000;
  uint32_t addresses_per_node = 1024;
  absl::Duration ttl = absl::Hours(24 * 7);
};

// Not thread-safe; the loop that allocates owns it. The changing calls name the reservations that
// they changed, for the caller to store.
class ReservationBook {
 public:
  explicit ReservationBook(const ReservationLimits& limits = {}) : limits_(limits) {}

  // The reservation as it would be; nothing changes before Add(). `view` has the nodes that the
  // request names. Errors, each with a sentence that says what to do:
  //   kInvalidArgument    the request makes no sense or is beyond the limits
  //   kAlreadyExists      there is one of that name
  //   kNotFound           a node is unknown
  //   kResourceExhausted  it does not fit: which pools are how many short, or which NIC is too
  //   small
  absl::StatusOr<Reservation> Plan(const ReservationRequest& request, const CapacityView& view,
                                   absl::Time now) const;

  // Takes over what Plan() made or what the store held. The name must be free. `view` has its
  // nodes; to one that it lacks nothing is promised before OnPoolsChanged() tells of it.
  void Add(Reservation reservation, const CapacityView& view);

  // Ends a reservation, and returns it as it was. Errors: kNotFound.
  absl::StatusOr<Reservation> Release(std::string_view name);

  // Ends all whose time is over, and returns them.
  std::vector<Reservation> Expire(absl::Time now);

  // How much more than by itself the node should hold, of each family.
  uint32_t ReservedFor(std::string_view node) const;

  // A new node takes the oldest open place of a reservation by count, if its own pools can serve
  // it without breaking another promise. A node has one such place at most. `view` has the node.
  // Returns the name.
  std::optional<std::string> OnNodeJoined(const std::string& node, const CapacityView& view);

  // The node has been given so many addresses: promises to it are redeemed, the oldest first.
  std::set<std::string> OnDelivered(std::string_view node, ip::Family family, uint32_t addresses);

  // The nodes of `view` may draw from other pools than before. What they hold does not matter.
  void OnPoolsChanged(const CapacityView& view);

  // The node is no more: its places go with it, and the others stay.
  std::set<std::string> OnNodeGone(std::string_view node);

  // Works out anew what each node of `view` is still missing, from what it holds beyond its own
  // target. After a restart; so `missing` needs not be stored whenever it changes. A node that did
  // not even hold its own target then counts as missing more than before: if that is not there,
  // short_by says so.
  void Recount(const CapacityView& view);

  // The nodes of `view` do not matter to these two.
  Promises PromisesIn(const CapacityView& view) const;
  // How many of the free addresses of `pool`, which has `family`, the node may have, such that all
  // that is promised to others can still be kept, or is at least no shorter than it was.
  uint64_t LeftFor(std::string_view node, ip::Family family, size_t pool,
                   const CapacityView& view) const;

  const std::map<std::string, Reservation, std::less<>>& all() const { return reservations_; }

 private:
  // The nodes that draw addresses of one family from the same pools.
  struct Source {
    ip::Family family = ip::Family::kV4;
    std::vector<size_t> pools;

    auto operator<=>(const Source&) const = default;
  };
  using Demands = std::map<Source, uint64_t>;  // Addresses, each node's in whole units.
  // What one node is missing of one family.
  struct Part {
    uint64_t addresses = 0;
    uint32_t unit = 1;
    std::optional<Source> source;  // Absent: not known, and not counted.

    uint64_t InUnits() const { return (addresses + unit - 1) / unit * unit; }
  };
  using Age = std::pair<absl::Time, std::string>;  // When it was created, and its name.
  struct NodePromises {
    uint32_t reserved = 0;
    std::map<ip::Family, Part> parts;
    std::set<Age> reservations;
  };

  absl::Status Validate(const ReservationRequest& request) const;
  absl::StatusOr<FamilyCounts> PlanNode(const Reservation& reservation, const std::string& node,
                                        const NodeRoom& room) const;
  static absl::Status FitsBeside(const Demands& promised, const Demands& asked,
                                 std::string_view name, const CapacityView& view);
  void Index(const Reservation& reservation);
  void Unindex(const Reservation& reservation);
  void Promise(const Reservation& reservation, const std::string& node,
               const FamilyCounts& missing);
  void Withdraw(const Reservation& reservation, const std::string& node,
                const FamilyCounts& missing);
  void CountPlaces(const Reservation& reservation, bool add);
  void SetMissing(Part& part, uint64_t addresses);
  void SetSource(NodePromises& promises, const NodeRoom& room);
  Demands DemandsIn(const CapacityView& view) const;

  ReservationLimits limits_;
  std::map<std::string, Reservation, std::less<>> reservations_;
  std::map<std::string, NodePromises, std::less<>> nodes_;
  Demands missing_;                      // The sum over all nodes.
  std::map<uint32_t, uint64_t> places_;  // The open ones, by how many addresses they have.
  std::set<Age> open_;                   // Reservations with open places.
};

}  // namespace spoke::ipam
