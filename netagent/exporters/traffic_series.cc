#include "netagent/exporters/traffic_series.h"

#include <algorithm>
#include <span>

#include "netagent/exporters/label_text.h"

namespace spoke::netagent {
namespace {

using Key = SeriesState::Key;
using Level = SeriesState::Level;
using Slot = SeriesState::Slot;
using Items = std::map<Key, Flows>;

// The classes that have series of their own, by what is told of: the others are "_other".
using Classes = std::span<const std::string_view>;
constexpr std::string_view kNodeClasses[] = {"loopback", "platform", "cluster",        "hub",
                                             "storage",  "internet", "platform-denied"};
constexpr std::string_view kNamespaceClasses[] = {"cluster", "storage", "internet",
                                                  "platform-denied"};
constexpr std::string_view kPodClasses[] = {"cluster", "internet"};

bool Has(Classes classes, std::string_view name) {
  return std::find(classes.begin(), classes.end(), name) != classes.end();
}

// Returns whether series of the class are shown while they are 0 too, so that their first bytes are
// seen to come.
bool IsAlwaysShown(std::string_view name) { return Has(kPodClasses, name); }

uint64_t Less(uint64_t a, uint64_t b) { return a - std::min(a, b); }

// Sets each class of `flows`, or of `more`, to what `change` makes of the two.
template <typename Change>
void Combine(Flows& flows, const Flows& more, Change change) {
  for (const auto& [name, flow] : more) {
    Flow& into = flows[name];
    into = {.sent = change(into.sent, flow.sent), .received = change(into.received, flow.received)};
  }
}

uint64_t Plus(uint64_t a, uint64_t b) { return a + b; }
uint64_t Greater(uint64_t a, uint64_t b) { return std::max(a, b); }

Flows Fold(const CountByClass& volumes, Classes classes) {
  Flows flows;
  for (const auto& [name, volume] : volumes) {
    Flow& flow = flows[std::string(Has(classes, name) ? name : kOtherSeries)];
    flow.sent += volume.sent;
    flow.received += volume.received;
  }
  return flows;
}

uint64_t BytesOf(const Flows& flows) {
  uint64_t bytes = 0;
  for (const auto& [name, flow] : flows) bytes += flow.sent + flow.received;
  return bytes;
}

void End(Level& level, const Key& key) {
  const auto slot = level.slots.find(key);
  Combine(level.departed, slot->second.shown, Plus);
  level.slots.erase(slot);
}

// Shows in the slots what `items` have now, and in "_other" the rest of `total`.
void Show(Level& level, const Items& items, const Flows& total) {
  Flows rest = total;
  Combine(rest, level.departed, Less);
  for (auto& [key, slot] : level.slots) {
    // A slot that `items` has not shows what it did last.
    if (const auto item = items.find(key); item != items.end()) {
      Flows shown = item->second;
      Combine(shown, slot.base, Less);
      Combine(slot.shown, shown, Greater);
    }
    Combine(rest, slot.shown, Less);
  }
  Combine(level.other, rest, Greater);
}

// Returns those of `items` that `wanted` says want a place, the one that moved most first.
template <typename Wanted>
std::vector<Key> Candidates(const Items& items, const Level& level, Wanted wanted) {
  std::vector<std::pair<uint64_t, Key>> found;
  for (const auto& [key, flows] : items) {
    const uint64_t bytes = BytesOf(flows);
    // Whatever is called "_other" is a part of it.
    if (!level.slots.contains(key) && key.pod_namespace != kOtherSeries && wanted(key, bytes)) {
      found.emplace_back(bytes, key);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Key> keys;
  for (auto& [bytes, key] : found) keys.push_back(std::move(key));
  return keys;
}

Key NamespaceKey(std::string_view name) { return {.pod_namespace = LabelText(name)}; }

Key PodKey(const PodTotals& pod) {
  return {.pod_namespace = LabelText(pod.pod_namespace),
          .pod = LabelText(pod.pod_name),
          .uid = pod.pod_uid};
}

// The bytes of the classes of which a pod has series.
uint64_t BytesShownOf(const CountByClass& volumes) {
  uint64_t bytes = 0;
  for (const auto& [name, volume] : volumes) {
    if (Has(kPodClasses, name)) bytes += volume.sent + volume.received;
  }
  return bytes;
}

// Returns the pods, by UID, that have series or have moved enough to get them. All others are of no
// concern to any series but "_other", and there may be hundreds.
std::set<std::string_view> UidsOfInterest(const TrafficTotals& totals, const Level& level,
                                          uint64_t least_bytes) {
  std::map<std::string_view, uint64_t> bytes;
  for (const PodTotals& pod : totals.pods) bytes[pod.pod_uid] += BytesShownOf(pod.volumes);
  std::set<std::string_view> uids;
  for (const auto& [key, slot] : level.slots) uids.insert(key.uid);
  for (const auto& [uid, moved] : bytes) {
    if (moved >= least_bytes) uids.insert(uid);
  }
  return uids;
}

void AppendFlows(telemetry::Samples& samples, const std::vector<std::string>& labels,
                 const Flows& flows) {
  const auto append = [&](const std::string& name, const char* direction, uint64_t bytes) {
    if (bytes == 0 && !IsAlwaysShown(name)) return;
    std::vector<std::string> all = labels;
    all.push_back(name);
    all.emplace_back(direction);
    samples.series.push_back({std::move(all), static_cast<double>(bytes)});
  };
  for (const auto& [name, flow] : flows) {
    append(name, "sent", flow.sent);
    append(name, "received", flow.received);
  }
}

Flows WithAlwaysShown(Flows flows) {
  for (const std::string_view name : kPodClasses) flows.try_emplace(std::string(name));
  return flows;
}

std::vector<telemetry::Samples> NodeSamples(const TrafficTotals& totals) {
  telemetry::Samples bytes{.metric = "spoke_node_bytes_total"};
  telemetry::Samples packets{.metric = "spoke_node_packets_total"};
  for (const auto& [hook, volumes] : totals.node) {
    CountByClass folded;
    for (const std::string_view name : kPodClasses) folded.try_emplace(std::string(name));
    for (const auto& [name, volume] : volumes) {
      TrafficCount& into = folded[std::string(Has(kNodeClasses, name) ? name : kOtherSeries)];
      into.sent += volume.sent;
      into.received += volume.received;
      into.sent_packets += volume.sent_packets;
      into.received_packets += volume.received_packets;
    }
    const auto append = [&, hook_name = hook](const std::string& name, const char* direction,
                                              uint64_t some_bytes, uint64_t some_packets) {
      if (some_packets == 0 && some_bytes == 0 && !IsAlwaysShown(name)) return;
      const std::vector<std::string> labels = {name, direction, hook_name};
      bytes.series.push_back({labels, static_cast<double>(some_bytes)});
      packets.series.push_back({labels, static_cast<double>(some_packets)});
    };
    for (const auto& [name, volume] : folded) {
      if (hook != "input") append(name, "sent", volume.sent, volume.sent_packets);
      if (hook != "output") append(name, "received", volume.received, volume.received_packets);
    }
  }
  return {std::move(bytes), std::move(packets)};
}

telemetry::Samples LevelSamples(const char* metric, const Level& level, bool pods) {
  telemetry::Samples samples{.metric = metric};
  for (const auto& [key, slot] : level.slots) {
    std::vector<std::string> labels = {key.pod_namespace};
    if (pods) labels.push_back(key.pod);
    AppendFlows(samples, labels, WithAlwaysShown(slot.shown));
  }
  const std::string other(kOtherSeries);
  AppendFlows(samples, pods ? std::vector{other, other} : std::vector{other},
              WithAlwaysShown(level.other));
  return samples;
}

}  // namespace

void TrafficSeries::UpdateNamespaces(const TrafficTotals& totals) {
  Level& level = state_.namespaces;
  Items items;
  Flows total;
  for (const auto& [name, volumes] : totals.namespaces) {
    const Flows flows = Fold(volumes, kNamespaceClasses);
    Combine(items[NamespaceKey(name)], flows, Plus);
    Combine(total, flows, Plus);
  }
  std::set<std::string_view> names;
  for (const PodTotals& pod : totals.pods) names.insert(pod.pod_namespace);
  std::set<Key> in_use;
  for (const std::string_view name : names) in_use.insert(NamespaceKey(name));

  const bool first = !seen_ && state_.epoch == absl::InfinitePast();
  for (const Key& key : Candidates(items, level, [&](const Key&k, uint64_t bytes) {
         return bytes > 0 && in_use.contains(k);
       })) {
    if (level.slots.size() >= limits_.namespaces) {
      const auto idle = std::find_if(level.slots.begin(), level.slots.end(), [&](const auto& slot) {
        return !in_use.contains(slot.first);
      });
      if (idle == level.slots.end()) break;
      End(level, Key(idle->first));
    }
    // A key that "_other" never had anything of begins with all it has.
    const bool is_new = first || (seen_ && !seen_->contains(key));
    level.slots[key].base = is_new ? Flows() : items[key];
  }
  Show(level, items, total);
  seen_.emplace();
  for (const auto& [key, flows] : items) seen_->insert(key);
}

void TrafficSeries::UpdatePods(const TrafficTotals& totals) {
  Level& level = state_.pods;
  Items items;
  Flows total;
  for (const auto& [name, volumes] : totals.namespaces) {
    Combine(total, Fold(volumes, kPodClasses), Plus);
  }
  std::set<Key> alive;
  const std::set<std::string_view> of_interest = UidsOfInterest(totals, level, limits_.pod_bytes);
  for (const PodTotals& pod : totals.pods) {
    if (!of_interest.contains(pod.pod_uid)) continue;
    const Key key = PodKey(pod);
    Combine(items[key], Fold(pod.volumes, kPodClasses), Plus);
    if (!pod.ended) alive.insert(key);
  }
  std::vector<Key> gone;
  for (const auto& [key, slot] : level.slots) {
    if (!items.contains(key)) gone.push_back(key);
  }
  for (const Key& key : gone) End(level, key);

  for (const Key& key : Candidates(items, level, [&](const Key&k, uint64_t bytes) {
         return bytes >= limits_.pod_bytes && alive.contains(k) && k.pod != kOtherSeries;
       })) {
    if (level.slots.size() >= limits_.pods) break;
    // A name has one pod's series at a time: the next pod of a StatefulSet's waits until those of
    // the last one have ended.
    const bool name_taken =
        std::any_of(level.slots.begin(), level.slots.end(), [&](const auto& slot) {
          return slot.first.pod_namespace == key.pod_namespace && slot.first.pod == key.pod;
        });
    if (!name_taken) level.slots[key].base = items[key];
  }
  Show(level, items, total);
}

std::vector<telemetry::Samples> TrafficSeries::Update(const TrafficTotals& totals) {
  if (totals.epoch != state_.epoch) {
    state_ = {};
    seen_.reset();
  }
  UpdateNamespaces(totals);
  UpdatePods(totals);
  state_.epoch = totals.epoch;
  std::vector<telemetry::Samples> all = NodeSamples(totals);
  all.push_back(LevelSamples("spoke_namespace_bytes_total", state_.namespaces, false));
  all.push_back(LevelSamples("spoke_pod_bytes_total", state_.pods, true));
  return all;
}

}  // namespace spoke::netagent
