#include "ipam-server/policy/objects/object.h"

#include <algorithm>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxLabel = 63;

bool IsLabelCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

}  // namespace

std::string ObjectKey::ToString() const { return fmt::format("{} \"{}\"", kind, name); }

bool BearsLabels(const NodeLabels& labels, const NodeLabels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

absl::Status CheckLabel(std::string_view name) {
  if (!name.empty() && name.size() <= kMaxLabel && name.front() != '-' && name.back() != '-' &&
      std::all_of(name.begin(), name.end(), IsLabelCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("must be 1 to {} of a-z, 0-9 and '-', with no '-' at either end, not \"{}{}\"",
                  kMaxLabel, name.substr(0, kMaxLabel), name.size() <= kMaxLabel ? "" : "..."));
}

}  // namespace spoke::ipam
