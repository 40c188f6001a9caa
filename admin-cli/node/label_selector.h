// Selectors of labels as kubectl writes them: "zone=1,gpu in (h100,a100),!spot". Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::ctl {

// What a label must be. Kubernetes has the same rules: kNotIn also holds where there is no such
// label.
struct LabelRequirement {
  enum class Kind { kIn, kNotIn, kExists, kAbsent };

  std::string key;
  Kind kind = Kind::kExists;
  std::vector<std::string> values;  // With kIn and kNotIn one or more; else none.

  bool operator==(const LabelRequirement&) const = default;
};
using LabelSelector = std::vector<LabelRequirement>;

// Reads requirements between commas: KEY=VALUE, KEY==VALUE, KEY!=VALUE, KEY, !KEY, KEY in (A,B) and
// KEY notin (A,B); there may be blanks between words. Errors: kInvalidArgument, with the part that
// is none of these.
absl::StatusOr<LabelSelector> ParseLabelSelector(std::string_view text);

// Returns whether labels meet all requirements; none are met by all labels. `value` returns the
// label of a key, or nullptr.
bool Matches(const LabelSelector& selector,
             const std::function<const std::string*(const std::string& key)>& value);

// Returns text that parses to the same selector.
std::string PrintLabelSelector(const LabelSelector& selector);

}  // namespace spoke::ctl
