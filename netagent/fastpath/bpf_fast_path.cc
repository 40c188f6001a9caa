#include "netagent/fastpath/bpf_fast_path.h"

#include <bpf/bpf.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/queueing/filter.h"
#include "lib/netlink/socket.h"
#include "netagent/bpf/maps.h"
#include "netagent/claims.h"
#include "netagent/fastpath/fast_layout.h"
#include "netagent/fastpath/fast_programs.h"

namespace spoke::netagent {
namespace {

static_assert(claims::kTranslatedMark == SPOKE_TRANSLATED_MARK);
static_assert(kMaxFastPods == SPOKE_MAX_PODS);

constexpr uint32_t kTurn = 0;
constexpr uint32_t kLastId = 1;
constexpr std::initializer_list<netlink::Direction> kBothDirections = {netlink::Direction::kIngress,
                                                                       netlink::Direction::kEgress};

void SetWayAndMac(PodWay way, const std::optional<ip::MacAddress>& mac, spoke_slot& slot) {
  slot.fast = way == PodWay::kFast ? 1 : 0;
  slot.has_mac = mac ? 1 : 0;
  if (mac) std::memcpy(slot.mac, mac->octets.data(), sizeof(slot.mac));
}

FastCounts SumOf(std::span<const spoke_counts> of_processors) {
  FastCounts sum;
  for (const spoke_counts& one : of_processors) {
    sum.sent_packets += one.sent_packets;
    sum.sent_bytes += one.sent_bytes;
    sum.received_packets += one.received_packets;
    sum.received_bytes += one.received_bytes;
  }
  return sum;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BpfFastPath>> BpfFastPath::Create() {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  return std::unique_ptr<BpfFastPath>(new BpfFastPath(std::move(socket)));
}

absl::Status BpfFastPath::PutOnto(uint32_t link, const char* at_ingress) {
  const auto index = static_cast<int32_t>(link);
  const auto filter = [&](const char* name, netlink::Direction direction) {
    return netlink::SetBpfFilter(
        {.link = index, .priority = claims::kFastPathPriority, .name = name, .direct = true},
        netlink::HookOf(direction), programs_->program(name));
  };
  std::vector<netlink::Request> batch = {netlink::AddClsact(index)};
  if (learns_) batch.push_back(filter(kLeaving, netlink::Direction::kEgress));
  batch.push_back(filter(at_ingress, netlink::Direction::kIngress));
  return netlink::SendBatch(socket_, batch).status;
}

absl::Status BpfFastPath::TakeOff(uint32_t link,
                                  std::initializer_list<netlink::Direction> directions) {
  const auto index = static_cast<int32_t>(link);
  absl::Status first;
  for (const auto direction : directions) {
    const netlink::Request request =
        netlink::DeleteBpfFilter(index, claims::kFastPathPriority, direction);
    const absl::Status status = netlink::SendBatch(socket_, std::span(&request, 1)).status;
    // The device is gone, or has no such filters.
    const bool gone = absl::IsNotFound(status) || absl::IsInvalidArgument(status);
    if (!gone) first.Update(status);
  }
  return first;
}

absl::StatusOr<bool> BpfFastPath::RepairOne(uint32_t link, const char* at_ingress) {
  bool whole = true;
  for (const auto direction : {netlink::Direction::kIngress, netlink::Direction::kEgress}) {
    if (direction == netlink::Direction::kEgress && !learns_) continue;
    const auto has = HasProgram(static_cast<int32_t>(link), direction);
    // The device is going, or gone: its pod ends soon.
    if (absl::IsNotFound(has.status())) return false;
    // There is no place for filters any more.
    whole = whole && has.ok() && *has;
  }
  if (whole) return false;
  const absl::Status status = PutOnto(link, at_ingress);
  if (absl::IsNotFound(status)) return false;
  RETURN_IF_ERROR(status);
  return true;
}

absl::StatusOr<size_t> BpfFastPath::Repair() {
  if (!programs_) return size_t{0};
  size_t repaired = 0;
  if (uplink_ != 0) {
    ASSIGN_OR_RETURN(const bool uplink, RepairOne(uplink_, kFromWire));
    repaired += uplink ? 1 : 0;
  }
  const auto& slots = slots_.all();
  auto next = slots.upper_bound(repaired_to_);
  for (size_t i = 0; i < std::min(slots.size(), kRepairedAtOnce); ++i, ++next) {
    if (next == slots.end()) next = slots.begin();
    repaired_to_ = next->first;
    if (next->second.ended != 0) continue;
    ASSIGN_OR_RETURN(const bool pod, RepairOne(next->second.link, kFromPod));
    repaired += pod ? 1 : 0;
  }
  return repaired;
}

absl::Status BpfFastPath::RefreshPods() {
  for (const auto& [slot, content] : slots_.all()) {
    if (content.ended != 0) continue;
    absl::Status status = PutOnto(content.link, kFromPod);
    if (status.ok() && !learns_) status = TakeOff(content.link, {netlink::Direction::kEgress});
    // The link has gone meanwhile: its pod is ended by whoever knows that.
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

absl::Status BpfFastPath::Configure(const FastPathTable& table) {
  const uint32_t uplink = ::if_nametoindex(table.uplink.c_str());
  if (uplink == 0 && !table.uplink.empty()) {
    return absl::NotFoundError(fmt::format("the fast path's uplink {} is not there", table.uplink));
  }
  ASSIGN_OR_RETURN(const spoke_table content, ToLayout(table, uplink));
  const bool is_first = !programs_.has_value();
  RETURN_IF_ERROR(Load());
  const int turns = programs_->map("spoke_turn");
  const int tables = programs_->map("spoke_tables");
  uint32_t turn = 0;
  if (bpf_map_lookup_elem(turns, &kTurn, &turn) != 0)
    return MapError(errno, "fast path: read the turn");
  const uint32_t now = turn & 1U;
  spoke_table before{};
  if (bpf_map_lookup_elem(tables, &now, &before) != 0)
    return MapError(errno, "fast path: read the table");
  const uint32_t other = now ^ 1U;
  RETURN_IF_ERROR(Put(tables, other, content, "fast path: write the table"));
  RETURN_IF_ERROR(Put(turns, kTurn, other, "fast path: turn to the new table"));
  const bool learned = std::exchange(learns_, uplink != 0);
  if (is_first || former_ || learns_ != learned) RETURN_IF_ERROR(RefreshPods());
  // The uplink is this agent's, or that of the one before.
  const uint32_t left = uplink_ != 0 ? uplink_ : before.uplink;
  if (uplink != 0 && uplink != uplink_) RETURN_IF_ERROR(PutOnto(uplink, kFromWire));
  if (left != 0 && left != uplink) RETURN_IF_ERROR(TakeOff(left, kBothDirections));
  uplink_ = uplink;
  return FinishCarryOver();
}

absl::StatusOr<uint64_t> BpfFastPath::NextId() {
  const int map = programs_->map("spoke_turn");
  uint32_t id = 0;
  if (bpf_map_lookup_elem(map, &kLastId, &id) != 0)
    return MapError(errno, "fast path: read the last id");
  ++id;
  RETURN_IF_ERROR(Put(map, kLastId, id, "fast path: write the last id"));
  return uint64_t{id};
}

absl::Status BpfFastPath::WriteSlot(uint32_t slot) {
  return Put(programs_->map("spoke_slots"), slot, slots_.at(slot), "fast path: write a pod");
}

TranslatedPairs BpfFastPath::pairs() const {
  return {.v4 = programs_->map("spoke_pairs4"),
          .v6 = programs_->map("spoke_pairs6"),
          .counts = programs_->map("spoke_pairs_of"),
          .over_share = programs_->map("spoke_excluded")};
}

bool BpfFastPath::IsFast(uint32_t slot) const {
  return slots_.at(slot).fast != 0 && !former_ && !pairs().IsOverShare(slot);
}

absl::Status BpfFastPath::WritePort(uint32_t slot) {
  const spoke_slot& pod = slots_.at(slot);
  spoke_port port{};
  port.v4 = pod.v4;
  port.v6 = pod.v6;
  port.has_v4 = pod.has_v4;
  port.has_v6 = pod.has_v6;
  port.has_mac = pod.has_mac;
  std::copy(std::begin(pod.mac), std::end(pod.mac), std::begin(port.mac));
  port.fast = IsFast(slot) ? 1 : 0;
  port.slot = slot;
  return Put(programs_->map("spoke_ports"), pod.link, port, "fast path: let a pod send");
}

absl::Status BpfFastPath::WritePlaces(uint32_t slot) {
  const spoke_slot& pod = slots_.at(slot);
  spoke_place place{};
  place.link = IsFast(slot) ? pod.link : 0;
  place.slot = slot;
  constexpr std::string_view kWhat = "fast path: say where a pod is";
  if (pod.has_v4 != 0) {
    RETURN_IF_ERROR(Put(programs_->map("spoke_places4"), pod.v4.word[0], place, kWhat));
  }
  if (pod.has_v6 == 0) return absl::OkStatus();
  return Put(programs_->map("spoke_places6"), pod.v6, place, kWhat);
}

absl::Status BpfFastPath::WriteWay(uint32_t slot) {
  RETURN_IF_ERROR(WritePlaces(slot));
  return WritePort(slot);
}

// Writes what the pod may send, then where it is: a packet to it before that goes the ordinary way.
absl::Status BpfFastPath::WritePod(uint32_t slot) {
  const std::vector<spoke_counts> none(static_cast<size_t>(processors_));
  RETURN_IF_ERROR(WriteSlot(slot));
  RETURN_IF_ERROR(pairs().Begin(slot));
  if (bpf_map_update_elem(programs_->map("spoke_count"), &slot, none.data(), BPF_ANY) != 0) {
    return MapError(errno, "fast path: begin to count");
  }
  RETURN_IF_ERROR(WritePort(slot));
  RETURN_IF_ERROR(WritePlaces(slot));
  return PutOnto(slots_.at(slot).link, kFromPod);
}

absl::StatusOr<uint64_t> BpfFastPath::AddPod(const TrafficPod& pod, PodWay way) {
  if (!programs_) return absl::FailedPreconditionError("the fast path has no table yet");
  if (pod.addresses.empty()) {
    return absl::InvalidArgumentError(fmt::format("fast path: {} has no address", pod.host_link));
  }
  RETURN_IF_ERROR(EndPodsOf(pod.host_index));
  spoke_slot content{};
  content.link = pod.host_index;
  content.begun = PairClockNs();
  SetWayAndMac(way, pod.pod_mac, content);
  for (const ip::Address& address : pod.addresses) {
    (address.is_v4() ? content.v4 : content.v6) = ToLayout(address);
    (address.is_v4() ? content.has_v4 : content.has_v6) = 1;
  }
  const auto is_anothers = [this](const ip::Address& address) {
    return slots_.HasAddress(address);
  };
  if (std::any_of(pod.addresses.begin(), pod.addresses.end(), is_anothers)) {
    return absl::AlreadyExistsError(
        fmt::format("fast path: an address of {} is another pod's", pod.host_link));
  }
  const uint32_t slot = slots_.FirstFree();
  if (slot >= SPOKE_MAX_PODS) {
    return absl::ResourceExhaustedError(
        fmt::format("the fast path has room for {} pods", uint32_t{SPOKE_MAX_PODS}));
  }
  ASSIGN_OR_RETURN(content.id, NextId());
  slots_.Put(slot, content);
  const absl::Status status = WritePod(slot);
  for (const ip::Address& address : pod.addresses) ordinary_.erase(address);
  if (status.ok()) return content.id;
  ForgetPod(content.id).IgnoreError();
  return status;
}

absl::Status BpfFastPath::Change(uint64_t id, PodWay way,
                                 const std::optional<ip::MacAddress>& pod_mac) {
  const std::optional<uint32_t> slot = slots_.SlotOf(id);
  if (!slot || slots_.at(*slot).ended != 0) {
    return absl::NotFoundError(fmt::format("fast path: there is no pod {}", id));
  }
  spoke_slot content = slots_.at(*slot);
  SetWayAndMac(way, pod_mac, content);
  slots_.Put(*slot, content);
  RETURN_IF_ERROR(WriteWay(*slot));
  return WriteSlot(*slot);
}

std::set<ip::Address> BpfFastPath::PodAddresses() const {
  std::set<ip::Address> addresses;
  for (const auto& [slot, pod] : slots_.all()) {
    if (pod.ended != 0) continue;
    for (const ip::Address& address : AddressesOf(pod)) addresses.insert(address);
  }
  return addresses;
}

absl::Status BpfFastPath::WriteOrdinary(const ip::Address& address) {
  const spoke_place place{.link = 0, .slot = SPOKE_MAX_PODS};
  const spoke_address key = ToLayout(address);
  constexpr std::string_view kWhat = "fast path: leave an address to the ordinary way";
  RETURN_IF_ERROR(address.is_v4() ? Put(programs_->map("spoke_places4"), key.word[0], place, kWhat)
                                  : Put(programs_->map("spoke_places6"), key, place, kWhat));
  ordinary_.insert(address);
  return absl::OkStatus();
}

absl::Status BpfFastPath::EraseOrdinary(const ip::Address& address) {
  const spoke_address key = ToLayout(address);
  constexpr std::string_view kWhat = "fast path: forget an address";
  RETURN_IF_ERROR(address.is_v4() ? Erase(programs_->map("spoke_places4"), key.word[0], kWhat)
                                  : Erase(programs_->map("spoke_places6"), key, kWhat));
  ordinary_.erase(address);
  return absl::OkStatus();
}

absl::Status BpfFastPath::SetLocal(const std::set<ip::Address>& addresses) {
  if (!programs_) return absl::FailedPreconditionError("the fast path has no table yet");
  std::set<ip::Address> all = PodAddresses();
  all.insert(addresses.begin(), addresses.end());
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const auto is = [&](const ip::Address& address) { return address.family() == family; };
    const auto count = std::count_if(all.begin(), all.end(), is);
    if (count > SPOKE_MAX_PODS) {
      return absl::ResourceExhaustedError(
          fmt::format("this node has {} addresses of a family; the fast path has room for {}",
                      count, uint32_t{SPOKE_MAX_PODS}));
    }
  }
  const std::set<ip::Address> before = ordinary_;
  for (const ip::Address& address : before) {
    if (!addresses.contains(address)) RETURN_IF_ERROR(EraseOrdinary(address));
  }
  return AddLocal({addresses.begin(), addresses.end()});
}

absl::Status BpfFastPath::AddLocal(const std::vector<ip::Address>& addresses) {
  if (!programs_) return absl::FailedPreconditionError("the fast path has no table yet");
  for (const ip::Address& address : addresses) {
    if (slots_.HasAddress(address) || ordinary_.contains(address)) continue;
    RETURN_IF_ERROR(WriteOrdinary(address));
  }
  return absl::OkStatus();
}

absl::Status BpfFastPath::EndPod(uint64_t id) {
  const std::optional<uint32_t> slot = slots_.SlotOf(id);
  if (!slot || slots_.at(*slot).ended != 0) return absl::OkStatus();
  spoke_slot pod = slots_.at(*slot);
  pod.ended = 1;
  slots_.Put(*slot, pod);
  // The entries that an agent that was killed has left may be another pod's by now.
  for (const ip::Address& address : AddressesOf(pod)) {
    if (!slots_.HasAddress(address)) RETURN_IF_ERROR(WriteOrdinary(address));
  }
  if (slots_.SlotsOn(pod.link).empty()) {
    RETURN_IF_ERROR(Erase(programs_->map("spoke_ports"), pod.link, "fast path: forget a link"));
  }
  return WriteSlot(*slot);
}

absl::Status BpfFastPath::EndPodsOf(uint32_t link) {
  for (const uint32_t slot : slots_.SlotsOn(link)) RETURN_IF_ERROR(EndPod(slots_.at(slot).id));
  return absl::OkStatus();
}

absl::Status BpfFastPath::ForgetPod(uint64_t id) {
  const std::optional<uint32_t> slot = slots_.SlotOf(id);
  if (!slot) return absl::OkStatus();
  RETURN_IF_ERROR(EndPod(id));
  const spoke_slot free{};
  RETURN_IF_ERROR(Put(programs_->map("spoke_slots"), *slot, free, "fast path: forget a pod"));
  slots_.Erase(*slot);
  return absl::OkStatus();
}

// A scrape reads this: all pods cost two calls of the kernel. Slots are taken from the first on.
absl::StatusOr<std::vector<FastPodReading>> BpfFastPath::Read() {
  std::vector<FastPodReading> readings;
  if (slots_.all().empty()) return readings;
  const uint32_t slots = slots_.all().rbegin()->first + 1;
  const auto processors = static_cast<size_t>(processors_);
  ASSIGN_OR_RETURN(const std::vector<spoke_counts> counts,
                   ReadFirst<spoke_counts>(programs_->map("spoke_count"), slots, processors,
                                           "fast path: read what pods have sent"));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> over_share,
                   ReadFirst<uint32_t>(programs_->map("spoke_excluded"), slots, 1,
                                       "fast path: read which pods are over their share"));
  for (const auto& [slot, pod] : slots_.all()) {
    FastPodReading reading{.id = pod.id,
                           .way = pod.fast != 0 ? PodWay::kFast : PodWay::kOrdinary,
                           .ended = pod.ended != 0,
                           .over_share = over_share[slot] != 0,
                           .host_index = pod.link};
    if (pod.has_mac != 0) {
      std::memcpy(reading.pod_mac.emplace().octets.data(), pod.mac, sizeof(pod.mac));
    }
    reading.addresses = AddressesOf(pod);
    reading.counts = SumOf(std::span(counts).subspan(slot * processors, processors));
    readings.push_back(std::move(reading));
  }
  std::sort(readings.begin(), readings.end(),
            [](const FastPodReading& a, const FastPodReading& b) { return a.id < b.id; });
  return readings;
}

absl::StatusOr<std::vector<RefusedCount>> BpfFastPath::ReadRefused() {
  static_assert(kRefusedReasons.size() == SPOKE_REFUSED_REASONS);
  std::vector<RefusedCount> refused;
  for (uint32_t reason = 0; reason < SPOKE_REFUSED_REASONS; ++reason) {
    RefusedCount& sum = refused.emplace_back();
    sum.reason = kRefusedReasons.at(reason);
    if (!programs_) continue;
    std::vector<spoke_refused_count> all(static_cast<size_t>(processors_));
    if (bpf_map_lookup_elem(programs_->map("spoke_refused"), &reason, all.data()) != 0) {
      return MapError(errno, "fast path: read what was refused");
    }
    for (const spoke_refused_count& one : all) {
      sum.packets += one.packets;
      sum.bytes += one.bytes;
    }
  }
  return refused;
}

absl::Status BpfFastPath::SweepTranslated() {
  if (!programs_) return absl::OkStatus();
  return pairs().Sweep(kTranslatedFor, slots_.all());
}

}  // namespace spoke::netagent
