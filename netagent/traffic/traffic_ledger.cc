#include "netagent/traffic/traffic_ledger.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace spoke::netagent {
namespace {

void Add(const TrafficCount& more, TrafficCount& sum) {
  sum.sent += more.sent;
  sum.received += more.received;
  sum.sent_packets += more.sent_packets;
  sum.received_packets += more.received_packets;
}

TrafficCount VolumeOf(Direction direction, uint64_t packets, uint64_t bytes) {
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

void AddAll(const CountByClass& more, CountByClass& sum) {
  for (const auto& [name, volume] : more) Add(volume, sum[name]);
}

// The names of classes, each made once: a full node's readings have a thousand counts.
class ClassNames {
 public:
  // Borrows `groups`.
  explicit ClassNames(const std::map<std::string, ClassNumber>& groups) : groups_(groups) {}

  const std::string& Of(ClassNumber number) {
    const auto [at, is_new] = names_.try_emplace(number);
    if (is_new) at->second = ClassName(number, groups_);
    return at->second;
  }

 private:
  const std::map<std::string, ClassNumber>& groups_;
  std::map<ClassNumber, std::string> names_;
};

struct CountOfClass {
  ClassNumber number = 0;
  TrafficCount count;
};
// A pod has traffic of few classes. One may be there several times.
using VolumesByAddress = std::map<ip::Address, absl::InlinedVector<CountOfClass, 4>>;

// Returns what the sets and the fast path have counted, by address.
VolumesByAddress CountedByAddress(const TrafficReadings& readings) {
  VolumesByAddress by_address;
  for (const SetReading& set : readings.pods) {
    for (const nft::ElementReading& element : set.elements) {
      const auto counted = DecodeCounted(set.set, element);
      if (!counted || counted->packets == 0) continue;
      by_address[counted->address].push_back(
          {counted->number, VolumeOf(counted->direction, counted->packets, counted->bytes)});
    }
  }
  for (const FastPodReading& fast : readings.fast) {
    if (fast.addresses.empty() || fast.counts == FastCounts()) continue;
    by_address[fast.addresses.front()].push_back(
        {kCluster,
         {.sent = fast.counts.sent_bytes,
          .received = fast.counts.received_bytes,
          .sent_packets = fast.counts.sent_packets,
          .received_packets = fast.counts.received_packets}});
  }
  return by_address;
}

// Returns what was counted for all addresses of the pod, which are gone from `counted` then.
CountByClass TakeVolumes(const TrafficPod& pod, ClassNames& names, VolumesByAddress& counted) {
  CountByClass volumes;
  for (const ip::Address& address : pod.addresses) {
    const auto at = counted.find(address);
    if (at == counted.end()) continue;
    for (const CountOfClass& one : at->second) Add(one.count, volumes[names.Of(one.number)]);
    counted.erase(at);
  }
  return volumes;
}

// Returns the class's name for the text in a counter's name: a number is a group's.
std::string NameOfText(const std::string& text, const std::map<std::string, ClassNumber>& groups) {
  ClassNumber number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return text;
  return ClassName(number, groups);
}

CountByClass HostVolumes(const std::vector<nft::ElementReading>& elements, Direction direction,
                         ClassNames& names) {
  CountByClass volumes;
  for (const nft::ElementReading& element : elements) {
    const auto number = NumberOfKey(element.element.key);
    if (!number) continue;
    Add(VolumeOf(direction, element.packets, element.bytes), volumes[names.Of(*number)]);
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

AddressOwners TrafficLedger::Unsettled() const {
  AddressOwners owners;
  for (const Gone& gone : gone_) {
    if (!gone.settled) PutOwners(gone.pod, owners);
  }
  return owners;
}

AddressOwners TrafficLedger::InTheWayOf(const TrafficPod& pod) const {
  AddressOwners owners;
  for (const Gone& gone : gone_) {
    if (!gone.settled && Shares(gone.pod, pod)) PutOwners(gone.pod, owners);
  }
  return owners;
}

void TrafficLedger::Settled(const AddressOwners& addresses, const TrafficReadings& readings,
                            const std::map<std::string, ClassNumber>& groups) {
  VolumesByAddress counted = CountedByAddress(readings);
  ClassNames names(groups);
  for (Gone& gone : gone_) {
    const bool is_whole =
        std::all_of(gone.pod.addresses.begin(), gone.pod.addresses.end(),
                    [&](const ip::Address& address) { return addresses.contains(address); });
    if (!gone.settled && is_whole) gone.settled = TakeVolumes(gone.pod, names, counted);
  }
}

void TrafficLedger::Forget(absl::Time now) {
  size_t too_many = gone_.size() > kMaxEnded ? gone_.size() - kMaxEnded : 0;
  const auto is_done = [&](const Gone& gone) {
    const bool is_old = too_many > 0;
    if (is_old) --too_many;
    const bool was_shown = gone.reads >= kReadsAfterEnd || gone.at + kKeptAfterEnd <= now;
    return gone.settled.has_value() && (is_old || was_shown);
  };
  gone_.erase(std::remove_if(gone_.begin(), gone_.end(), is_done), gone_.end());
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
  for (const Gone& gone : gone_) {
    if (!gone.settled) return gone.at + kSettleAfter;
  }
  return absl::InfiniteFuture();
}

TrafficTotals TrafficLedger::Total(const TrafficReadings& readings,
                                   const std::map<std::string, ClassNumber>& groups,
                                   bool is_scrape) {
  TrafficTotals totals;
  VolumesByAddress counted = CountedByAddress(readings);
  ClassNames names(groups);
  const auto add_pod = [&](const TrafficPod& pod, bool ended, CountByClass volumes) {
    totals.pods.push_back({.pod_namespace = pod.pod_namespace,
                           .pod_name = pod.pod_name,
                           .pod_uid = pod.pod_uid,
                           .ended = ended,
                           .volumes = std::move(volumes)});
  };
  const auto add_counting = [&](const TrafficPod& pod, bool ended) {
    CountByClass volumes = TakeVolumes(pod, names, counted);
    AddAll(volumes, totals.namespaces[pod.pod_namespace]);
    add_pod(pod, ended, std::move(volumes));
  };
  for (const auto& [link, pod] : live_) add_counting(pod, /*ended=*/false);
  for (Gone& gone : gone_) {
    if (gone.settled) {
      add_pod(gone.pod, /*ended=*/true, *gone.settled);
    } else {
      add_counting(gone.pod, /*ended=*/true);
    }
    if (is_scrape) ++gone.reads;
  }
  for (const nft::CounterReading& counter : readings.counters) {
    const auto parsed = ParseNamespaceCounter(counter.name);
    if (!parsed) continue;
    Add(VolumeOf(parsed->direction, counter.packets, counter.bytes),
        totals.namespaces[parsed->pod_namespace][NameOfText(parsed->class_text, groups)]);
  }
  CountByClass& forward = totals.node["forward"];
  for (const auto& [name, classes] : totals.namespaces) {
    for (const auto& [class_name, volume] : classes) Add(volume, forward[class_name]);
  }
  totals.node["input"] = HostVolumes(readings.host_in, Direction::kReceived, names);
  totals.node["output"] = HostVolumes(readings.host_out, Direction::kSent, names);
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
