#include "ipam-server/policy/kinds/shaping_fields.h"

#include "absl/status/status.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/units/text.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;

constexpr std::string_view kEnforce = "Enforce";
constexpr std::string_view kShadow = "Shadow";

}  // namespace

void ReadRate(const ConfigMap& map, std::string_view key, Need need, units::BitRate& out) {
  map.Custom(key, need, [&](std::string_view text) {
    ASSIGN_OR_RETURN(out, units::ParseBitRate(text));
    return absl::OkStatus();
  });
}

bool ReadShadow(const ConfigMap& spec) {
  bool shadow = false;
  spec.Custom("mode", Need::kOptional, [&](std::string_view text) {
    shadow = text == kShadow;
    if (shadow || text == kEnforce) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("must be Enforce or Shadow, not \"{}\"", text.substr(0, 64)));
  });
  return shadow;
}

std::string ModeText(bool shadow) { return std::string(shadow ? kShadow : kEnforce); }

Listed<std::string> ReadScope(const ConfigMap& spec) {
  Listed<std::string> group;
  spec.Custom("destinationGroup", Need::kOptional, [&](std::string_view text) {
    RETURN_IF_ERROR(base::Annotate(CheckLabel(text), "a destination group"));
    group = {std::string(text), spec.LineOf("destinationGroup")};
    return absl::OkStatus();
  });
  return group;
}

Reference ReferenceTo(const Listed<std::string>& group) {
  return {{"DestinationGroup", group.value}, "spec.destinationGroup", group.line};
}

}  // namespace spoke::ipam
