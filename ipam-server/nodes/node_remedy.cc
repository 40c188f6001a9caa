#include "ipam-server/nodes/node_remedy.h"

#include <array>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr std::array kEffects = {TaintEffect::kNone, TaintEffect::kNoSchedule,
                                 TaintEffect::kNoExecute};

}  // namespace

std::string_view NameOf(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNone:
      return "none";
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "none";
}

absl::StatusOr<TaintEffect> ParseTaintEffect(std::string_view text) {
  for (const TaintEffect effect : kEffects) {
    if (text == NameOf(effect)) return effect;
  }
  return absl::InvalidArgumentError(
      fmt::format("must be none, NoSchedule or NoExecute, not '{}'", text.substr(0, 64)));
}

std::optional<kubernetes::Taint> DueTaint(const TaintCause& cause, const Remedy& remedy,
                                          const kubernetes::Taint* present) {
  if (remedy.effect == TaintEffect::kNone) return std::nullopt;
  const std::string_view evicting = NameOf(TaintEffect::kNoExecute);
  const bool evicts = remedy.effect == TaintEffect::kNoExecute &&
                      ((cause.may_evict && cause.since >= remedy.evict_after) ||
                       (present != nullptr && present->effect == evicting));
  return kubernetes::Taint{
      .key = std::string(cause.key),
      .value = std::string(cause.value),
      .effect = std::string(evicts ? evicting : NameOf(TaintEffect::kNoSchedule))};
}

}  // namespace spoke::ipam
