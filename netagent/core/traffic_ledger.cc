#include "netagent/core/traffic_ledger.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace spoke::netagent {
namespace {

void Add(const Volume& more, Volume& sum) {
  sum.sent += more.sent;
  sum.received += more.received;
  sum.sent_packets += more.sent_packets;
  sum.received_packets += more.received_packets;
}

Volume VolumeOf(Direction direction, uint64_t packets, uint64_t bytes) {
  if (direction == Direction::kSent) return {.sent = bytes, .sent_packets = packets};
  return {.received = bytes, .received_packets = packets};
}

bool Shares(const TrafficPod& one, const TrafficPod& other) {
  return std::any_of(one.addresses.begin(), one.addresses.end(), [&](const ip::Address& address) {
    return std::find(other.addresses.begin(), other.addresses.end(), address) !=
           other.addresses.end();
  });
}

void PutOwners(const TrafficPod& pod, AddressOwners& owners) {
  for (const ip::Address& address : pod.addresses) owners[address] = pod.pod_namespace;
}

// Of the text in a counter's name: a number is a group's.
std::string NameOfText(const std::string& text, const std::map<std::string, ClassNumber>& groups) {
  ClassNumber number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return text;
  return ClassName(number, groups);
}

VolumeByClass HostVolumes(const std::vector<nft::ElementReading>& elements, Direction direction,
                          const std::map<std::string, ClassNumber>& groups) {
  VolumeByClass volumes;
  for (const nft::ElementReading& element : elements) {
    const auto number = NumberOfKey(element.element.key);
    if (!number) continue;
    Add(VolumeOf(direction, element.packets, element.bytes), volumes[ClassName(*number, groups)]);
  }
  return volumes;
}

constexpr std::string_view kDrop = "drop/";

void AddDrops(const std::vector<nft::CounterReading>& counters, TrafficTotals& totals) {
  for (const nft::CounterReading& counter : counters) {
    if (counter.name == "uncounted") {
      totals.uncounted = {counter.packets, counter.bytes};
      continue;
    }
    if (counter.name.compare(0, kDrop.size(), kDrop) != 0) continue;
    TrafficTotals::Dropped& dropped = totals.drops[counter.name.substr(kDrop.size())];
    dropped.packets += counter.packets;
    dropped.bytes += counter.bytes;
  }
}

}  // namespace

std::string ClassName(ClassNumber number, const std::map<std::string, ClassNumber>& groups) {
  for (const auto& [name, group] : groups) {
    if (group == number) return "group:" + name;
  }
  return ClassMap().NameOf(number);
}

void TrafficLedger::Began(const TrafficPod& pod) { live_.insert_or_assign(pod.host_link, pod); }

void TrafficLedger::Ended(const std::string& host_link, absl::Time now) {
  const auto found = live_.find(host_link);
  if (found == live_.end()) return;
  gone_.push_back({.pod = std::move(found->second), .at = now});
  live_.erase(found);
}

void TrafficLedger::Restore(const TrafficPod& pod) {
  gone_.pop_back();
  Began(pod);
}

const TrafficPod* TrafficLedger::Find(const std::string& host_link) const {
  const auto found = live_.find(host_link);
  return found == live_.end() ? nullptr : &found->second;
}

bool TrafficLedger::IsDue(const Gone& gone, absl::Time now) const {
  return gone.reads >= kReadsAfterEnd || gone.at + kKeptAfterEnd <= now;
}

AddressOwners TrafficLedger::Due(absl::Time now) const {
  AddressOwners due;
  const size_t too_many = gone_.size() > kMaxEnded ? gone_.size() - kMaxEnded : 0;
  for (size_t i = 0; i < gone_.size(); ++i) {
    if (i < too_many || IsDue(gone_[i], now)) PutOwners(gone_[i].pod, due);
  }
  return due;
}

AddressOwners TrafficLedger::InTheWayOf(const TrafficPod& pod) const {
  AddressOwners owners;
  for (const Gone& gone : gone_) {
    if (Shares(gone.pod, pod)) PutOwners(gone.pod, owners);
  }
  return owners;
}

void TrafficLedger::Settled(const AddressOwners& addresses) {
  gone_.erase(std::remove_if(gone_.begin(), gone_.end(),
                             [&](const Gone& gone) {
                               return std::all_of(
                                   gone.pod.addresses.begin(), gone.pod.addresses.end(),
                                   [&](const ip::Address& a) { return addresses.contains(a); });
                             }),
              gone_.end());
}

bool TrafficLedger::Knows(const ip::Address& address) const {
  const auto has = [&](const TrafficPod& pod) {
    return std::find(pod.addresses.begin(), pod.addresses.end(), address) != pod.addresses.end();
  };
  return std::any_of(live_.begin(), live_.end(),
                     [&](const auto& pod) { return has(pod.second); }) ||
         std::any_of(gone_.begin(), gone_.end(), [&](const Gone& gone) { return has(gone.pod); });
}

absl::Time TrafficLedger::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Gone& gone : gone_) {
    next = std::min(next, gone.reads >= kReadsAfterEnd ? gone.at : gone.at + kKeptAfterEnd);
  }
  return next;
}

TrafficTotals TrafficLedger::Total(const TrafficReadings& readings,
                                   const std::map<std::string, ClassNumber>& groups,
                                   bool is_scrape) {
  TrafficTotals totals;
  std::map<ip::Address, VolumeByClass> by_address;
  for (const SetReading& set : readings.pods) {
    for (const nft::ElementReading& element : set.elements) {
      const auto counted = DecodeCounted(set.set, element);
      if (!counted || counted->packets == 0) continue;
      Add(VolumeOf(counted->direction, counted->packets, counted->bytes),
          by_address[counted->address][ClassName(counted->number, groups)]);
    }
  }
  for (const FastPodReading& fast : readings.fast) {
    if (fast.addresses.empty() || fast.counts == FastCounts()) continue;
    Add({.sent = fast.counts.sent_bytes,
         .received = fast.counts.received_bytes,
         .sent_packets = fast.counts.sent_packets,
         .received_packets = fast.counts.received_packets},
        by_address[fast.addresses.front()][ClassName(kCluster, groups)]);
  }
  const auto add_pod = [&](const TrafficPod& pod, bool ended) {
    PodTotals& sum = totals.pods.emplace_back(PodTotals{.pod_namespace = pod.pod_namespace,
                                                        .pod_name = pod.pod_name,
                                                        .pod_uid = pod.pod_uid,
                                                        .ended = ended,
                                                        .volumes = {}});
    VolumeByClass& all = totals.namespaces[pod.pod_namespace];
    for (const ip::Address& address : pod.addresses) {
      for (const auto& [name, volume] : by_address[address]) {
        Add(volume, sum.volumes[name]);
        Add(volume, all[name]);
      }
      by_address.erase(address);
    }
  };
  for (const auto& [link, pod] : live_) add_pod(pod, /*ended=*/false);
  for (Gone& gone : gone_) {
    add_pod(gone.pod, /*ended=*/true);
    if (is_scrape) ++gone.reads;
  }
  for (const nft::CounterReading& counter : readings.counters) {
    const auto parsed = ParseNamespaceCounter(counter.name);
    if (!parsed) continue;
    Add(VolumeOf(parsed->direction, counter.packets, counter.bytes),
        totals.namespaces[parsed->pod_namespace][NameOfText(parsed->class_text, groups)]);
  }
  VolumeByClass& forward = totals.node["forward"];
  for (const auto& [name, classes] : totals.namespaces) {
    for (const auto& [class_name, volume] : classes) Add(volume, forward[class_name]);
  }
  totals.node["input"] = HostVolumes(readings.host_in, Direction::kReceived, groups);
  totals.node["output"] = HostVolumes(readings.host_out, Direction::kSent, groups);
  AddDrops(readings.counters, totals);
  for (const RefusedCount& refused : readings.refused) {
    if (refused.packets == 0) continue;
    TrafficTotals::Dropped& dropped = totals.drops[refused.reason];
    dropped.packets += refused.packets;
    dropped.bytes += refused.bytes;
  }
  return totals;
}

}  // namespace spoke::netagent
