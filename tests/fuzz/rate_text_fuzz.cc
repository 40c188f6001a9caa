// Rates from any text. The laws: what parses is within the bounds and prints as text that parses to
// the same rate; what does not says why.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"
#include "lib/units/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::units;  // NOLINT(google-build-using-namespace)
  const auto rate = ParseBitRate({reinterpret_cast<const char*>(data), size});
  if (!rate.ok()) {
    CHECK(rate.status().code() == absl::StatusCode::kInvalidArgument, "bad text has one code");
    CHECK(!rate.status().message().empty(), "a refusal has a reason");
    return 0;
  }
  CHECK(*rate >= kLowestRate && *rate <= kHighestRate, "a rate is within the bounds");
  const auto again = ParseBitRate(ToText(*rate));
  CHECK(again.ok() && *again == *rate, "what is printed parses to the same rate");
  return 0;
}
