// BpfFastPath: loads the programs, takes over what an earlier agent has left, and takes all off.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/queueing/filter.h"
#include "netagent/bpf/maps.h"
#include "netagent/claims.h"
#include "netagent/fastpath/bpf_fast_path.h"
#include "netagent/fastpath/fast_programs.h"

namespace spoke::netagent {
namespace {

// The bytes of a slot in layouts before, which is the beginning of the present one.
constexpr uint32_t kSlot1Bytes = offsetof(spoke_slot, has_mac);
constexpr uint32_t kSlot3Bytes = offsetof(spoke_slot, begun);
constexpr std::initializer_list<netlink::Direction> kBothDirections = {netlink::Direction::kIngress,
                                                                       netlink::Direction::kEgress};

// Walks over the addresses to which packets go the ordinary way.
template <typename Key>
absl::StatusOr<std::vector<Key>> OrdinaryKeys(int map) {
  std::vector<Key> keys;
  const auto look = [&](const Key& key, const spoke_place& place) {
    if (place.link == 0) keys.push_back(key);
  };
  constexpr std::string_view kWhat = "fast path: read where pods are";
  RETURN_IF_ERROR((ForEachElement<Key, spoke_place>(map, kWhat, look)));
  return keys;
}

bool IsProgram(const netlink::BpfFilter& filter) {
  return filter.priority == claims::kFastPathPriority && filter.program_id != 0;
}

}  // namespace

absl::StatusOr<uint32_t> BpfFastPath::FindProgram() {
  // The uplink is one of these links, and so is each pod's link.
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket_, ""));
  for (const netlink::Link& link : links) {
    ASSIGN_OR_RETURN(
        const auto filters,
        netlink::DumpFilters(socket_, link.index, netlink::HookOf(netlink::Direction::kIngress)));
    for (const netlink::BpfFilter& filter : filters) {
      if (IsProgram(filter)) return filter.program_id;
    }
  }
  return 0;
}

absl::StatusOr<bool> BpfFastPath::IsThere() {
  if (programs_) return true;
  ASSIGN_OR_RETURN(const uint32_t found, FindProgram());
  return found != 0;
}

absl::Status BpfFastPath::Load() {
  if (programs_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint32_t found, FindProgram());
  auto loaded = Programs::Load(FastPrograms(), found);
  // The programs come off: nobody could change any more what those go by that an earlier agent has
  // left.
  if (!loaded.ok() && found != 0) RETURN_IF_ERROR(TakeOffAllBut({}));
  if (!loaded.ok()) return loaded.status();
  Programs programs = *std::move(loaded);
  processors_ = libbpf_num_possible_cpus();
  if (processors_ <= 0) return MapError(-processors_, "fast path: count the processors");
  programs_ = std::move(programs);
  absl::Status status;
  if (found != 0 && programs_->fresh()) {
    status = CarryOver(found);
  } else {
    status = ReadSlots();
  }
  if (!status.ok()) Forget();
  return status;
}

absl::Status BpfFastPath::CarryOver(uint32_t program_id) {
  os::UniqueFd slots = FindMap(program_id, "spoke_slots", kSlot1Bytes);
  const bool are_all_fast = slots.valid();  // Layout 1 had no others.
  if (!slots.valid()) slots = FindMap(program_id, "spoke_slots", kSlot3Bytes);
  // Pods that go by maps that nobody knows would go on by them, and count where nobody looks.
  if (!slots.valid()) return TakeOffAllBut({});
  slots_.Clear();
  ordinary_.clear();
  former_ = {.v4 = FindMap(program_id, "spoke_pairs4", sizeof(uint64_t)),
             .v6 = FindMap(program_id, "spoke_pairs6", sizeof(uint64_t))};
  for (uint32_t slot = 0; slot < SPOKE_MAX_PODS; ++slot) {
    spoke_slot former{};  // When it began is not known: 0.
    if (bpf_map_lookup_elem(slots.get(), &slot, &former) != 0) {
      return MapError(errno, "fast path: read the pods of an agent before");
    }
    if (former.id == 0) continue;
    if (are_all_fast) former.fast = 1;
    slots_.Put(slot, former);
    RETURN_IF_ERROR(WriteSlot(slot));
    if (former.ended == 0) RETURN_IF_ERROR(WriteWay(slot));
  }
  return absl::OkStatus();
}

absl::Status BpfFastPath::FinishCarryOver() {
  if (!former_) return absl::OkStatus();
  std::set<uint32_t> ours = {uplink_};
  for (const auto& [slot, pod] : slots_.all()) {
    if (pod.ended == 0) ours.insert(pod.link);
  }
  // Other devices, such as another uplink, would go on by the maps of the agent before.
  RETURN_IF_ERROR(TakeOffAllBut(ours));
  RETURN_IF_ERROR(pairs().TakeOver(*former_, slots_.all()));
  std::optional<FormerPairs> former = std::exchange(former_, std::nullopt);
  absl::Status status;
  for (const auto& [slot, pod] : slots_.all()) {
    if (pod.ended == 0) status.Update(WriteWay(slot));
  }
  if (!status.ok()) former_ = std::move(former);
  return status;
}

absl::Status BpfFastPath::ReadSlots() {
  slots_.Clear();
  ordinary_.clear();
  if (programs_->fresh()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<spoke_slot> slots,
                   ReadFirst<spoke_slot>(programs_->map("spoke_slots"), SPOKE_MAX_PODS, 1,
                                         "fast path: read the pods of an earlier agent"));
  for (uint32_t slot = 0; slot < SPOKE_MAX_PODS; ++slot) {
    if (slots[slot].id != 0) slots_.Put(slot, slots[slot]);
  }
  return ReadOrdinary();
}

absl::Status BpfFastPath::ReadOrdinary() {
  ASSIGN_OR_RETURN(const auto words, OrdinaryKeys<uint32_t>(programs_->map("spoke_places4")));
  ASSIGN_OR_RETURN(const auto v6, OrdinaryKeys<spoke_address>(programs_->map("spoke_places6")));
  for (const uint32_t word : words) {
    ordinary_.insert(FromLayout(spoke_address{.word = {word}}, true));
  }
  for (const spoke_address& address : v6) ordinary_.insert(FromLayout(address, false));
  // Pods that are not fast have the same entries.
  for (const ip::Address& address : PodAddresses()) ordinary_.erase(address);
  return absl::OkStatus();
}

absl::Status BpfFastPath::TakeOffAllBut(const std::set<uint32_t>& kept) {
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket_, ""));
  for (const netlink::Link& link : links) {
    if (kept.contains(static_cast<uint32_t>(link.index))) continue;
    ASSIGN_OR_RETURN(const bool has, HasProgram(link.index, netlink::Direction::kIngress));
    if (has) RETURN_IF_ERROR(TakeOff(static_cast<uint32_t>(link.index), kBothDirections));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> BpfFastPath::HasProgram(int32_t link, netlink::Direction direction) {
  ASSIGN_OR_RETURN(const auto filters,
                   netlink::DumpFilters(socket_, link, netlink::HookOf(direction)));
  return std::any_of(filters.begin(), filters.end(), IsProgram);
}

absl::Status BpfFastPath::Remove() {
  const absl::Status first = TakeOffAllBut({});
  uplink_ = 0;
  learns_ = false;
  slots_.Clear();
  ordinary_.clear();
  Forget();
  return first;
}

void BpfFastPath::Forget() {
  programs_.reset();
  former_.reset();
}

}  // namespace spoke::netagent
