// Versions from any text. The laws: one that parses is written as the text it was read from, and
// works with itself; and which of two is behind does not depend on which is named first.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"
#include "lib/base/version_skew.h"

namespace spoke::base {
namespace {

void CheckPair(std::string_view first, std::string_view second) {
  CHECK(CheckSkew({"a", first}, {"b", second}).ok() == CheckSkew({"b", second}, {"a", first}).ok(),
        "what works one way works the other way");
  const auto one = ParseVersion(first);
  const auto two = ParseVersion(second);
  if (!one.ok()) return;
  CHECK(one->ToString() == first, "a version is written as it was read");
  CHECK(SkewBetween(*one, *one) == Skew::kWorks, "a version works with itself");
  if (!two.ok()) return;
  CHECK((SkewBetween(*one, *two) == Skew::kFirstIsTooOld) ==
            (SkewBetween(*two, *one) == Skew::kSecondIsTooOld),
        "the older one is the older one");
}

}  // namespace
}  // namespace spoke::base

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\n');
  spoke::base::CheckPair(text.substr(0, end),
                         end == std::string_view::npos ? "" : text.substr(end + 1));
  return 0;
}
