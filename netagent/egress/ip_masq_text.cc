#include "netagent/egress/ip_masq_text.h"

#include <algorithm>
#include <array>
#include <optional>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

using config::Need;
using nlohmann::json;

constexpr std::string_view kBlocks = "nonMasqueradeCIDRs";
constexpr std::string_view kLinkLocal = "masqLinkLocal";
constexpr std::string_view kLinkLocalIpv6 = "masqLinkLocalIPv6";
constexpr std::string_view kResync = "resyncInterval";
constexpr std::array kKnown = {kBlocks, kLinkLocal, kLinkLocalIpv6, kResync};
constexpr absl::Duration kShortestResync = absl::Seconds(1);
constexpr absl::Duration kLongestResync = absl::Hours(24);
constexpr int kMaxDepth = 4;  // An object and a list, and some more for keys that are not ours.

// The private blocks of RFC 1918.
constexpr std::array kPrivate = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"};

struct OneFile {
  std::optional<std::vector<ip::Prefix>> blocks;
  bool link_local = false;
  bool link_local_ipv6 = false;
  std::optional<absl::Duration> resync;
  std::vector<std::string> unknown;
};

bool IsKnown(std::string_view key) {
  return std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end();
}

absl::Status TakeBlock(std::string_view text, OneFile& out) {
  const auto block = ip::Prefix::Parse(text);
  if (!block.ok()) return block.status();
  if (!out.blocks) out.blocks.emplace();
  if (out.blocks->size() == kMaxNonMasquerade) {
    return absl::InvalidArgumentError(
        fmt::format("{} has more than {} blocks", kBlocks, kMaxNonMasquerade));
  }
  out.blocks->push_back(*block);
  return absl::OkStatus();
}

// Takes a duration as Go writes it: "60s", "1m30s".
absl::Status TakeResync(std::string_view text, OneFile& out) {
  absl::Duration resync;
  if (!absl::ParseDuration({text.data(), text.size()}, &resync) || resync < kShortestResync ||
      resync > kLongestResync) {
    return absl::InvalidArgumentError(fmt::format("{} must be a time from {} to {}, not '{}'",
                                                  kResync, absl::FormatDuration(kShortestResync),
                                                  absl::FormatDuration(kLongestResync), text));
  }
  out.resync = resync;
  return absl::OkStatus();
}

absl::StatusOr<OneFile> ParseYaml(std::string_view text, const std::string& name) {
  OneFile out;
  config::ConfigText document = config::ConfigText::Parse(text, name);
  const config::ConfigMap root = document.Root();
  for (const std::string& key : root.Keys()) {
    // Asking makes it known, so that it is no mistake.
    if (!IsKnown(key) && root.Has(key)) out.unknown.push_back(key);
  }
  if (root.Has(kBlocks)) out.blocks.emplace();
  if (!root.IsEmptyList(kBlocks)) {
    root.CustomList(kBlocks, Need::kOptional,
                    [&](std::string_view block) { return TakeBlock(block, out); });
  }
  root.Bool(kLinkLocal, &out.link_local, Need::kOptional);
  root.Bool(kLinkLocalIpv6, &out.link_local_ipv6, Need::kOptional);
  root.Custom(kResync, Need::kOptional,
              [&](std::string_view resync) { return TakeResync(resync, out); });
  RETURN_IF_ERROR(document.Finish());
  return out;
}

absl::Status TakeJson(const std::string& key, const json& value, OneFile& out) {
  if (key == kBlocks) {
    out.blocks.emplace();
    if (!value.is_array()) return absl::InvalidArgumentError(fmt::format("{} is no list", key));
    for (const json& block : value) {
      if (!block.is_string()) {
        return absl::InvalidArgumentError(fmt::format("{} holds what is no text", key));
      }
      RETURN_IF_ERROR(TakeBlock(block.get_ref<const std::string&>(), out));
    }
  } else if (key == kLinkLocal || key == kLinkLocalIpv6) {
    if (!value.is_boolean()) {
      return absl::InvalidArgumentError(fmt::format("{} is neither true nor false", key));
    }
    (key == kLinkLocal ? out.link_local : out.link_local_ipv6) = value.get<bool>();
  } else if (key == kResync) {
    if (!value.is_string()) return absl::InvalidArgumentError(fmt::format("{} is no text", key));
    return TakeResync(value.get_ref<const std::string&>(), out);
  } else {
    out.unknown.push_back(key);
  }
  return absl::OkStatus();
}

absl::StatusOr<OneFile> ParseJson(std::string_view text) {
  bool too_deep = false;
  const json document = json::parse(
      text,
      [&](int depth, json::parse_event_t, json&) {
        too_deep = too_deep || depth > kMaxDepth;
        return depth <= kMaxDepth;
      },
      /*allow_exceptions=*/false);
  if (too_deep || !document.is_object()) return absl::InvalidArgumentError("is no JSON object");
  OneFile out;
  for (const auto& [key, value] : document.items()) {
    RETURN_IF_ERROR(TakeJson(key, value, out));
  }
  return out;
}

absl::StatusOr<OneFile> ParseOne(const std::string& name, std::string_view text) {
  if (text.size() > kMaxIpMasqBytes) {
    return absl::InvalidArgumentError(
        fmt::format("has {} bytes; at most {} are read", text.size(), kMaxIpMasqBytes));
  }
  // YAML has JSON in it, except for what is odd, such as tabs.
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return OneFile();
  if (text[begin] == '{') return ParseJson(text);
  return ParseYaml(text, name);
}

}  // namespace

absl::StatusOr<IpMasqFiles> ParseIpMasq(
    const std::vector<std::pair<std::string, std::string>>& files) {
  IpMasqFiles out;
  bool named = false;
  std::optional<absl::Duration> resync;
  for (const auto& [name, text] : files) {
    auto file = ParseOne(name, text);
    if (!file.ok()) return base::Annotate(file.status(), name);
    IpMasqConfig& config = out.config;
    if (file->blocks) {
      named = true;
      config.non_masquerade.insert(config.non_masquerade.end(), file->blocks->begin(),
                                   file->blocks->end());
    }
    config.masquerade_link_local = config.masquerade_link_local || file->link_local;
    config.masquerade_link_local_ipv6 = config.masquerade_link_local_ipv6 || file->link_local_ipv6;
    if (file->resync) resync = std::min(resync.value_or(*file->resync), *file->resync);
    for (const std::string& key : file->unknown) out.unknown_keys.push_back(name + ": " + key);
  }
  if (!named) {
    for (const char* block : kPrivate) {
      out.config.non_masquerade.push_back(ip::Prefix::Parse(block).value());
    }
  }
  // One block from several files is one block.
  std::vector<ip::Prefix>& blocks = out.config.non_masquerade;
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  if (resync) out.resync = *resync;
  return out;
}

}  // namespace spoke::netagent
