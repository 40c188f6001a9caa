#include "ipam-server/reservations/reservation.h"

#include <algorithm>
#include <array>

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
  supplies.reserve(view.pools.size());
  for (const auto& pool : view.pools) supplies.push_back({.free = pool.free, .unit = pool.unit});
  return supplies;
}

uint64_t RoundUp(uint64_t addresses, uint32_t unit) { return (addresses + unit - 1) / unit * unit; }

// Families share no pool, and their units may be worlds apart, so each is divided by itself.
constexpr std::array kFamilies = {ip::Family::kV4, ip::Family::kV6};

std::string NamePools(const CapacityView& view, const std::vector<size_t>& pools) {
  if (pools.empty()) return "there is no pool for it";
  std::string text = pools.size() == 1 ? "pool " : "pools ";
  for (size_t i = 0; i < pools.size() && i < kMaxNamesShown; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", view.pools[pools[i]].name);
  }
  if (pools.size() > kMaxNamesShown)
    text += fmt::format(" and {} more", pools.size() - kMaxNamesShown);
  return text;
}

// Whether a demand can be served from the named pools only, so that it counts against them.
bool DependsOn(const std::vector<size_t>& demanded, const std::vector<size_t>& pools) {
  return std::includes(pools.begin(), pools.end(), demanded.begin(), demanded.end());
}

template <typename Demands>
PoolDivision Divide(const Demands& demands, ip::Family family,
                    const std::vector<PoolSupply>& supplies) {
  std::vector<PoolDemand> wanted;
  for (const auto& [source, addresses] : demands) {
    if (source.family == family && addresses > 0) wanted.push_back({source.pools, addresses});
  }
  return DividePools(wanted, supplies);
}

template <typename Demands>
uint64_t ShortBy(const Demands& demands, const std::vector<PoolSupply>& supplies) {
  uint64_t short_by = 0;
  for (const ip::Family family : kFamilies) short_by += Divide(demands, family, supplies).short_by;
  return short_by;
}

}  // namespace

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
  const auto found = nodes_.find(node);
  const NodePromises others = found == nodes_.end() ? NodePromises() : found->second;
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
    const auto owed = others.parts.find(part.family);
    const uint64_t held =
        uint64_t{part.held} + (owed == others.parts.end() ? 0 : owed->second.addresses);
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

  Demands asked;
  for (const auto& [node, missing] : reservation.missing) {
    for (const FamilyRoom& part : view.nodes.find(node)->second) {
      asked[{part.family, part.pools}] += RoundUp(missing.at(part.family), part.unit);
    }
  }
  for (const FamilyRoom& part : view.joining) {
    asked[{part.family, part.pools}] +=
        RoundUp(reservation.addresses_per_node, part.unit) * reservation.open_places;
  }
  RETURN_IF_ERROR(FitsBeside(DemandsIn(view), asked, reservation.name, view));
  return reservation;
}

// Whether all that is asked for can be had beside what is promised.
absl::Status ReservationBook::FitsBeside(const Demands& promised, const Demands& asked,
                                         std::string_view name, const CapacityView& view) {
  Demands all = promised;
  for (const auto& [source, addresses] : asked) all[source] += addresses;
  const std::vector<PoolSupply> supplies = SuppliesOf(view);
  for (const ip::Family family : kFamilies) {
    const PoolDivision division = Divide(all, family, supplies);
    if (division.short_by == 0) continue;
    uint64_t free = 0;
    for (const size_t pool : division.bottleneck) free += view.pools[pool].free;
    const auto against = [&](const Demands& demands) {
      uint64_t sum = 0;
      for (const auto& [source, addresses] : demands) {
        if (source.family == family && DependsOn(source.pools, division.bottleneck)) {
          sum += addresses;
        }
      }
      return sum;
    };
    return absl::ResourceExhaustedError(fmt::format(
        "reservation \"{}\" is short by {} addresses: {}: {} free, {} of them promised to other "
        "reservations, {} wanted. Enlarge a pool, release a reservation, or ask for less",
        name, division.short_by, NamePools(view, division.bottleneck), free, against(promised),
        against(asked)));
  }
  return absl::OkStatus();
}

// --- What is counted. ---

void ReservationBook::SetMissing(Part& part, uint64_t addresses) {
  const uint64_t before = part.InUnits();
  part.addresses = addresses;
  if (!part.source || before == part.InUnits()) return;
  uint64_t& missing = missing_[*part.source];
  missing = missing - before + part.InUnits();
  if (missing == 0) missing_.erase(*part.source);
}

void ReservationBook::SetSource(NodePromises& promises, const NodeRoom& room) {
  for (auto& [family, part] : promises.parts) {
    const uint64_t addresses = part.addresses;
    SetMissing(part, 0);
    const auto found = std::find_if(room.begin(), room.end(), [&, wanted = family](const auto& r) {
      return r.family == wanted;
    });
    part.source.reset();
    if (found != room.end()) {
      part.source = Source{found->family, found->pools};
      part.unit = found->unit;
    }
    SetMissing(part, addresses);
  }
}

void ReservationBook::CountPlaces(const Reservation& reservation, bool add) {
  if (reservation.open_places == 0) return;
  uint64_t& places = places_[reservation.addresses_per_node];
  if (add) {
    places += reservation.open_places;
    open_.emplace(reservation.created, reservation.name);
  } else {
    places -= reservation.open_places;
    open_.erase({reservation.created, reservation.name});
  }
  if (places == 0) places_.erase(reservation.addresses_per_node);
}

void ReservationBook::Promise(const Reservation& reservation, const std::string& node,
                              const FamilyCounts& missing) {
  NodePromises& promises = nodes_[node];
  promises.reserved += reservation.addresses_per_node;
  promises.reservations.emplace(reservation.created, reservation.name);
  for (const auto& [family, addresses] : missing) {
    Part& part = promises.parts[family];
    SetMissing(part, part.addresses + addresses);
  }
}

void ReservationBook::Withdraw(const Reservation& reservation, const std::string& node,
                               const FamilyCounts& missing) {
  const auto found = nodes_.find(node);
  CHECK(found != nodes_.end(), "what is reserved for a node is counted");
  NodePromises& promises = found->second;
  promises.reserved -= reservation.addresses_per_node;
  promises.reservations.erase({reservation.created, reservation.name});
  for (const auto& [family, addresses] : missing) {
    Part& part = promises.parts[family];
    SetMissing(part, part.addresses - addresses);
  }
  if (promises.reservations.empty()) nodes_.erase(found);
}

void ReservationBook::Index(const Reservation& reservation) {
  for (const auto& [node, missing] : reservation.missing) Promise(reservation, node, missing);
  CountPlaces(reservation, true);
}

void ReservationBook::Unindex(const Reservation& reservation) {
  for (const auto& [node, missing] : reservation.missing) Withdraw(reservation, node, missing);
  CountPlaces(reservation, false);
}

// --- What happens. ---

void ReservationBook::Add(Reservation reservation, const CapacityView& view) {
  Index(reservation);
  for (const auto& [node, missing] : reservation.missing) {
    if (const auto room = view.nodes.find(node); room != view.nodes.end()) {
      SetSource(nodes_.find(node)->second, room->second);
    }
  }
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
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? 0 : found->second.reserved;
}

std::optional<std::string> ReservationBook::OnNodeJoined(const std::string& node,
                                                         const CapacityView& view) {
  if (open_.empty()) return std::nullopt;
  const auto room = view.nodes.find(node);
  CHECK(room != view.nodes.end(), "the view holds the node that joined");
  if (const auto known = nodes_.find(node); known != nodes_.end()) {
    for (const auto& [created, name] : known->second.reservations) {
      if (reservations_.find(name)->second.by_count) return std::nullopt;
    }
  }
  const std::vector<PoolSupply> supplies = SuppliesOf(view);
  const uint64_t short_before = ShortBy(DemandsIn(view), supplies);
  for (const auto& [created, name] : std::set<Age>(open_)) {
    Reservation& reservation = reservations_.find(name)->second;
    auto missing = PlanNode(reservation, node, room->second);
    if (!missing.ok()) continue;  // Its NIC is too small; another node may have room.
    CountPlaces(reservation, false);
    --reservation.open_places;
    CountPlaces(reservation, true);
    Promise(reservation, node, *missing);
    SetSource(nodes_.find(node)->second, room->second);
    if (ShortBy(DemandsIn(view), supplies) <= short_before) {
      reservation.missing[node] = *std::move(missing);
      return name;
    }
    // Its own pools cannot keep the promise.
    Withdraw(reservation, node, *missing);
    CountPlaces(reservation, false);
    ++reservation.open_places;
    CountPlaces(reservation, true);
  }
  return std::nullopt;
}

std::set<std::string> ReservationBook::OnDelivered(std::string_view node, ip::Family family,
                                                   uint32_t addresses) {
  std::set<std::string> changed;
  const auto promises = nodes_.find(node);
  if (promises == nodes_.end()) return changed;
  for (const auto& [created, name] : promises->second.reservations) {
    FamilyCounts& counts = reservations_.find(name)->second.missing.find(node)->second;
    const auto missing = counts.find(family);
    if (missing == counts.end()) continue;
    const uint32_t redeemed = std::min(missing->second, addresses);
    if (redeemed == 0) continue;
    missing->second -= redeemed;
    addresses -= redeemed;
    Part& part = promises->second.parts[family];
    SetMissing(part, part.addresses - redeemed);
    changed.insert(name);
  }
  return changed;
}

void ReservationBook::OnPoolsChanged(const CapacityView& view) {
  for (const auto& [node, room] : view.nodes) {
    if (const auto found = nodes_.find(node); found != nodes_.end()) SetSource(found->second, room);
  }
}

std::set<std::string> ReservationBook::OnNodeGone(std::string_view node) {
  std::set<std::string> changed;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return changed;
  for (const auto& [created, name] : std::set<Age>(found->second.reservations)) {
    Reservation& reservation = reservations_.find(name)->second;
    const auto place = reservation.missing.find(node);
    Withdraw(reservation, std::string(node), place->second);
    reservation.missing.erase(place);
    changed.insert(name);
  }
  return changed;
}

void ReservationBook::Recount(const CapacityView& view) {
  OnPoolsChanged(view);
  for (const auto& [node, room] : view.nodes) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) continue;
    NodePromises& promises = found->second;
    for (const FamilyRoom& part : room) {
      // What the node holds above its own target is shared out among its reservations.
      uint64_t surplus = part.held > part.target ? part.held - part.target : 0;
      uint64_t all = 0;
      for (const auto& [created, name] : promises.reservations) {
        Reservation& reservation = reservations_.find(name)->second;
        const auto there = std::min<uint64_t>(surplus, reservation.addresses_per_node);
        surplus -= there;
        const auto missing = static_cast<uint32_t>(reservation.addresses_per_node - there);
        reservation.missing.find(node)->second[part.family] = missing;
        all += missing;
      }
      SetMissing(promises.parts[part.family], all);
    }
    SetSource(promises, room);  // Families that were not promised before count as well.
  }
}

// --- What is left. ---

ReservationBook::Demands ReservationBook::DemandsIn(const CapacityView& view) const {
  Demands demands = missing_;
  for (const auto& [addresses, places] : places_) {
    for (const FamilyRoom& part : view.joining) {
      demands[{part.family, part.pools}] += RoundUp(addresses, part.unit) * places;
    }
  }
  return demands;
}

Promises ReservationBook::PromisesIn(const CapacityView& view) const {
  const Demands demands = DemandsIn(view);
  const std::vector<PoolSupply> supplies = SuppliesOf(view);
  Promises promises{.by_pool = std::vector<uint64_t>(supplies.size())};
  for (const ip::Family family : kFamilies) {
    const PoolDivision division = Divide(demands, family, supplies);
    promises.short_by += division.short_by;
    for (size_t i = 0; i < supplies.size(); ++i) promises.by_pool[i] += division.by_pool[i];
  }
  return promises;
}

// Others can do without what more is served to them with the pool than without it.
uint64_t ReservationBook::LeftFor(std::string_view node, ip::Family family, size_t pool,
                                  const CapacityView& view) const {
  const uint64_t free = view.pools[pool].free;
  if (missing_.empty() && places_.empty()) return free;
  Demands others = DemandsIn(view);
  if (const auto own = nodes_.find(node); own != nodes_.end()) {
    const auto part = own->second.parts.find(family);
    if (part != own->second.parts.end() && part->second.source) {
      others[*part->second.source] -= part->second.InUnits();
    }
  }
  std::vector<PoolSupply> supplies = SuppliesOf(view);
  const uint64_t short_with = Divide(others, family, supplies).short_by;
  supplies[pool].free = 0;
  const uint64_t short_without = Divide(others, family, supplies).short_by;
  return free - std::min(free, short_without - short_with);
}

}  // namespace spoke::ipam
