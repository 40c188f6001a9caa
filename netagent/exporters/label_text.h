// Makes text of others the value of a metric's label. Pure.
#pragma once

#include <string>
#include <string_view>

namespace spoke::netagent {

inline constexpr size_t kMaxLabelBytes = 512;

// Returns `text` with what is no UTF-8, or a control character, replaced by '?', and cut when it is
// longer than kMaxLabelBytes: Prometheus throws away a scrape with any other label. Doing it twice
// changes nothing.
std::string LabelText(std::string_view text);

}  // namespace spoke::netagent
