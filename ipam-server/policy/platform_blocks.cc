#include "ipam-server/policy/platform_blocks.h"

#include <array>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

constexpr std::array<std::string_view, 7> kBlocks = {
    "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32",
    "::1/128",     "fe80::/10",      "ff00::/8"};

}  // namespace

const std::vector<ip::Prefix>& PlatformBlocks() {
  static const auto* const blocks = [] {
    auto* parsed = new std::vector<ip::Prefix>;
    for (const std::string_view text : kBlocks) {
      const auto block = ip::Prefix::Parse(text);
      CHECK(block.ok(), "our own blocks are blocks");
      parsed->push_back(*block);
    }
    return parsed;
  }();
  return *blocks;
}

absl::Status CheckOutsidePlatform(const ip::Prefix& block) {
  for (const ip::Prefix& platform : PlatformBlocks()) {
    if (!platform.Contains(block)) continue;
    return absl::InvalidArgumentError(
        fmt::format("{} lies in {}, which is the platform's or the node's own in every cluster, "
                    "and comes before any policy: take it out",
                    block.ToString(), platform.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace spoke::ipam
