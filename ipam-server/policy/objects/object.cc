#include "ipam-server/policy/objects/object.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/dns_name.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxLabel = 63;

}  // namespace

std::string ObjectKey::ToString() const { return fmt::format("{} \"{}\"", kind, name); }

bool BearsLabels(const NodeLabels& labels, const NodeLabels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

absl::Status CheckLabel(std::string_view name) {
  if (base::IsDnsLabel(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("must be 1 to {} of a-z, 0-9 and '-', with no '-' at either end, not \"{}{}\"",
                  kMaxLabel, name.substr(0, kMaxLabel), name.size() <= kMaxLabel ? "" : "..."));
}

}  // namespace spoke::ipam
