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

std::string WhereIs(const Selector& selector, int line) {
  if (selector.source != nullptr) return fmt::format("{}:{}", selector.source->file, line);
  return selector.configured ? "in the server's configuration" : "applied before";
}

// Says whose `claim` is, and where.
std::string OwnerOf(const Claim& claim, const Selector& selector) {
  return fmt::format("{} of {} ({})", claim.role, selector.key.ToString(),
                     WhereIs(selector, claim.line));
}

std::string Describe(const Clash& clash, const Selector& earlier) {
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

// A problem at `line` of `selector`, or with it named when no file gave it.
Problem ProblemAt(const Selector& selector, const std::string& path, int line,
                  std::string message) {
  Problem problem{.path = path, .message = std::move(message)};
  if (selector.source != nullptr) {
    problem.file = selector.source->file;
    problem.line = line;
  } else {
    problem.path = selector.key.ToString() + ": " + path;
  }
  return problem;
}

struct OwnedBlock {
  const Claim* claim;
  const Selector* selector;
};
// Blocks that are claimed; the first claim of each block and share.
using BlocksBySpace = std::map<std::string_view, std::multimap<ip::Prefix, OwnedBlock>>;

BlocksBySpace ClaimedBlocks(std::span<const Selector> selectors,
                            const std::vector<std::vector<Claim>>& claims) {
  BlocksBySpace blocks;
  for (size_t i = 0; i < selectors.size(); ++i) {
    for (const Claim& claim : claims[i]) {
      const auto* block = std::get_if<ip::Prefix>(&claim.what);
      if (block != nullptr) blocks[claim.space].emplace(*block, OwnedBlock{&claim, &selectors[i]});
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

std::vector<Problem> FindClashes(std::span<const Selector> selectors) {
  std::vector<std::vector<Claim>> claims;
  claims.reserve(selectors.size());
  for (const Selector& selector : selectors) claims.push_back(selector.spec->Claims());
  std::vector<OwnedClaim> owned;
  for (size_t i = 0; i < selectors.size(); ++i) {
    for (const Claim& claim : claims[i]) owned.push_back({&claim, i});
  }
  std::vector<Problem> problems;
  for (const Clash& clash : FindClashes(owned)) {
    const Selector& earlier = selectors[clash.earlier.owner];
    const Selector& later = selectors[clash.later.owner];
    const Claim& claim = *clash.later.claim;
    Problem problem = ProblemAt(later, claim.path, claim.line, Describe(clash, earlier));
    problem.conflict = earlier.source == nullptr || later.source == nullptr;
    problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<Problem> FindMissing(std::span<const Selector> selectors,
                                 std::span<const ObjectKey> known) {
  const std::set<ObjectKey> there(known.begin(), known.end());
  std::vector<Problem> problems;
  for (const Selector& selector : selectors) {
    if (selector.source == nullptr) continue;
    for (const Reference& reference : selector.spec->References()) {
      if (there.contains(reference.key)) continue;
      Problem problem = ProblemAt(selector, reference.path, reference.line,
                                  fmt::format("there is no {}: apply it before, or with this one",
                                              reference.key.ToString()));
      problem.conflict = true;
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

std::vector<Problem> FindSwallowed(std::span<const Selector> selectors) {
  std::vector<std::vector<Claim>> claims;
  claims.reserve(selectors.size());
  for (const Selector& selector : selectors) claims.push_back(selector.spec->Claims());
  const BlocksBySpace blocks = ClaimedBlocks(selectors, claims);
  std::vector<Problem> problems;
  for (const Selector& selector : selectors) {
    std::vector<Avoidance> avoidances = selector.spec->Avoidances();
    if (selector.source != nullptr) {
      const std::vector<Avoidance>& resolved = selector.source->resolved;
      avoidances.insert(avoidances.end(), resolved.begin(), resolved.end());
    }
    for (const Avoidance& avoidance : avoidances) {
      const OwnedBlock* around = BlockAround(avoidance, blocks);
      if (around == nullptr) continue;
      if (selector.source == nullptr && around->selector->source == nullptr) continue;
      Problem problem =
          ProblemAt(selector, avoidance.path, avoidance.line,
                    fmt::format("{} lies in {}, {}: {}", SubjectOf(avoidance),
                                std::get<ip::Prefix>(around->claim->what).ToString(),
                                OwnerOf(*around->claim, *around->selector), avoidance.why));
      problem.conflict = selector.source == nullptr || around->selector->source == nullptr;
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

std::vector<Problem> FindCutProtectedAddresses(
    std::span<const Selector> selectors, std::span<const ProtectedAddress> protected_addresses) {
  std::vector<Problem> problems;
  for (const Selector& selector : selectors) {
    if (selector.source == nullptr || protected_addresses.empty()) continue;
    for (const Claim& claim : selector.spec->Claims()) {
      const auto* block = std::get_if<ip::Prefix>(&claim.what);
      if (block == nullptr || claim.space != kNetworkSpace || claim.share != kDroppedShare) {
        continue;
      }
      const auto cut = std::find_if(protected_addresses.begin(), protected_addresses.end(),
                                    [&](const ProtectedAddress& protected_address) {
                                      return block->Contains(protected_address.address);
                                    });
      if (cut == protected_addresses.end()) continue;
      Problem problem = ProblemAt(
          selector, claim.path, claim.line,
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
