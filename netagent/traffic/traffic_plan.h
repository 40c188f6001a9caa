// The table "spoke" of family inet: classes, counters and isolation, as nf_tables transactions.
// Pure.
//
// This is what is counted where (docs/adr/0014): a pod's cluster traffic in static sets that have
// an element for each pod, which is one look-up a packet; its other traffic in dynamic sets, where
// an element appears with the first packet of a class; what pods that have gone had counted in
// named counters, "ns/NAMESPACE/CLASS/sent" and ".../received"; the node's own in dynamic sets by
// class.
//
// Names of counters that say something by being there: "schema/N" (what the table looks like),
// "epoch/SECONDS" (since when, in Unix time), "class/NUMBER/NAME" (of a destination group); and in
// the table "spoke-names" "pod/ADDRESS/NAMESPACE" (whose counters an address bears).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/nft/ruleset.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/connections/connection_shares.h"
#include "netagent/fastpath/fast_hop.h"

namespace spoke::netagent {

// The table's schema; it is raised whenever sets or counters mean something else than before.
inline constexpr uint32_t kTrafficSchema = 3;

// The most addresses of pods in each family, and elements in each dynamic set.
inline constexpr uint32_t kMaxPodAddresses = 4096;
inline constexpr uint32_t kMaxCounted = 65'536;

enum class Direction : uint8_t { kSent, kReceived };
inline constexpr std::string_view NameOf(Direction direction) {
  return direction == Direction::kSent ? "sent" : "received";
}

// Says whether pods reach the platform's services (policy::kMetadataService, policy::kWireserver)
// that no egress policy lets them reach; DNS at the wireserver they always do.
enum class PlatformAccess : uint8_t {
  kOpen,
  kAudit,   // What would be dropped passes, and is counted as kPlatformDenied.
  kClosed,  // It is counted so, and dropped.
};

// The set of the pods, by address, that reach the platform's services, which EgressRules fills.
inline constexpr const char* kPlatformPods = "platform_pods4";
nft::Set PlatformPodsSet();

struct TrafficPlanSettings {
  // Marks packets whose destination was translated, so that the fast path learns of them. It costs
  // the tracking of every connection that does not go by the fast path.
  bool mark_translated = false;
  // The index of the device by which most of the class cluster comes and goes, where the fast path
  // does not carry it: its packets then meet the fewest rules that there can be. 0: there is none.
  uint32_t uplink = 0;
  PlatformAccess platform = PlatformAccess::kOpen;
  // The share that each pod may have of the connections that the kernel tracks. Nothing: no rule
  // asks, so that they need not be tracked.
  std::optional<ConnectionShares> shares = std::nullopt;
  // Lets what connection tracking knows as established with a peer spoke go on.
  bool keep_peer_spokes = false;

  bool operator==(const TrafficPlanSettings&) const = default;
};

// Everything that is known of the table before.
struct TrafficTableBefore {
  std::vector<nft::RuleReading> rules = {};
  // The classes that the table holds, where that is certain, with rules made by `settings`, and the
  // pods that it should; else null.
  const ClassMap* classes = nullptr;
  TrafficPlanSettings settings = {};
};

// Declares everything, empties the chains and fills them anew, and puts the classes in place of the
// old ones; what has been counted stays, and chains of classes that there are no more go. Where the
// classes before are known, only what differs between them is changed, the rules only if they would
// be others, and so the cost is that of the difference; pods stay. Where they are not, no pod is
// known any more: AppendTrafficPod() comes next for each, in the same transaction.
void AppendTrafficTable(const ClassMap& classes, const TrafficPlanSettings& settings,
                        const TrafficTableBefore& before, nft::Transaction& transaction);
// Appends the epoch, to a table that does not say one yet.
void AppendEpoch(absl::Time epoch, nft::Transaction& transaction);

// Appends the pod: from then on what comes from it is counted, not dropped.
void AppendTrafficPod(const TrafficPod& pod, nft::Transaction& transaction);
// Appends the pod's removal: what comes from it is dropped again. Its counts stay.
void AppendTrafficPodRemoval(const TrafficPod& pod, nft::Transaction& transaction);

// A set that counts for pods, and how its keys are made.
struct CountingSet {
  enum class Key : uint8_t { kIndexAddress, kAddress, kAddressClass };
  nft::TableKey table;
  std::string name;
  ip::Family family = ip::Family::kV4;
  Key key = Key::kAddress;
  Direction direction = Direction::kSent;
};
std::vector<CountingSet> CountingSets();

// The count of one element.
struct Counted {
  ip::Address address;
  ClassNumber number = kCluster;
  Direction direction = Direction::kSent;
  uint64_t packets = 0;
  uint64_t bytes = 0;
};
// Returns what the element has counted; nothing for a key that is not of the set's kind.
std::optional<Counted> DecodeCounted(const CountingSet& set, const nft::ElementReading& reading);

// Returns the number in a key of host_in and host_out; nothing when it is no such key.
std::optional<ClassNumber> NumberOfKey(const nft::Bytes& key);

// The set of ids of the fast path's pods whose counts are in their namespaces' counters.
inline constexpr const char* kFolded = "folded";
// Makes the set "folded" hold exactly these ids.
void AppendFolded(const std::set<uint64_t>& ids, nft::Transaction& transaction);

struct SetReading {
  CountingSet set;
  std::vector<nft::ElementReading> elements;
};
// The readings of one look at the kernel.
struct TrafficReadings {
  std::vector<SetReading> pods;
  std::vector<nft::ElementReading> host_in;
  std::vector<nft::ElementReading> host_out;
  std::vector<nft::CounterReading> counters;  // The counters of kSpokeTable.
  // The counters of kNamesTable; not every look reads them, see AppendFold().
  std::vector<nft::CounterReading> names = {};
  std::vector<FastPodReading> fast;  // The fast path's pods, except those that are folded already.
  std::set<uint64_t> folded;         // The ids that the fast path has still to forget.
  std::vector<RefusedCount> refused = {};
};

// Everything that the names of counters say.
struct TrafficLabels {
  std::optional<uint32_t> schema;
  std::optional<absl::Time> epoch;
  std::map<std::string, ClassNumber> groups;
  std::map<ip::Address, std::string> namespaces;  // The namespaces of addresses that bear counts.
};
TrafficLabels ReadLabels(const std::vector<nft::CounterReading>& counters);
// Returns whether the counter says whose an address is.
bool IsPodLabel(const nft::CounterReading& counter);

struct NamespaceCounter {
  std::string pod_namespace;
  std::string class_text;  // The class as in the counter's name.
  Direction direction = Direction::kSent;
};
// Returns what the name says; nothing when it is no such counter.
std::optional<NamespaceCounter> ParseNamespaceCounter(std::string_view name);
// Return what the sets of ours in kSpokeTable must hold, without counts, by the set's name.
nft::Bytes WholeKey(const nft::Element& element);  // The key, with its end and what it leads to.
std::map<std::string, std::set<nft::Bytes>> ExpectedKeys(const ClassMap& classes,
                                                         const std::vector<TrafficPod>& pods);

// Adds what `addresses` (with their namespaces) have counted to the counters of their namespaces
// and takes their elements away, all at once. Nothing must be counted for them any more. Of
// `readings` the names are needed, too. Returns which pods of the fast path are folded with them,
// to be forgotten once this is done: the set "folded" has them until then.
std::vector<uint64_t> AppendFold(const std::map<ip::Address, std::string>& addresses,
                                 const TrafficReadings& readings, const ClassMap& classes,
                                 nft::Transaction& transaction);

// Replaces a table that looks different by one of this schema: what is in counters, and in sets
// that have the same names and keys, is carried over; names of pods, which schema 2 had in this
// table, go into their own. AppendTrafficTable() comes next in the same transaction.
void AppendTakeOver(const TrafficReadings& readings, nft::Transaction& transaction);

}  // namespace spoke::netagent
