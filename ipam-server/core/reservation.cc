#include "ipam-server/core/reservation.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxNameLength = 253;
constexpr size_t kMaxNamesShown = 5;

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameLength &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

std::string_view NameOf(ip::Family family) { return family == ip::Family::kV4 ? "IPv4" : "IPv6"; }

bool IsComplete(const FamilyCounts& missing) {
  return std::all_of(missing.begin(), missing.end(),
                     [](const auto& entry) { return entry.second == 0; });
}

std::vector<PoolSupply> SuppliesOf(const CapacityView& view) {
  std::vector<PoolSupply> supplies;
  for (const auto& pool : view.pools) supplies.push_back({.free = pool.free, .unit = pool.unit});
  return supplies;
}

const FamilyRoom* FindFamily(const NodeRoom& room, ip::Family family) {
  const auto found = std::find_if(room.begin(), room.end(), [&](const FamilyRoom& candidate) {
    return candidate.family == family;
  });
  return found == room.end() ? nullptr : &*found;
}

std::string NamePools(const CapacityView& view, const std::vector<size_t>& pools) {
  if (pools.empty()) return "there is no pool for it";
  std::string text = pools.size() == 1 ? "pool " : "pools ";
  for (size_t i = 0; i < pools.size() && i < kMaxNamesShown; ++i) {
    text += (i == 0 ? "" : ", ") + view.pools[pools[i]].name;
  }
  if (pools.size() > kMaxNamesShown)
    text += fmt::format(" and {} more", pools.size() - kMaxNamesShown);
  return text;
}

// Whether a demand can be served from the named pools only, so that it counts against them.
bool DependsOn(const PoolDemand& demand, const std::vector<size_t>& pools) {
  return std::includes(pools.begin(), pools.end(), demand.pools.begin(), demand.pools.end());
}

}  // namespace

// The promises that are not redeemed yet, with whose each is.
struct ReservationBook::Demands {
  std::vector<PoolDemand> wanted;
  std::vector<std::string> nodes;  // Empty text: a node still to join.

  void Add(const std::string& node, const NodeRoom& room, const FamilyCounts& missing) {
    for (const auto& [family, addresses] : missing) {
      const FamilyRoom* part = FindFamily(room, family);
      if (addresses == 0 || part == nullptr) continue;
      wanted.push_back({.pools = part->pools, .addresses = addresses});
      nodes.push_back(node);
    }
  }

  void Add(const Reservation& reservation, const CapacityView& view) {
    for (const auto& [node, missing] : reservation.missing) {
      const auto room = view.nodes.find(node);
      if (room != view.nodes.end()) Add(node, room->second, missing);
    }
    FamilyCounts place;
    for (const FamilyRoom& part : view.joining) place[part.family] = reservation.addresses_per_node;
    for (uint32_t i = 0; i < reservation.open_places; ++i) Add("", view.joining, place);
  }
};

uint32_t Reservation::ReadyNodes() const {
  return static_cast<uint32_t>(std::count_if(
      missing.begin(), missing.end(), [](const auto& entry) { return IsComplete(entry.second); }));
}

absl::Status ReservationBook::Validate(const ReservationRequest& request) const {
  const auto invalid = [&](std::string what) {
    return absl::InvalidArgumentError(fmt::format("reservation \"{}\": {}", request.name, what));
  };
  if (!IsName(request.name)) {
    return invalid(
        fmt::format("a name has 1 to {} letters, digits, '.', '_' and '-'", kMaxNameLength));
  }
  if (request.nodes.empty() == (request.count == 0)) {
    return invalid("give either the names of nodes or a count of nodes to come");
  }
  if (request.count > limits_.nodes || request.nodes.size() > limits_.nodes) {
    return invalid(fmt::format("at most {} nodes", limits_.nodes));
  }
  if (request.addresses_per_node == 0 || request.addresses_per_node > limits_.addresses_per_node) {
    return invalid(
        fmt::format("addresses for each node must be 1 to {}", limits_.addresses_per_node));
  }
  if (request.ttl <= absl::ZeroDuration() || request.ttl > limits_.ttl) {
    return invalid(fmt::format("the time to live must be above 0 and at most {}",
                               absl::FormatDuration(limits_.ttl)));
  }
  std::vector<std::string> sorted = request.nodes;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return invalid(fmt::format("node {} is named twice", *twice));
  if (reservations_.contains(request.name)) {
    return absl::AlreadyExistsError(fmt::format(
        "reservation \"{}\" exists: release it first, or choose another name", request.name));
  }
  if (reservations_.size() >= limits_.reservations) {
    return absl::ResourceExhaustedError(fmt::format(
        "there are {} reservations, and no more are kept: release some", reservations_.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<FamilyCounts> ReservationBook::PlanNode(const Reservation& reservation,
                                                       const std::string& node,
                                                       const NodeRoom& room) const {
  const std::string whose = node.empty() ? "a node that joins" : "node " + node;
  if (room.empty()) {
    return absl::ResourceExhaustedError(fmt::format(
        "reservation \"{}\": no pool is for {}: create one, or change the labels a pool asks for",
        reservation.name, whose));
  }
  const auto found = totals_.find(node);
  const Totals others = found == totals_.end() ? Totals{} : found->second;
  const uint32_t wanted = reservation.addresses_per_node;
  FamilyCounts missing;
  for (const FamilyRoom& part : room) {
    const uint64_t before = uint64_t{part.target} + others.reserved;
    if (before + wanted > part.cap) {
      return absl::ResourceExhaustedError(fmt::format(
          "reservation \"{}\": the NIC of {} takes {} {} addresses, and {} are for the node itself "
          "and {} for other reservations: ask for {} a node at most, or for other nodes",
          reservation.name, whose, part.cap, NameOf(part.family), part.target, others.reserved,
          part.cap > before ? part.cap - before : 0));
    }
    // What the node holds beyond its own target and beyond what others were promised will do.
    const auto owed = others.missing.find(part.family);
    const uint64_t held = uint64_t{part.held} + (owed == others.missing.end() ? 0 : owed->second);
    const uint64_t surplus = held > before ? held - before : 0;
    missing[part.family] = static_cast<uint32_t>(wanted - std::min<uint64_t>(surplus, wanted));
  }
  return missing;
}

absl::StatusOr<Reservation> ReservationBook::Plan(const ReservationRequest& request,
                                                  const CapacityView& view, absl::Time now) const {
  RETURN_IF_ERROR(Validate(request));
  Reservation reservation{.name = request.name,
                          .by_count = request.count > 0,
                          .addresses_per_node = request.addresses_per_node,
                          .created = now,
                          .expires = now + request.ttl,
                          .open_places = request.count};
  for (const std::string& node : request.nodes) {
    const auto found = view.nodes.find(node);
    if (found == view.nodes.end()) {
      return absl::NotFoundError(fmt::format(
          "reservation \"{}\": there is no node {}: see `spokectl node list`, or reserve for a "
          "count of nodes to come",
          request.name, node));
    }
    ASSIGN_OR_RETURN(reservation.missing[node], PlanNode(reservation, node, found->second));
  }
  if (request.count > 0) RETURN_IF_ERROR(PlanNode(reservation, "", view.joining).status());

  Demands demands = DemandsIn(view);
  const size_t others = demands.wanted.size();
  demands.Add(reservation, view);
  const PoolDivision division = DividePools(demands.wanted, SuppliesOf(view));
  if (division.short_by == 0) return reservation;
  uint64_t free = 0;
  for (const size_t pool : division.bottleneck) free += view.pools[pool].free;
  uint64_t promised = 0;
  uint64_t wanted = 0;
  for (size_t i = 0; i < demands.wanted.size(); ++i) {
    if (!DependsOn(demands.wanted[i], division.bottleneck)) continue;
    (i < others ? promised : wanted) += demands.wanted[i].addresses;
  }
  return absl::ResourceExhaustedError(fmt::format(
      "reservation \"{}\" is short by {} addresses: {}: {} free, {} of them promised to other "
      "reservations, {} wanted. Enlarge a pool, release a reservation, or ask for less",
      request.name, division.short_by, NamePools(view, division.bottleneck), free, promised,
      wanted));
}

void ReservationBook::Index(const Reservation& reservation) {
  for (const auto& [node, missing] : reservation.missing) {
    Totals& totals = totals_[node];
    totals.reserved += reservation.addresses_per_node;
    for (const auto& [family, addresses] : missing) totals.missing[family] += addresses;
  }
}

void ReservationBook::Unindex(const Reservation& reservation) {
  for (const auto& [node, missing] : reservation.missing) {
    const auto found = totals_.find(node);
    CHECK(found != totals_.end(), "what is reserved for a node is counted");
    found->second.reserved -= reservation.addresses_per_node;
    for (const auto& [family, addresses] : missing) found->second.missing[family] -= addresses;
    if (found->second.reserved == 0) totals_.erase(found);
  }
}

void ReservationBook::Add(Reservation reservation) {
  Index(reservation);
  std::string name = reservation.name;
  const bool is_new = reservations_.emplace(std::move(name), std::move(reservation)).second;
  CHECK(is_new, "a reservation's name is its own");
}

absl::StatusOr<Reservation> ReservationBook::Release(std::string_view name) {
  const auto found = reservations_.find(name);
  if (found == reservations_.end()) {
    return absl::NotFoundError(
        fmt::format("there is no reservation \"{}\": it was released or its time is over", name));
  }
  Reservation reservation = std::move(found->second);
  reservations_.erase(found);
  Unindex(reservation);
  return reservation;
}

std::vector<Reservation> ReservationBook::Expire(absl::Time now) {
  std::vector<Reservation> over;
  for (auto entry = reservations_.begin(); entry != reservations_.end();) {
    if (entry->second.expires > now) {
      ++entry;
      continue;
    }
    over.push_back(std::move(entry->second));
    entry = reservations_.erase(entry);
    Unindex(over.back());
  }
  return over;
}

uint32_t ReservationBook::ReservedFor(std::string_view node) const {
  const auto found = totals_.find(node);
  return found == totals_.end() ? 0 : found->second.reserved;
}

std::vector<Reservation*> ReservationBook::OldestFirst() {
  std::vector<Reservation*> sorted;
  for (auto& [name, reservation] : reservations_) sorted.push_back(&reservation);
  // Of the same age: by name, as the map has them.
  std::stable_sort(sorted.begin(), sorted.end(), [](const Reservation* a, const Reservation* b) {
    return a->created < b->created;
  });
  return sorted;
}

std::optional<std::string> ReservationBook::OnNodeJoined(const std::string& node,
                                                         const CapacityView& view) {
  const auto room = view.nodes.find(node);
  CHECK(room != view.nodes.end(), "the view holds the node that joined");
  for (const auto& [name, reservation] : reservations_) {
    if (reservation.by_count && reservation.missing.contains(node)) return std::nullopt;
  }
  for (Reservation* reservation : OldestFirst()) {
    if (reservation->open_places == 0) continue;
    auto missing = PlanNode(*reservation, node, room->second);
    if (!missing.ok()) continue;  // Its NIC is too small; another node may have room.
    Unindex(*reservation);
    reservation->missing[node] = *std::move(missing);
    --reservation->open_places;
    const bool kept = DividePools(DemandsIn(view).wanted, SuppliesOf(view)).short_by == 0;
    if (!kept) {  // Its own pools cannot keep the promise.
      reservation->missing.erase(node);
      ++reservation->open_places;
    }
    Index(*reservation);
    if (kept) return reservation->name;
  }
  return std::nullopt;
}

std::set<std::string> ReservationBook::OnDelivered(std::string_view node, ip::Family family,
                                                   uint32_t addresses) {
  std::set<std::string> changed;
  const auto totals = totals_.find(node);
  if (totals == totals_.end()) return changed;
  for (Reservation* reservation : OldestFirst()) {
    const auto counts = reservation->missing.find(node);
    if (counts == reservation->missing.end()) continue;
    const auto missing = counts->second.find(family);
    if (missing == counts->second.end()) continue;
    const uint32_t redeemed = std::min(missing->second, addresses);
    if (redeemed == 0) continue;
    missing->second -= redeemed;
    totals->second.missing[family] -= redeemed;
    addresses -= redeemed;
    changed.insert(reservation->name);
  }
  return changed;
}

std::set<std::string> ReservationBook::OnNodeGone(std::string_view node) {
  std::set<std::string> changed;
  if (ReservedFor(node) == 0) return changed;
  for (auto& [name, reservation] : reservations_) {
    const auto found = reservation.missing.find(node);
    if (found == reservation.missing.end()) continue;
    reservation.missing.erase(found);
    changed.insert(name);
  }
  totals_.erase(totals_.find(node));
  return changed;
}

void ReservationBook::Recount(const CapacityView& view) {
  // What the node holds above its own target, still to be shared out among its reservations.
  std::map<std::pair<std::string, ip::Family>, uint64_t> surplus;
  for (Reservation* reservation : OldestFirst()) {
    Unindex(*reservation);
    for (auto& [node, missing] : reservation->missing) {
      const auto room = view.nodes.find(node);
      if (room == view.nodes.end()) continue;
      missing.clear();
      for (const FamilyRoom& part : room->second) {
        const auto [left, is_new] = surplus.try_emplace(
            {node, part.family}, part.held > part.target ? part.held - part.target : 0);
        const uint64_t there = std::min<uint64_t>(left->second, reservation->addresses_per_node);
        left->second -= there;
        missing[part.family] = static_cast<uint32_t>(reservation->addresses_per_node - there);
      }
    }
    Index(*reservation);
  }
}

ReservationBook::Demands ReservationBook::DemandsIn(const CapacityView& view) const {
  Demands demands;
  for (const auto& [name, reservation] : reservations_) demands.Add(reservation, view);
  return demands;
}

Promises ReservationBook::PromisesIn(const CapacityView& view) const {
  const Demands demands = DemandsIn(view);
  PoolDivision division = DividePools(demands.wanted, SuppliesOf(view));
  Promises promises{.by_pool = std::move(division.by_pool), .short_by = division.short_by};
  for (size_t i = 0; i < demands.nodes.size(); ++i) {
    auto& whose = demands.nodes[i].empty() ? promises.joining : promises.by_node[demands.nodes[i]];
    whose.insert(whose.end(), division.by_demand[i].begin(), division.by_demand[i].end());
  }
  return promises;
}

}  // namespace spoke::ipam
