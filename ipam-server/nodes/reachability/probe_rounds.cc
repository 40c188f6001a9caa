#include "ipam-server/nodes/reachability/probe_rounds.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ipam-server/policy/platform_blocks.h"

namespace spoke::ipam {
namespace {

// Agents say themselves what their addresses are. Many nodes must not be made to probe a multicast
// group, or each its own loopback interface.
bool MayBeProbed(const ip::Address& address) {
  const ip::Address none = address.is_v4() ? ip::Address::V4(0) : ip::Address::V6(0, 0);
  return address != none && CheckOutsidePlatform(ip::Prefix::Host(address)).ok();
}

std::optional<ip::Address> AddressOf(const ProbedNode& node, ip::Family family) {
  for (const ip::Address& address : node.addresses) {
    if (address.family() == family && MayBeProbed(address)) return address;
  }
  return std::nullopt;
}

// Returns where `to` is probed from `from`; nullopt: they have no family in common.
std::optional<ip::Address> MeetingPlace(const ProbedNode& from, const ProbedNode& to,
                                        bool prefer_v6) {
  const ip::Family first = prefer_v6 ? ip::Family::kV6 : ip::Family::kV4;
  const ip::Family second = prefer_v6 ? ip::Family::kV4 : ip::Family::kV6;
  for (const ip::Family family : {first, second}) {
    if (AddressOf(from, family) && AddressOf(to, family)) return AddressOf(to, family);
  }
  return std::nullopt;
}

}  // namespace

ProbeQuestion AskFor(const std::vector<ProbedNode>& nodes, size_t from,
                     const std::vector<size_t>& to, bool full, bool prefer_v6) {
  ProbeQuestion question{
      .node = nodes[from].node.name, .request = {.timeout = kReachTimeout}, .of = {}};
  for (const size_t peer : to) {
    const auto address = MeetingPlace(nodes[from], nodes[peer], prefer_v6);
    const uint32_t mtu =
        std::min({nodes[from].mtu, nodes[peer].mtu, uint32_t{node_api::kMaxProbeBytes}});
    if (!address || (full && mtu == 0)) continue;
    question.request.targets.push_back(
        {.address = *address, .bytes = static_cast<uint16_t>(full ? mtu : 0)});
    question.of.push_back(
        {.from = static_cast<uint32_t>(from), .to = static_cast<uint32_t>(peer), .full = full});
  }
  return question;
}

void TakeAnswer(const ProbeQuestion& question, const node_api::ProbeAnswer& answer,
                std::vector<ProbeSample>& samples) {
  for (size_t i = 0; i < std::min(question.of.size(), answer.results.size()); ++i) {
    const node_api::ProbeResult& result = answer.results[i];
    // An agent that answers to something else says nothing about what was asked.
    if (result.outcome == node_api::ProbeOutcome::kNotTried ||
        result.target.address != question.request.targets[i].address) {
      continue;
    }
    ProbeSample sample = question.of[i];
    sample.lost = result.outcome != node_api::ProbeOutcome::kReached;
    sample.took_us = static_cast<uint32_t>(
        std::clamp<int64_t>(absl::ToInt64Microseconds(result.took), 0, UINT32_MAX));
    samples.push_back(sample);
  }
}

uint32_t ProbeRounds::NumberOf(const ReachNode& node) {
  const auto [at, is_new] = numbers_.emplace(node.name, static_cast<uint32_t>(places_.size()));
  if (is_new) {
    places_.push_back(node);
  } else {
    places_[at->second].group = node.group;
  }
  return at->second;
}

std::vector<ProbeQuestion> ProbeRounds::Begin(std::vector<ProbedNode> nodes, absl::Time now) {
  ForgetOld(now);
  ++round_;
  rounds_.push_back({.began = now, .samples = {}});
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a.node.name < b.node.name; });
  present_.clear();
  std::map<std::string, size_t> at;
  for (const ProbedNode& node : nodes) {
    at[node.node.name] = present_.size();
    present_.push_back(NumberOf(node.node));
  }
  std::vector<ProbeQuestion> questions;
  const size_t others = nodes.size() < 2 ? 0 : nodes.size() - 1;
  const size_t peers = std::min(settings_.peers, others);
  const bool prefer_v6 = round_ % 2 == 0;
  for (size_t i = 0; i < nodes.size() && others > 0; ++i) {
    std::vector<size_t> to;
    for (size_t k = 0; k < peers; ++k) {
      to.push_back((i + 1 + (round_ * peers + k) % others) % nodes.size());
    }
    const size_t first = to.front();
    size_t more = settings_.most_again;
    for (auto pair = again_.lower_bound({nodes[i].node.name, ""});
         pair != again_.end() && pair->first == nodes[i].node.name && more > 0; ++pair) {
      const auto peer = at.find(pair->second);
      if (peer == at.end() || std::find(to.begin(), to.end(), peer->second) != to.end()) continue;
      to.push_back(peer->second);
      --more;
    }
    ProbeQuestion question = AskFor(nodes, i, to, false, prefer_v6);
    if (round_ % settings_.full_every == 0) {
      const ProbeQuestion full = AskFor(nodes, i, {first}, true, prefer_v6);
      question.request.targets.insert(question.request.targets.end(), full.request.targets.begin(),
                                      full.request.targets.end());
      question.of.insert(question.of.end(), full.of.begin(), full.of.end());
    }
    if (!question.of.empty()) questions.push_back(std::move(question));
  }
  again_.clear();
  return questions;
}

void ProbeRounds::Take(const ProbeQuestion& question, const node_api::ProbeAnswer& answer) {
  if (rounds_.empty()) return;
  std::vector<ProbeSample>& samples = rounds_.back().samples;
  const size_t before = samples.size();
  TakeAnswer(question, answer, samples);
  for (size_t i = before; i < samples.size(); ++i) {
    samples[i].from = present_[samples[i].from];
    samples[i].to = present_[samples[i].to];
  }
}

const Reachability& ProbeRounds::End(absl::Time now) {
  ProbesSeen seen{.places = places_, .samples = {}, .at = now, .window = settings_.window};
  for (const Round& round : rounds_) {
    seen.samples.insert(seen.samples.end(), round.samples.begin(), round.samples.end());
  }
  if (!rounds_.empty()) seen.window = std::min(seen.window, now - rounds_.front().began);
  latest_ = JudgeProbes(std::move(seen), &latest_);
  if (rounds_.empty()) return latest_;
  for (const ProbeSample& sample : rounds_.back().samples) {
    const ReachNode& from = places_[sample.from];
    const ReachNode& to = places_[sample.to];
    // What a suspect explains needs no second look.
    const NodeReach* a = latest_.Find(from.name);
    const NodeReach* b = latest_.Find(to.name);
    if (!sample.lost || a == nullptr || b == nullptr || !a->suspicion.empty() ||
        !b->suspicion.empty()) {
      continue;
    }
    again_.emplace(from.name, to.name);
  }
  return latest_;
}

void ProbeRounds::ForgetOld(absl::Time now) {
  // A clock that was set back must not keep them for longer.
  std::erase_if(rounds_, [&](const Round& round) {
    return round.began > now || now - round.began >= settings_.window;
  });
  if (places_.size() <= 2 * present_.size() + 64) return;
  std::vector<ReachNode> places;
  std::map<uint32_t, uint32_t> moved;
  const auto keep = [&](uint32_t& number) {
    const auto [at, is_new] = moved.emplace(number, static_cast<uint32_t>(places.size()));
    if (is_new) places.push_back(places_[number]);
    number = at->second;
  };
  for (Round& round : rounds_) {
    for (ProbeSample& sample : round.samples) {
      keep(sample.from);
      keep(sample.to);
    }
  }
  places_ = std::move(places);
  numbers_.clear();
  for (uint32_t i = 0; i < places_.size(); ++i) numbers_.emplace(places_[i].name, i);
}

}  // namespace spoke::ipam
