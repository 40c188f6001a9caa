#include "ipam-server/policy/objects/selector.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "fmt/core.h"
#include "ipam-server/policy/objects/claims.h"
#include "ipam-server/policy/objects/object_set.h"

namespace spoke::ipam {
namespace {

std::string WhereIs(const Party& party, int line) {
  if (party.source != nullptr) return fmt::format("{}:{}", party.source->file, line);
  return party.configured ? "in the server's configuration" : "applied before";
}

// Whose `claim` is, and where.
std::string OwnerOf(const Claim& claim, const Party& party) {
  return fmt::format("{} of {} ({})", claim.role, party.key.ToString(), WhereIs(party, claim.line));
}

std::string Describe(const Clash& clash, const Party& earlier) {
  const Claim& claim = *clash.later.claim;
  const Claim& other = *clash.earlier.claim;
  const std::string whose = OwnerOf(other, earlier);
  if (const auto* block = std::get_if<ip::Prefix>(&claim.what)) {
    return fmt::format("{} overlaps {}, {}: change one of them", block->ToString(),
                       std::get<ip::Prefix>(other.what).ToString(), whose);
  }
  return fmt::format("\"{}\" is {} already: remove it from one of them",
                     std::get<std::string>(claim.what), whose);
}

// A problem at `line` of `party`, or with it named when no file gave it.
Problem ProblemAt(const Party& party, const std::string& path, int line, std::string message) {
  Problem problem{.path = path, .message = std::move(message)};
  if (party.source != nullptr) {
    problem.file = party.source->file;
    problem.line = line;
  } else {
    problem.path = party.key.ToString() + ": " + path;
  }
  return problem;
}

struct OwnedBlock {
  const Claim* claim;
  const Party* party;
};
// Blocks that are claimed; the first claim of each block and share.
using BlocksBySpace = std::map<std::string_view, std::multimap<ip::Prefix, OwnedBlock>>;

BlocksBySpace ClaimedBlocks(std::span<const Party> parties,
                            const std::vector<std::vector<Claim>>& claims) {
  BlocksBySpace blocks;
  for (size_t i = 0; i < parties.size(); ++i) {
    for (const Claim& claim : claims[i]) {
      const auto* block = std::get_if<ip::Prefix>(&claim.what);
      if (block != nullptr) blocks[claim.space].emplace(*block, OwnedBlock{&claim, &parties[i]});
    }
  }
  return blocks;
}

// The widest block around that of `avoidance` which it shall keep out of; nullptr: none.
const OwnedBlock* BlockAround(const Avoidance& avoidance, const BlocksBySpace& blocks) {
  const auto space = blocks.find(avoidance.space);
  if (space == blocks.end()) return nullptr;
  for (int length = 0; length <= avoidance.block.length(); ++length) {
    const auto around = ip::Prefix::Of(avoidance.block.base(), length);
    auto [begin, end] = space->second.equal_range(*around);
    for (auto it = begin; it != end; ++it) {
      const auto& shares = avoidance.shares;
      if (shares.empty() ||
          std::find(shares.begin(), shares.end(), it->second.claim->share) != shares.end()) {
        return &it->second;
      }
    }
  }
  return nullptr;
}

std::string SubjectOf(const Avoidance& avoidance) {
  return avoidance.origin.empty() ? avoidance.block.ToString() : avoidance.origin + ", which";
}

}  // namespace

std::vector<Problem> FindClashes(std::span<const Party> parties) {
  std::vector<std::vector<Claim>> claims;
  claims.reserve(parties.size());
  for (const Party& party : parties) claims.push_back(party.spec->Claims());
  std::vector<OwnedClaim> owned;
  for (size_t i = 0; i < parties.size(); ++i) {
    for (const Claim& claim : claims[i]) owned.push_back({&claim, i});
  }
  std::vector<Problem> problems;
  for (const Clash& clash : FindClashes(owned)) {
    const Party& earlier = parties[clash.earlier.owner];
    const Party& later = parties[clash.later.owner];
    const Claim& claim = *clash.later.claim;
    Problem problem = ProblemAt(later, claim.path, claim.line, Describe(clash, earlier));
    problem.conflict = earlier.source == nullptr || later.source == nullptr;
    problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<Problem> FindMissing(std::span<const Party> parties, std::span<const ObjectKey> known) {
  const std::set<ObjectKey> there(known.begin(), known.end());
  std::vector<Problem> problems;
  for (const Party& party : parties) {
    if (party.source == nullptr) continue;
    for (const Reference& reference : party.spec->References()) {
      if (there.contains(reference.key)) continue;
      Problem problem = ProblemAt(party, reference.path, reference.line,
                                  fmt::format("there is no {}: apply it before, or with this one",
                                              reference.key.ToString()));
      problem.conflict = true;
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

std::vector<Problem> FindSwallowed(std::span<const Party> parties) {
  std::vector<std::vector<Claim>> claims;
  claims.reserve(parties.size());
  for (const Party& party : parties) claims.push_back(party.spec->Claims());
  const BlocksBySpace blocks = ClaimedBlocks(parties, claims);
  std::vector<Problem> problems;
  for (const Party& party : parties) {
    std::vector<Avoidance> avoidances = party.spec->Avoidances();
    if (party.source != nullptr) {
      const std::vector<Avoidance>& resolved = party.source->resolved;
      avoidances.insert(avoidances.end(), resolved.begin(), resolved.end());
    }
    for (const Avoidance& avoidance : avoidances) {
      const OwnedBlock* around = BlockAround(avoidance, blocks);
      if (around == nullptr) continue;
      if (party.source == nullptr && around->party->source == nullptr) continue;
      Problem problem =
          ProblemAt(party, avoidance.path, avoidance.line,
                    fmt::format("{} lies in {}, {}: {}", SubjectOf(avoidance),
                                std::get<ip::Prefix>(around->claim->what).ToString(),
                                OwnerOf(*around->claim, *around->party), avoidance.why));
      problem.conflict = party.source == nullptr || around->party->source == nullptr;
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

std::vector<Problem> FindCutLifelines(std::span<const Party> parties,
                                      std::span<const LifelineAddress> lifelines) {
  std::vector<Problem> problems;
  for (const Party& party : parties) {
    if (party.source == nullptr || lifelines.empty()) continue;
    for (const Claim& claim : party.spec->Claims()) {
      const auto* block = std::get_if<ip::Prefix>(&claim.what);
      if (block == nullptr || claim.space != kNetworkSpace || claim.share != kDroppedShare) {
        continue;
      }
      const auto cut = std::find_if(
          lifelines.begin(), lifelines.end(),
          [&](const LifelineAddress& lifeline) { return block->Contains(lifeline.address); });
      if (cut == lifelines.end()) continue;
      Problem problem = ProblemAt(
          party, claim.path, claim.line,
          fmt::format("{} holds {}, {}: nodes drop all traffic with it, and would lose what they "
                      "need to work; take that address out of the block",
                      block->ToString(), cut->address.ToString(), cut->what));
      problem.conflict = true;
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

}  // namespace spoke::ipam
