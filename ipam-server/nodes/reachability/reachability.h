// How nodes reach each other, judged by the probes that they have sent: which node, which pair, or
// which group of nodes loses packets. Pure.
//
// A lost probe accuses both of its ends. Whoever loses the largest share of its probes, with
// several others, is suspected, and its probes explain nothing any more about these others: so one
// bad node accuses nobody else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace spoke::ipam {

// A node that takes part. Samples name it by its place in a list of these.
struct ReachNode {
  std::string name;
  std::string group = {};  // Nodes of one rack or zone have the same; empty: not known.

  bool operator==(const ReachNode&) const = default;
};

struct ProbeSample {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t took_us = 0;  // The round trip; of no meaning when it was lost.
  bool lost = false;
  bool full = false;  // Of the largest packet that both NICs take.

  bool operator==(const ProbeSample&) const = default;
};

// What became of some probes. The times are 0 where none was answered.
struct ProbeTally {
  uint64_t probes = 0;
  uint64_t lost = 0;
  uint32_t p50_us = 0;
  uint32_t p99_us = 0;

  double lost_share() const {
    return probes == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(probes);
  }
  bool operator==(const ProbeTally&) const = default;
};

struct NodeReach {
  ReachNode node;
  ProbeTally tally;
  size_t peers = 0;       // How many others it was probed with, in either direction.
  size_t peers_lost = 0;  // How many of these lost probes.
  // What is wrong with its network, in a sentence; empty: nothing that is known.
  std::string suspicion = {};
  absl::Time since = absl::InfinitePast();  // Since when it is suspected.
};

// Two nodes, or two groups; the probes of both directions.
struct Between {
  std::string a;
  std::string b;
  ProbeTally tally;
  std::string suspicion = {};
};

struct Reachability {
  absl::Time at = absl::InfinitePast();
  absl::Duration window = absl::ZeroDuration();
  ProbeTally all;
  std::string unjudged = {};  // Why nobody is suspected, whatever was lost; empty: that is not so.
  std::vector<NodeReach> nodes;   // Those with probes, by name.
  std::vector<Between> pairs;     // Those that are suspected while neither of their nodes is.
  std::vector<Between> groups;    // All that had probes, the worst first; at most kMaxGroupPairs.
  std::vector<ReachNode> places;  // What `samples` name.
  std::vector<ProbeSample> samples;  // What was judged.

  const NodeReach* Find(std::string_view name) const;
};

inline constexpr size_t kMaxGroupPairs = 400;

// The probes of a while.
struct ProbesSeen {
  std::vector<ReachNode> places;     // Names differ.
  std::vector<ProbeSample> samples;  // Of two places each.
  absl::Time at;
  absl::Duration window;  // For how long they were gathered.
};

// `before`: what was judged last, whose suspects need less to stay suspected; nullptr: nothing was.
Reachability JudgeProbes(ProbesSeen seen, const Reachability* before);

// Returns the tallies of `name` with each of its peers, those that lost most first.
std::vector<Between> PeersOf(const Reachability& reachability, std::string_view name);

// Returns the tallies of all pairs that lost probes, those first that lost most; without
// suspicions.
std::vector<Between> LostPairs(const Reachability& reachability);

// Returns the tally of some probes.
ProbeTally TallyOf(const std::vector<ProbeSample>& samples);

}  // namespace spoke::ipam
