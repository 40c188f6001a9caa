#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/nodes/reachability/reachability.h"

namespace spoke::ipam {
namespace {

// Fewer probes than these say nothing: one packet in a thousand is lost on a good day.
constexpr uint64_t kLeastProbes = 10;
constexpr double kLeastLost = 3;
// How many standard deviations more than what the others lose: of thousands of nodes some are
// always unlucky.
constexpr double kDeviations = 5;
constexpr size_t kLeastPeersLost = 3;
// The share of lost probes from which a node is suspected, and below which it no longer is. A
// collective operation of a job stalls for 200 ms at each lost packet, long before 5 %.
constexpr double kSuspectShare = 0.05;
constexpr double kClearShare = 0.02;
// There are few probes of full size, and a path that is too narrow takes none of them.
constexpr uint64_t kLeastFullProbes = 4;
constexpr double kSuspectFullShare = 0.8;
constexpr double kSuspectPairShare = 0.5;
// Above this share of what no suspect explains, nothing can be told of one node: the network as a
// whole lets no probes through.
constexpr double kMostLostShare = 0.5;
constexpr size_t kLeastOfGroup = 3;

uint32_t Quantile(const std::vector<uint32_t>& sorted, size_t percent) {
  return sorted.empty() ? 0 : sorted[(sorted.size() - 1) * percent / 100];
}

// Probes whose tally is still to be taken.
struct Gathered {
  uint64_t probes = 0;
  uint64_t lost = 0;
  std::vector<uint32_t> took;

  void Add(const ProbeSample& sample) {
    ++probes;
    if (sample.lost) {
      ++lost;
    } else {
      took.push_back(sample.took_us);
    }
  }
  ProbeTally Tally() {
    std::sort(took.begin(), took.end());
    return {
        .probes = probes, .lost = lost, .p50_us = Quantile(took, 50), .p99_us = Quantile(took, 99)};
  }
};

uint32_t OtherEnd(const ProbeSample& sample, uint32_t place) {
  return sample.from == place ? sample.to : sample.from;
}

// What a node needs to be suspected by one kind of probes.
struct Threshold {
  uint64_t least_probes;
  double share;
};

// The probes of one kind, and which of them no suspect explains.
class Suspects {
 public:
  Suspects(const std::vector<ProbeSample>& samples, size_t places, bool full)
      : samples_(samples), of_(places), unexplained_(places), explained_(samples.size(), false) {
    for (size_t i = 0; i < samples.size(); ++i) {
      const ProbeSample& sample = samples[i];
      if (sample.full != full) continue;
      for (const uint32_t end : {sample.from, sample.to}) {
        of_[end].push_back(i);
        ++unexplained_[end].probes;
        unexplained_[end].lost += sample.lost ? 1 : 0;
      }
      ++all_.probes;
      all_.lost += sample.lost ? 1 : 0;
    }
  }

  // Returns the place that loses the largest share of the probes that are not explained; places():
  // none loses enough.
  size_t Worst(const std::vector<Threshold>& thresholds) const {
    size_t worst = of_.size();
    for (size_t place = 0; place < of_.size(); ++place) {
      const ProbeTally& tally = unexplained_[place];
      if (tally.probes < thresholds[place].least_probes ||
          tally.lost_share() < thresholds[place].share || !LosesMoreThanOthers(tally) ||
          !LosesWithSeveral(place)) {
        continue;
      }
      if (worst == of_.size() || IsWorse(tally, unexplained_[worst])) worst = place;
    }
    return worst;
  }

  // Takes the probes of a suspect out of what is to be explained.
  void Explain(size_t place) {
    for (const size_t i : of_[place]) {
      if (explained_[i]) continue;
      explained_[i] = true;
      --all_.probes;
      all_.lost -= samples_[i].lost ? 1 : 0;
      for (const uint32_t end : {samples_[i].from, samples_[i].to}) {
        --unexplained_[end].probes;
        unexplained_[end].lost -= samples_[i].lost ? 1 : 0;
      }
    }
  }

  const ProbeTally& unexplained(size_t place) const { return unexplained_[place]; }
  const ProbeTally& unexplained() const { return all_; }
  bool IsExplained(size_t sample) const { return explained_[sample]; }
  size_t places() const { return of_.size(); }

 private:
  static bool IsWorse(const ProbeTally& a, const ProbeTally& b) {
    if (a.lost_share() != b.lost_share()) return a.lost_share() > b.lost_share();
    return a.lost > b.lost;
  }
  // Compares it with the probes between others, as if each were lost by chance.
  bool LosesMoreThanOthers(const ProbeTally& tally) const {
    const ProbeTally others = {.probes = all_.probes - tally.probes,
                               .lost = all_.lost - tally.lost};
    const double expected = static_cast<double>(tally.probes) * others.lost_share();
    return static_cast<double>(tally.lost) >=
           kLeastLost + expected + kDeviations * std::sqrt(expected);
  }
  // One other that is bad, or a path to one, must not accuse it.
  bool LosesWithSeveral(size_t place) const {
    std::set<uint32_t> peers;
    std::set<uint32_t> lost;
    for (const size_t i : of_[place]) {
      if (explained_[i]) continue;
      const uint32_t peer = OtherEnd(samples_[i], static_cast<uint32_t>(place));
      peers.insert(peer);
      if (samples_[i].lost) lost.insert(peer);
    }
    return lost.size() >= std::min(kLeastPeersLost, std::max<size_t>(peers.size(), 2));
  }

  const std::vector<ProbeSample>& samples_;
  std::vector<std::vector<size_t>> of_;  // The samples of each place.
  std::vector<ProbeTally> unexplained_;
  ProbeTally all_;  // Those that are not explained.
  std::vector<bool> explained_;
};

// Adds the nodes that have probes, with their tallies. `index`: where each place is among them.
void AddNodes(Reachability& out, std::vector<size_t>& index) {
  const size_t places = out.places.size();
  std::vector<Gathered> gathered(places);
  std::vector<std::map<uint32_t, bool>> peers(places);  // Whether probes with them were lost.
  for (const ProbeSample& sample : out.samples) {
    for (const uint32_t end : {sample.from, sample.to}) {
      gathered[end].Add(sample);
      peers[end][OtherEnd(sample, end)] |= sample.lost;
    }
  }
  std::vector<size_t> order;
  for (size_t place = 0; place < places; ++place) {
    if (gathered[place].probes > 0) order.push_back(place);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return out.places[a].name < out.places[b].name; });
  index.assign(places, places);
  for (const size_t place : order) {
    index[place] = out.nodes.size();
    const auto lost = std::count_if(peers[place].begin(), peers[place].end(),
                                    [](const auto& peer) { return peer.second; });
    out.nodes.push_back({.node = out.places[place],
                         .tally = gathered[place].Tally(),
                         .peers = peers[place].size(),
                         .peers_lost = static_cast<size_t>(lost)});
  }
}

// Suspects nodes by one kind of probes.
void SuspectNodes(Reachability& out, const std::vector<size_t>& index, Suspects& suspects,
                  const std::vector<Threshold>& thresholds, bool full) {
  while (true) {
    const size_t place = suspects.Worst(thresholds);
    if (place == suspects.places()) return;
    NodeReach& node = out.nodes[index[place]];
    const ProbeTally& tally = suspects.unexplained(place);
    node.suspicion = fmt::format(
        "{} of {} {} between this node and others were lost in the last {} s, while {} arrived",
        tally.lost, tally.probes, full ? "probes of full size" : "probes",
        absl::ToInt64Seconds(out.window), full ? "small ones" : "those of most others");
    suspects.Explain(place);
  }
}

// Returns whether so much is lost, or by so many, that the network as a whole must be to blame.
bool IsBeyondJudging(const Reachability& judged, const Suspects& small) {
  const auto suspects = std::count_if(judged.nodes.begin(), judged.nodes.end(),
                                      [](const NodeReach& n) { return !n.suspicion.empty(); });
  return small.unexplained().lost_share() > kMostLostShare ||
         2 * static_cast<size_t>(suspects) > judged.nodes.size();
}

// Returns the tallies of the pairs that lost a probe for which `counts` is true, over all probes of
// these pairs that `takes` takes.
template <typename Counts, typename Takes>
std::vector<Between> TalliesOfLost(const Reachability& judged, const Counts& counts,
                                   const Takes& takes) {
  std::map<std::pair<uint32_t, uint32_t>, Gathered> pairs;
  const auto key = [](const ProbeSample& sample) {
    return std::pair(std::min(sample.from, sample.to), std::max(sample.from, sample.to));
  };
  for (size_t i = 0; i < judged.samples.size(); ++i) {
    const ProbeSample& sample = judged.samples[i];
    if (sample.lost && takes(sample) && counts(i)) pairs[key(sample)];
  }
  for (const ProbeSample& sample : judged.samples) {
    if (!takes(sample)) continue;
    if (const auto pair = pairs.find(key(sample)); pair != pairs.end()) pair->second.Add(sample);
  }
  std::vector<Between> out;
  for (auto& [ends, gathered] : pairs) {
    out.push_back({.a = judged.places[ends.first].name,
                   .b = judged.places[ends.second].name,
                   .tally = gathered.Tally()});
  }
  return out;
}

// Suspects pairs of nodes by the probes that no node explains.
void SuspectPairs(Reachability& out, const Suspects& small) {
  for (Between& pair : TalliesOfLost(
           out, [&](size_t sample) { return !small.IsExplained(sample); },
           [](const ProbeSample& sample) { return !sample.full; })) {
    if (static_cast<double>(pair.tally.lost) < kLeastLost ||
        pair.tally.lost_share() < kSuspectPairShare) {
      continue;
    }
    pair.suspicion =
        fmt::format("{} of {} probes between these two were lost, while both reach others",
                    pair.tally.lost, pair.tally.probes);
    out.pairs.push_back(std::move(pair));
  }
}

// Adds the groups, and says of suspects when most of their group are.
void AddGroups(Reachability& out) {
  std::map<std::pair<std::string, std::string>, Gathered> groups;
  for (const ProbeSample& sample : out.samples) {
    const std::string& from = out.places[sample.from].group;
    const std::string& to = out.places[sample.to].group;
    groups[std::minmax(from, to)].Add(sample);
  }
  for (auto& [names, gathered] : groups) {
    out.groups.push_back({.a = names.first, .b = names.second, .tally = gathered.Tally()});
  }
  std::stable_sort(out.groups.begin(), out.groups.end(), [](const Between& a, const Between& b) {
    return a.tally.lost_share() > b.tally.lost_share();
  });
  out.groups.resize(std::min(out.groups.size(), kMaxGroupPairs));
  std::map<std::string, std::pair<size_t, size_t>> members;  // Suspects, and all.
  for (const NodeReach& node : out.nodes) {
    auto& [suspects, all] = members[node.node.group];
    suspects += node.suspicion.empty() ? 0 : 1;
    ++all;
  }
  for (NodeReach& node : out.nodes) {
    const auto& [suspects, all] = members[node.node.group];
    if (node.suspicion.empty() || node.node.group.empty() || members.size() < 2 ||
        suspects < kLeastOfGroup || 2 * suspects <= all) {
      continue;
    }
    node.suspicion += fmt::format(". So it is with {} of {} nodes of {}: look at what they share",
                                  suspects, all, node.node.group);
  }
}

}  // namespace

ProbeTally TallyOf(const std::vector<ProbeSample>& samples) {
  Gathered gathered;
  for (const ProbeSample& sample : samples) gathered.Add(sample);
  return gathered.Tally();
}

const NodeReach* Reachability::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      nodes.begin(), nodes.end(), name,
      [](const NodeReach& node, std::string_view n) { return node.node.name < n; });
  return found == nodes.end() || found->node.name != name ? nullptr : &*found;
}

Reachability JudgeProbes(ProbesSeen seen, const Reachability* before) {
  Reachability out{.at = seen.at,
                   .window = seen.window,
                   .all = TallyOf(seen.samples),
                   .nodes = {},
                   .pairs = {},
                   .groups = {},
                   .places = std::move(seen.places),
                   .samples = std::move(seen.samples)};
  std::vector<size_t> index;
  AddNodes(out, index);
  const size_t places = out.places.size();
  std::vector<Threshold> small_probes(places, {kLeastProbes, kSuspectShare});
  for (size_t place = 0; before != nullptr && place < places; ++place) {
    const NodeReach* earlier = before->Find(out.places[place].name);
    if (earlier != nullptr && !earlier->suspicion.empty()) small_probes[place].share = kClearShare;
  }
  Suspects small(out.samples, places, false);
  SuspectNodes(out, index, small, small_probes, false);
  if (IsBeyondJudging(out, small)) {
    for (NodeReach& node : out.nodes) node.suspicion.clear();
    out.unjudged = fmt::format(
        "{} of {} probes were lost, so that no single node is to blame: is ICMP echo let through "
        "between nodes?",
        out.all.lost, out.all.probes);
    AddGroups(out);
    return out;
  }
  Suspects full(out.samples, places, true);
  for (size_t place = 0; place < places; ++place) {
    if (index[place] < places && !out.nodes[index[place]].suspicion.empty()) full.Explain(place);
  }
  SuspectNodes(out, index, full,
               std::vector<Threshold>(places, {kLeastFullProbes, kSuspectFullShare}), true);
  SuspectPairs(out, small);
  AddGroups(out);
  for (NodeReach& node : out.nodes) {
    if (node.suspicion.empty()) continue;
    const NodeReach* earlier = before == nullptr ? nullptr : before->Find(node.node.name);
    node.since = earlier != nullptr && !earlier->suspicion.empty() ? earlier->since : out.at;
  }
  return out;
}

std::vector<Between> LostPairs(const Reachability& reachability) {
  const auto any = [](const auto&) { return true; };
  std::vector<Between> pairs = TalliesOfLost(reachability, any, any);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Between& a, const Between& b) { return a.tally.lost > b.tally.lost; });
  return pairs;
}

std::vector<Between> PeersOf(const Reachability& reachability, std::string_view name) {
  std::map<std::string, Gathered> peers;
  for (const ProbeSample& sample : reachability.samples) {
    const std::string& from = reachability.places[sample.from].name;
    const std::string& to = reachability.places[sample.to].name;
    if (from == name) peers[to].Add(sample);
    if (to == name) peers[from].Add(sample);
  }
  std::vector<Between> out;
  for (auto& [peer, gathered] : peers) {
    out.push_back({.a = std::string(name), .b = peer, .tally = gathered.Tally()});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Between& a, const Between& b) { return a.tally.lost > b.tally.lost; });
  return out;
}

}  // namespace spoke::ipam
