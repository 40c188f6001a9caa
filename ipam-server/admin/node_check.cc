#include "ipam-server/admin/node_check.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxPairs = 200;
constexpr size_t kMaxSuspects = 1000;

void Describe(const ProbeTally& tally, v1::ProbeTally& out) {
  out.set_probes(tally.probes);
  out.set_lost(tally.lost);
  out.set_p50_us(tally.p50_us);
  out.set_p99_us(tally.p99_us);
}

void Describe(const NodeReach& node, v1::ReachabilityNode& out) {
  out.set_name(node.node.name);
  out.set_group(node.node.group);
  Describe(node.tally, *out.mutable_tally());
  out.set_peers(static_cast<uint32_t>(node.peers));
  out.set_peers_lost(static_cast<uint32_t>(node.peers_lost));
  out.set_suspicion(node.suspicion);
  if (!node.suspicion.empty()) out.set_since_unix_ms(absl::ToUnixMillis(node.since));
}

template <typename List>
void Describe(const std::vector<Between>& in, List& out) {
  for (const Between& between : in) {
    v1::ReachabilityBetween& to = *out.Add();
    to.set_a(between.a);
    to.set_b(between.b);
    Describe(between.tally, *to.mutable_tally());
    to.set_suspicion(between.suspicion);
  }
}

ProbeTally TallyOfSize(const Reachability& judged, bool full) {
  std::vector<ProbeSample> samples;
  std::copy_if(judged.samples.begin(), judged.samples.end(), std::back_inserter(samples),
               [full](const ProbeSample& sample) { return sample.full == full; });
  return TallyOf(samples);
}

// Adds the ways from `from` to the others as questions of as many parts as it takes, from the part
// with the number `first` on.
void AddQuestions(const std::vector<ProbedNode>& nodes, size_t from, bool full, size_t first,
                  std::vector<CheckPart>& parts) {
  const size_t others = full ? nodes.size() / 2 : nodes.size() - 1;
  std::vector<size_t> to;
  for (size_t k = 1; k <= others; ++k) {
    const size_t peer = (from + k) % nodes.size();
    // With an even number, two nodes are opposite each other: one of them asks.
    if (full && 2 * k == nodes.size() && from >= peer) continue;
    to.push_back(peer);
  }
  for (size_t begin = 0, part = first; begin < to.size();
       begin += node_api::kMaxProbeTargets, ++part) {
    const size_t end = std::min(to.size(), begin + node_api::kMaxProbeTargets);
    ProbeQuestion question = AskFor(
        nodes, from,
        {to.begin() + static_cast<ptrdiff_t>(begin), to.begin() + static_cast<ptrdiff_t>(end)},
        full, false);
    if (parts.size() <= part) parts.resize(part + 1);
    if (!question.of.empty()) parts[part].emplace(question.node, std::move(question));
  }
}

}  // namespace

bool JobName::Has(std::string_view pod_namespace_of, std::string_view pod_name) const {
  if (pod_namespace_of != pod_namespace || pod_name.substr(0, name.size()) != name) return false;
  return pod_name.size() == name.size() || pod_name[name.size()] == '-';
}

absl::StatusOr<JobName> ParseJobName(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is no job: name it as NAMESPACE/NAME", text));
  }
  return JobName{.pod_namespace = std::string(text.substr(0, slash)),
                 .name = std::string(text.substr(slash + 1))};
}

std::vector<CheckPart> PlanCheck(const std::vector<ProbedNode>& nodes, absl::Duration timeout) {
  std::vector<CheckPart> parts;
  if (nodes.size() < 2) return parts;
  for (const bool full : {false, true}) {
    const size_t first = parts.size();
    for (size_t from = 0; from < nodes.size(); ++from) {
      AddQuestions(nodes, from, full, first, parts);
    }
  }
  std::erase_if(parts, [](const CheckPart& part) { return part.empty(); });
  for (CheckPart& part : parts) {
    for (auto& [node, question] : part) question.request.timeout = timeout;
  }
  return parts;
}

v1::CheckNodesResponse DescribeCheck(const Reachability& judged,
                                     const std::vector<std::string>& unheard) {
  v1::CheckNodesResponse out;
  out.set_over(true);
  Describe(TallyOfSize(judged, false), *out.mutable_small());
  Describe(TallyOfSize(judged, true), *out.mutable_full());
  for (const NodeReach& node : judged.nodes) Describe(node, *out.add_nodes());
  std::vector<Between> pairs = LostPairs(judged);
  out.set_pairs_lost(pairs.size());
  pairs.resize(std::min(pairs.size(), kMaxPairs));
  Describe(pairs, *out.mutable_pairs());
  for (const std::string& node : unheard) out.add_unheard(node);
  return out;
}

absl::StatusOr<v1::GetReachabilityResponse> DescribeReachability(const Reachability& judged,
                                                                 const std::string& node) {
  v1::GetReachabilityResponse out;
  out.set_at_unix_ms(absl::ToUnixMillis(judged.at));
  out.set_window_s(static_cast<uint32_t>(absl::ToInt64Seconds(judged.window)));
  out.set_nodes(judged.nodes.size());
  Describe(judged.all, *out.mutable_all());
  out.set_unjudged(judged.unjudged);
  for (const NodeReach& one : judged.nodes) {
    if (one.suspicion.empty() || static_cast<size_t>(out.suspects_size()) >= kMaxSuspects) continue;
    Describe(one, *out.add_suspects());
  }
  std::vector<Between> pairs = judged.pairs;
  pairs.resize(std::min(pairs.size(), kMaxPairs));
  Describe(pairs, *out.mutable_pairs());
  Describe(judged.groups, *out.mutable_groups());
  if (node.empty()) return out;
  const NodeReach* found = judged.Find(node);
  if (found == nullptr) {
    return absl::NotFoundError(fmt::format(
        "node {} has had no probes in the last {} s: its agent is not connected, or there is no "
        "such node; see: spokectl node list",
        node, absl::ToInt64Seconds(judged.window)));
  }
  Describe(*found, *out.mutable_node());
  Describe(PeersOf(judged, node), *out.mutable_peers());
  return out;
}

}  // namespace spoke::ipam
