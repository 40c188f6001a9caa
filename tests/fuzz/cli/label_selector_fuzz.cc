// Selectors of labels from any text. The laws: what parses has keys, and values where there must be
// some, and prints as text that parses to the same; what does not says why.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "admin-cli/node/label_selector.h"
#include "lib/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::ctl::LabelRequirement;
  const auto selector = spoke::ctl::ParseLabelSelector({reinterpret_cast<const char*>(data), size});
  if (!selector.ok()) {
    CHECK(selector.status().code() == absl::StatusCode::kInvalidArgument, "bad text has one code");
    CHECK(!selector.status().message().empty(), "a refusal has a reason");
    return 0;
  }
  CHECK(!selector->empty(), "a selector selects");
  for (const LabelRequirement& one : *selector) {
    CHECK(!one.key.empty(), "a requirement is of a label");
    const bool has_values =
        one.kind == LabelRequirement::Kind::kIn || one.kind == LabelRequirement::Kind::kNotIn;
    CHECK(has_values == !one.values.empty(), "in and notin have values, the others none");
  }
  const auto again = spoke::ctl::ParseLabelSelector(spoke::ctl::PrintLabelSelector(*selector));
  CHECK(again.ok() && *again == *selector, "what is printed parses to the same selector");
  return 0;
}
