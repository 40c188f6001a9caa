#include "netagent/traffic/traffic_plan.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

#include "fmt/core.h"
#include "netagent/nftables/rule_parts.h"
#include "netagent/traffic/share_rules.h"
#include "netagent/traffic/traffic_rules.h"

namespace spoke::netagent {
namespace {

using nft::VerdictKind;
using Key = CountingSet::Key;

constexpr uint32_t kMaxHostClasses = 256;
constexpr size_t kBytesOfNumber = 4;
constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};
// The counters that rules refer to.
constexpr const char* kRuleCounters[] = {"drop/unknown-source",
                                         "drop/unknown-destination",
                                         "drop/router-message",
                                         "drop/platform",
                                         "drop/peer-spoke-sent",
                                         "drop/peer-spoke-received",
                                         "uncounted"};
constexpr const char* kShareCounters[] = {kOverConnections, kOverPorts, kOverRate};

nft::Bytes PodKey(uint32_t index, const ip::Address& address) {
  return nft::Join({nft::HostOrder(index), nft::NetworkOrder(address)});
}

std::vector<nft::Set> SetsOf(const rules::PacketLayout& layout) {
  using nft::Field;
  const auto named = [&](const char* name) { return layout.Named(name); };
  const auto dynamic = [&](const char* name) {
    return nft::Set{.name = named(name),
                    .key = {layout.field, Field::kMark},
                    .dynamic = true,
                    .counts = true,
                    .size = kMaxCounted};
  };
  const auto classes = [&](FarEnd end) {
    return nft::Set{.name = ClassMapOf(end, layout.family),
                    .key = {layout.field},
                    .verdicts = true,
                    .intervals = true};
  };
  return {classes(FarEnd::kDestination),
          classes(FarEnd::kSource),
          {.name = PeerSetOf(layout.family), .key = {layout.field}, .intervals = true},
          // The set has a size, and no element comes or goes by itself: that is the kernel's
          // fastest kind.
          {.name = named("pods"),
           .key = {Field::kInterfaceIndex, layout.field},
           .size = kMaxPodAddresses},
          {.name = named("cluster_sent"),
           .key = {Field::kInterfaceIndex, layout.field},
           .counts = true,
           .size = kMaxPodAddresses},
          {.name = named("cluster_received"),
           .key = {layout.field},
           .counts = true,
           .size = kMaxPodAddresses},
          dynamic("sent"),
          dynamic("received")};
}

nft::Set HostSet(const char* name) {
  return {.name = name,
          .key = {nft::Field::kMark},
          .dynamic = true,
          .counts = true,
          .size = kMaxHostClasses};
}

using ElementsBySet = std::map<std::string, std::vector<nft::Element>>;

// Returns what the sets of classes of one family hold for `ranges` of `classes`, by name; every set
// is there.
ElementsBySet ElementsOf(const std::vector<ClassRange>& ranges, const ClassMap& classes,
                         ip::Family family) {
  ElementsBySet all;
  std::vector<nft::Element>& peers = all[PeerSetOf(family)];
  for (const FarEnd end : {FarEnd::kDestination, FarEnd::kSource}) {
    std::vector<nft::Element>& of_end = all[ClassMapOf(end, family)];
    of_end.reserve(ranges.size());
    std::map<ClassNumber, nft::Verdict> verdicts;
    for (const ClassRange& range : ranges) {
      if (range.number == kInternet) continue;
      nft::Verdict& verdict = verdicts[range.number];
      if (verdict.chain.empty()) {
        verdict = {VerdictKind::kGoto, ClassChainOf(end, family, ClassText(classes, range.number))};
      }
      of_end.push_back({.key = nft::NetworkOrder(range.first),
                        .last = nft::NetworkOrder(range.last),
                        .verdict = verdict});
    }
  }
  for (const ClassRange& range : ranges) {
    if (range.number != kPeerSpoke) continue;
    peers.push_back({.key = nft::NetworkOrder(range.first), .last = nft::NetworkOrder(range.last)});
  }
  return all;
}

ElementsBySet ClassElements(const ClassMap& classes, ip::Family family) {
  return ElementsOf(classes.ranges(family), classes, family);
}

void AppendClasses(const ClassMap& classes, ip::Family family, nft::Transaction& transaction) {
  for (auto& [set, elements] : ClassElements(classes, family)) {
    transaction.Add(kSpokeTable, nft::FlushSet{set});
    if (elements.empty()) continue;
    transaction.Add(kSpokeTable, nft::AddElements{set, std::move(elements)});
  }
}

// Returns the ranges that are in `one` as they are, and not in `other`. A number always leads to
// the same chain.
std::vector<ClassRange> RangesOnlyIn(const std::vector<ClassRange>& one,
                                     const std::vector<ClassRange>& other) {
  std::vector<ClassRange> only;
  std::set_difference(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(only),
                      [](const ClassRange& a, const ClassRange& b) {
                        return std::tie(a.first, a.last, a.number) <
                               std::tie(b.first, b.last, b.number);
                      });
  return only;
}

// Appends what differs in the sets of classes where `before` is in them.
void AppendOtherClasses(const ClassMap& classes, const ClassMap& before, ip::Family family,
                        nft::Transaction& transaction) {
  const auto& now = classes.ranges(family);
  const auto& old = before.ranges(family);
  ElementsBySet added = ElementsOf(RangesOnlyIn(now, old), classes, family);
  for (auto& [set, gone] : ElementsOf(RangesOnlyIn(old, now), before, family)) {
    for (nft::Element& element : gone) element.verdict.reset();
    if (!gone.empty()) transaction.Add(kSpokeTable, nft::DeleteElements{set, std::move(gone)});
    std::vector<nft::Element>& more = added[set];
    if (!more.empty()) transaction.Add(kSpokeTable, nft::AddElements{set, std::move(more)});
  }
}

// Appends all objects that are there whatever the classes are.
void AppendObjects(nft::Transaction& transaction) {
  transaction.Add(kNamesTable, nft::AddTable{});
  transaction.Add(kSpokeTable, nft::AddTable{});
  transaction.Add(kSpokeTable, nft::AddCounter{fmt::format("schema/{}", kTrafficSchema), {}});
  for (const char* counter : kRuleCounters) {
    transaction.Add(kSpokeTable, nft::AddCounter{counter, {}});
  }
  for (const ip::Family family : kFamilies) {
    for (nft::Set& set : SetsOf(rules::LayoutOf(family))) {
      transaction.Add(kSpokeTable, nft::AddSet{std::move(set)});
    }
  }
  transaction.Add(kSpokeTable, nft::AddSet{PlatformPodsSet()});
  transaction.Add(kSpokeTable, nft::AddSet{HostSet("host_in")});
  transaction.Add(kSpokeTable, nft::AddSet{HostSet("host_out")});
  transaction.Add(kSpokeTable, nft::AddSet{{.name = kFolded, .key = {nft::Field::kMark}}});
}

void AppendShareObjects(nft::Transaction& transaction) {
  for (const char* counter : kShareCounters) {
    transaction.Add(kSpokeTable, nft::AddCounter{counter, {}});
  }
  for (nft::Set& set : ShareSets()) transaction.Add(kSpokeTable, nft::AddSet{std::move(set)});
  AppendFreshRates(transaction);
}

// Appends the chains, emptied. Returns those that come and go and are wanted no more, which it
// empties as well.
std::set<std::string> AppendEmptyChains(std::vector<nft::Chain> chains,
                                        const std::vector<nft::RuleReading>& seen,
                                        nft::Transaction& transaction) {
  std::set<std::string> names;
  for (nft::Chain& chain : chains) {
    names.insert(chain.name);
    transaction.Add(kSpokeTable, nft::AddChain{std::move(chain)});
  }
  std::set<std::string> gone;
  for (const nft::RuleReading& rule : seen) {
    const bool comes_and_goes = IsClassChain(rule.chain) || rule.chain == kShareChain;
    if (comes_and_goes && !names.contains(rule.chain)) gone.insert(rule.chain);
  }
  for (const std::string& name : names) transaction.Add(kSpokeTable, nft::FlushChain{name});
  for (const std::string& name : gone) transaction.Add(kSpokeTable, nft::FlushChain{name});
  return gone;
}

std::string PodLabel(const ip::Address& address, const std::string& pod_namespace) {
  return fmt::format("pod/{}/{}", address.ToString(), pod_namespace);
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns what follows `prefix` in `name`; nothing when it does not begin so.
std::optional<std::string_view> After(std::string_view name, std::string_view prefix) {
  if (name.substr(0, prefix.size()) != prefix) return std::nullopt;
  return name.substr(prefix.size());
}

std::optional<ip::Address> AddressAt(const nft::Bytes& key, size_t offset, ip::Family family) {
  const size_t length = family == ip::Family::kV4 ? 4 : 16;
  if (key.size() < offset + length) return std::nullopt;
  const auto address = ip::Address::FromBytes(std::span(key).subspan(offset, length));
  return address.ok() ? std::optional(*address) : std::nullopt;
}

// Returns the number at `offset`, as the inverse of nft::HostOrder(); `key` is long enough.
ClassNumber NumberAt(const nft::Bytes& key, size_t offset) {
  ClassNumber number = 0;
  std::memcpy(&number, key.data() + offset, sizeof(number));
  return number;
}

}  // namespace

nft::Set PlatformPodsSet() {
  return {.name = kPlatformPods, .key = {nft::Field::kIpv4}, .size = kMaxPodAddresses};
}

void AppendTrafficTable(const ClassMap& classes, const TrafficPlanSettings& settings,
                        const TrafficTableBefore& before, nft::Transaction& transaction) {
  const bool known = before.classes != nullptr;
  std::vector<nft::Chain> chains = TrafficChains(classes, settings);
  std::vector<nft::Rule> rules = TrafficRules(classes, settings);
  // A rule costs the kernel as much as several elements, and it takes all of a chain's or none.
  const bool same_rules = known && chains == TrafficChains(*before.classes, before.settings) &&
                          rules == TrafficRules(*before.classes, before.settings);
  if (!same_rules) AppendObjects(transaction);
  if (!same_rules && settings.shares) AppendShareObjects(transaction);
  for (const auto& [name, number] : classes.groups()) {
    if (known && before.classes->groups().contains(name)) continue;
    transaction.Add(kSpokeTable, nft::AddCounter{fmt::format("class/{}/{}", number, name), {}});
  }
  std::set<std::string> gone;
  if (!same_rules) gone = AppendEmptyChains(std::move(chains), before.rules, transaction);
  for (const ip::Family family : kFamilies) {
    if (known) {
      AppendOtherClasses(classes, *before.classes, family, transaction);
    } else {
      AppendClasses(classes, family, transaction);
      transaction.Add(kSpokeTable, nft::FlushSet{rules::LayoutOf(family).Named("pods")});
    }
  }
  for (const std::string& name : gone) transaction.Add(kSpokeTable, nft::DeleteChain{name});
  if (same_rules) return;
  for (nft::Rule& rule : rules) transaction.Add(kSpokeTable, nft::AddRule{std::move(rule)});
}

void AppendEpoch(absl::Time epoch, nft::Transaction& transaction) {
  transaction.Add(kSpokeTable,
                  nft::AddCounter{fmt::format("epoch/{}", absl::ToUnixSeconds(epoch)), {}});
}

void AppendTrafficPod(const TrafficPod& pod, nft::Transaction& transaction) {
  for (const ip::Address& address : pod.addresses) {
    const rules::PacketLayout& layout = rules::LayoutOf(address.family());
    const nft::Bytes key = PodKey(pod.host_index, address);
    const auto add = [&](const char* set, nft::Bytes bytes) {
      transaction.Add(kSpokeTable, nft::AddElements{.set = layout.Named(set),
                                                    .elements = {{.key = std::move(bytes)}}});
    };
    add("pods", key);
    add("cluster_sent", key);
    add("cluster_received", nft::NetworkOrder(address));
    transaction.Add(kNamesTable, nft::AddCounter{PodLabel(address, pod.pod_namespace), {}});
  }
}

void AppendTrafficPodRemoval(const TrafficPod& pod, nft::Transaction& transaction) {
  for (const ip::Address& address : pod.addresses) {
    transaction.Add(kSpokeTable,
                    nft::DeleteElements{.set = rules::LayoutOf(address.family()).Named("pods"),
                                        .elements = {{.key = PodKey(pod.host_index, address)}}});
  }
}

std::vector<CountingSet> CountingSets() {
  struct Named {
    const char* name;
    Key key;
    Direction direction;
  };
  constexpr Named kAll[] = {
      {"cluster_sent", Key::kIndexAddress, Direction::kSent},
      {"cluster_received", Key::kAddress, Direction::kReceived},
      {"sent", Key::kAddressClass, Direction::kSent},
      {"received", Key::kAddressClass, Direction::kReceived},
  };
  std::vector<CountingSet> sets;
  for (const ip::Family family : kFamilies) {
    for (const Named& named : kAll) {
      sets.push_back({.table = kSpokeTable,
                      .name = rules::LayoutOf(family).Named(named.name),
                      .family = family,
                      .key = named.key,
                      .direction = named.direction});
    }
  }
  return sets;
}

std::optional<Counted> DecodeCounted(const CountingSet& set, const nft::ElementReading& reading) {
  const nft::Bytes& key = reading.element.key;
  const size_t length = set.family == ip::Family::kV4 ? 4 : 16;
  const size_t at = set.key == Key::kIndexAddress ? kBytesOfNumber : 0;
  const size_t whole = at + length + (set.key == Key::kAddressClass ? kBytesOfNumber : 0);
  const auto address = AddressAt(key, at, set.family);
  if (!address || key.size() != whole) return std::nullopt;
  return Counted{.address = *address,
                 .number = set.key == Key::kAddressClass ? NumberAt(key, length) : kCluster,
                 .direction = set.direction,
                 .packets = reading.packets,
                 .bytes = reading.bytes};
}

std::optional<ClassNumber> NumberOfKey(const nft::Bytes& key) {
  if (key.size() != kBytesOfNumber) return std::nullopt;
  return NumberAt(key, 0);
}

bool IsPodLabel(const nft::CounterReading& counter) {
  return After(counter.name, "pod/").has_value();
}

TrafficLabels ReadLabels(const std::vector<nft::CounterReading>& counters) {
  TrafficLabels labels;
  for (const nft::CounterReading& counter : counters) {
    if (const auto schema = After(counter.name, "schema/")) {
      labels.schema = ParseNumber<uint32_t>(*schema);
    } else if (const auto epoch = After(counter.name, "epoch/")) {
      const auto seconds = ParseNumber<int64_t>(*epoch);
      if (seconds) labels.epoch = absl::FromUnixSeconds(*seconds);
    } else if (const auto group = After(counter.name, "class/")) {
      const size_t slash = group->find('/');
      if (slash == std::string_view::npos) continue;
      const auto number = ParseNumber<ClassNumber>(group->substr(0, slash));
      if (number) labels.groups[std::string(group->substr(slash + 1))] = *number;
    } else if (const auto pod = After(counter.name, "pod/")) {
      const size_t slash = pod->find('/');
      if (slash == std::string_view::npos) continue;
      const auto address = ip::Address::Parse(pod->substr(0, slash));
      if (address.ok()) labels.namespaces[*address] = std::string(pod->substr(slash + 1));
    }
  }
  return labels;
}

std::optional<NamespaceCounter> ParseNamespaceCounter(std::string_view name) {
  const auto rest = After(name, "ns/");
  if (!rest) return std::nullopt;
  const size_t first = rest->find('/');
  const size_t last = rest->rfind('/');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string_view direction = rest->substr(last + 1);
  if (direction != "sent" && direction != "received") return std::nullopt;
  return NamespaceCounter{
      .pod_namespace = std::string(rest->substr(0, first)),
      .class_text = std::string(rest->substr(first + 1, last - first - 1)),
      .direction = direction == "sent" ? Direction::kSent : Direction::kReceived};
}

nft::Bytes WholeKey(const nft::Element& element) {
  nft::Bytes chain;
  if (element.verdict) chain.assign(element.verdict->chain.begin(), element.verdict->chain.end());
  return nft::Join({element.key, element.last, element.value, chain});
}

std::map<std::string, std::set<nft::Bytes>> ExpectedKeys(const ClassMap& classes,
                                                         const std::vector<TrafficPod>& pods) {
  std::map<std::string, std::set<nft::Bytes>> keys;
  for (const ip::Family family : kFamilies) {
    const rules::PacketLayout& layout = rules::LayoutOf(family);
    keys[layout.Named("pods")];
    for (const auto& [set, elements] : ClassElements(classes, family)) {
      std::set<nft::Bytes>& of_set = keys[set];
      for (const nft::Element& element : elements) of_set.insert(WholeKey(element));
    }
  }
  for (const TrafficPod& pod : pods) {
    for (const ip::Address& address : pod.addresses) {
      keys[rules::LayoutOf(address.family()).Named("pods")].insert(PodKey(pod.host_index, address));
    }
  }
  return keys;
}

void AppendFolded(const std::set<uint64_t>& ids, nft::Transaction& transaction) {
  transaction.Add(kSpokeTable, nft::FlushSet{kFolded});
  nft::AddElements elements{.set = kFolded, .elements = {}};
  for (const uint64_t id : ids) {
    elements.elements.push_back({.key = nft::HostOrder(static_cast<uint32_t>(id))});
  }
  if (!ids.empty()) transaction.Add(kSpokeTable, std::move(elements));
}

std::vector<uint64_t> AppendFold(const std::map<ip::Address, std::string>& addresses,
                                 const TrafficReadings& readings, const ClassMap& classes,
                                 nft::Transaction& transaction) {
  std::map<std::string, nft::CountHere> sums;
  for (const SetReading& reading : readings.pods) {
    nft::DeleteElements gone{.set = reading.set.name, .elements = {}};
    for (const nft::ElementReading& element : reading.elements) {
      const auto counted = DecodeCounted(reading.set, element);
      if (!counted) continue;
      const auto pod = addresses.find(counted->address);
      if (pod == addresses.end()) continue;
      gone.elements.push_back({.key = element.element.key});
      if (counted->packets == 0) continue;
      nft::CountHere& sum =
          sums[fmt::format("ns/{}/{}/{}", pod->second, ClassText(classes, counted->number),
                           NameOf(counted->direction))];
      sum.packets += counted->packets;
      sum.bytes += counted->bytes;
    }
    if (!gone.elements.empty()) transaction.Add(reading.set.table, std::move(gone));
  }
  std::set<uint64_t> folded = readings.folded;
  std::vector<uint64_t> ids;
  for (const FastPodReading& pod : readings.fast) {
    if (!pod.ended || pod.addresses.empty()) continue;
    const auto owner = addresses.find(pod.addresses.front());
    if (owner == addresses.end()) continue;
    folded.insert(pod.id);
    ids.push_back(pod.id);
    const auto add = [&](Direction direction, uint64_t packets, uint64_t bytes) {
      if (packets == 0) return;
      nft::CountHere& sum = sums[fmt::format("ns/{}/{}/{}", owner->second,
                                             ClassText(classes, kCluster), NameOf(direction))];
      sum.packets += packets;
      sum.bytes += bytes;
    };
    add(Direction::kSent, pod.counts.sent_packets, pod.counts.sent_bytes);
    add(Direction::kReceived, pod.counts.received_packets, pod.counts.received_bytes);
  }
  AppendFolded(folded, transaction);
  for (const nft::CounterReading& counter : readings.counters) {
    const auto sum = sums.find(counter.name);
    if (sum == sums.end()) continue;
    sum->second.packets += counter.packets;
    sum->second.bytes += counter.bytes;
    transaction.Add(kSpokeTable, nft::DeleteCounter{counter.name});
  }
  for (const auto& [name, sum] : sums) transaction.Add(kSpokeTable, nft::AddCounter{name, sum});
  const TrafficLabels labels = ReadLabels(readings.names);
  for (const auto& [address, pod_namespace] : labels.namespaces) {
    if (!addresses.contains(address)) continue;
    transaction.Add(kNamesTable, nft::DeleteCounter{PodLabel(address, pod_namespace)});
  }
  return ids;
}

void AppendTakeOver(const TrafficReadings& readings, nft::Transaction& transaction) {
  transaction.Add(kNamesTable, nft::AddTable{});
  for (const nft::CounterReading& name : readings.names) {
    transaction.Add(kNamesTable, nft::AddCounter{name.name, {}});
  }
  transaction.Add(kSpokeTable, nft::DeleteTable{});
  transaction.Add(kSpokeTable, nft::AddTable{});
  for (const nft::CounterReading& counter : readings.counters) {
    if (After(counter.name, "schema/") || IsPodLabel(counter)) continue;
    transaction.Add(kSpokeTable, nft::AddCounter{counter.name, {counter.packets, counter.bytes}});
  }
  const auto seed = [&](const std::string& set, const std::vector<nft::ElementReading>& elements,
                        const auto& fits) {
    nft::AddElements seeded{.set = set, .elements = {}};
    for (const nft::ElementReading& reading : elements) {
      if (!fits(reading)) continue;
      seeded.elements.push_back(
          {.key = reading.element.key, .seed = {reading.packets, reading.bytes}});
    }
    if (!seeded.elements.empty()) transaction.Add(kSpokeTable, std::move(seeded));
  };
  for (const SetReading& reading : readings.pods) {
    if (reading.set.table != kSpokeTable) continue;
    for (nft::Set& set : SetsOf(rules::LayoutOf(reading.set.family))) {
      if (set.name == reading.set.name) transaction.Add(kSpokeTable, nft::AddSet{std::move(set)});
    }
    seed(reading.set.name, reading.elements, [&](const nft::ElementReading& element) {
      return DecodeCounted(reading.set, element).has_value();
    });
  }
  const auto one_number = [](const nft::ElementReading& element) {
    return NumberOfKey(element.element.key).has_value();
  };
  transaction.Add(kSpokeTable, nft::AddSet{HostSet("host_in")});
  seed("host_in", readings.host_in, one_number);
  transaction.Add(kSpokeTable, nft::AddSet{HostSet("host_out")});
  seed("host_out", readings.host_out, one_number);
}

}  // namespace spoke::netagent
