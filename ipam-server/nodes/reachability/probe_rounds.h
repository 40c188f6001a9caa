// Who probes whom in each round, and what became of it over the last rounds. Pure.
//
// In a round each node probes some others and is probed by as many; the next round has others, so
// that in time all pairs meet. Pairs that lost a probe meet again in the next round.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/nodes/reachability/reachability.h"
#include "lib/ip/address.h"
#include "lib/node_api/probes.h"

namespace spoke::ipam {

// A node that can probe and be probed.
struct ProbedNode {
  ReachNode node;
  std::vector<ip::Address> addresses;  // Its own: not those of pods.
  uint32_t mtu = 0;                    // That of its NIC in bytes; 0: not known.

  bool operator==(const ProbedNode&) const = default;
};

// What the agent of one node is to try. `of` says which sample each target makes.
struct ProbeQuestion {
  std::string node;
  node_api::ProbeRequest request;
  std::vector<ProbeSample> of;
};

// Returns what the node of `nodes[from]` is to try: its way to each of `to`, in a family that both
// have; nodes without one are left out. `full`: with the largest packet that both take, which is
// left out too where it is not known. `prefer_v6`: where there is a choice.
ProbeQuestion AskFor(const std::vector<ProbedNode>& nodes, size_t from,
                     const std::vector<size_t>& to, bool full, bool prefer_v6);

// Adds to `samples` what the answer says of the question's targets; those that were not tried make
// none.
void TakeAnswer(const ProbeQuestion& question, const node_api::ProbeAnswer& answer,
                std::vector<ProbeSample>& samples);

inline constexpr absl::Duration kReachTimeout = absl::Seconds(1);

// Not thread-safe; the thread that probes owns it. Memory: 16 bytes a probe of the window.
class ProbeRounds {
 public:
  struct Settings {
    size_t peers = 5;  // How many others each node probes in a round.
    absl::Duration window = absl::Minutes(3);
    // Every so many rounds, one of the probes is of full size.
    uint64_t full_every = 3;
    size_t most_again = 3;  // Pairs of a node that lost probes and meet again, besides.
  };
  explicit ProbeRounds(const Settings& settings) : settings_(settings) {}

  // Begins a round among `nodes`, in any order, and returns its questions. Fewer than two have
  // none.
  std::vector<ProbeQuestion> Begin(std::vector<ProbedNode> nodes, absl::Time now);
  // Takes the answer to a question of the present round.
  void Take(const ProbeQuestion& question, const node_api::ProbeAnswer& answer);
  // Ends the round, and judges those of the window.
  const Reachability& End(absl::Time now);

  const Reachability& latest() const { return latest_; }

 private:
  struct Round {
    absl::Time began;
    std::vector<ProbeSample> samples;  // By the numbers of `numbers_`.
  };
  uint32_t NumberOf(const ReachNode& node);
  void ForgetOld(absl::Time now);

  const Settings settings_;
  uint64_t round_ = 0;
  std::deque<Round> rounds_;  // The present one is the last.
  // Names get a number when they are first seen, and keep it until no sample names them.
  std::map<std::string, uint32_t> numbers_;
  std::vector<ReachNode> places_;
  std::vector<uint32_t> present_;  // The numbers of the present round's nodes, in their order.
  std::set<std::pair<std::string, std::string>> again_;  // From and to, of the last round.
  Reachability latest_;
};

}  // namespace spoke::ipam
