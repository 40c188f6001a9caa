#include "ipam-server/policy/objects/claims.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace spoke::ipam {
namespace {

Clash ClashOf(const OwnedClaim& a, const OwnedClaim& b) {
  const auto place = [](const OwnedClaim& claim) {
    return std::tuple(claim.owner, claim.claim->line);
  };
  return place(b) < place(a) ? Clash{b, a} : Clash{a, b};
}

const ip::Prefix& BlockOf(const OwnedClaim& claim) {
  return std::get<ip::Prefix>(claim.claim->what);
}

// Blocks nest or are apart, so that in the order of (base, length) those around a block are the
// open ones before it.
void FindOverlaps(std::vector<OwnedClaim>& blocks, std::vector<Clash>& out) {
  std::stable_sort(blocks.begin(), blocks.end(), [](const OwnedClaim& a, const OwnedClaim& b) {
    return BlockOf(a) < BlockOf(b);
  });
  // All of one share, each inside the one before and none equal: no deeper than an address is long.
  std::vector<OwnedClaim> open;
  for (const OwnedClaim& block : blocks) {
    while (!open.empty() && !BlockOf(open.back()).Contains(BlockOf(block))) open.pop_back();
    if (open.empty()) {
      open.push_back(block);
    } else if (open.back().claim->share != block.claim->share) {
      out.push_back(ClashOf(open.back(), block));
    } else if (BlockOf(open.back()) != BlockOf(block)) {
      open.push_back(block);
    }
  }
}

}  // namespace

std::vector<Clash> FindClashes(std::span<const OwnedClaim> claims) {
  std::map<std::string_view, std::vector<OwnedClaim>> blocks;
  std::map<std::pair<std::string_view, std::string_view>, OwnedClaim> words;
  std::vector<Clash> out;
  for (const OwnedClaim& claim : claims) {
    if (std::holds_alternative<ip::Prefix>(claim.claim->what)) {
      blocks[claim.claim->space].push_back(claim);
      continue;
    }
    const auto& word = std::get<std::string>(claim.claim->what);
    const auto [first, inserted] = words.try_emplace({claim.claim->space, word}, claim);
    if (!inserted && first->second.claim->share != claim.claim->share) {
      out.push_back(ClashOf(first->second, claim));
    }
  }
  for (auto& [space, list] : blocks) FindOverlaps(list, out);
  return out;
}

}  // namespace spoke::ipam
