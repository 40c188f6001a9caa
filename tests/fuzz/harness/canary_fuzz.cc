// A fuzz target that is broken on purpose, behind a few comparisons that no seed passes. A harness
// that does not find this one finds nothing: ctest and scripts/fuzz.sh both insist that it does.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t song = text.find("cheep");
  if (song == std::string_view::npos || song + 6 > size) return 0;
  // Every seed is ASCII.
  CHECK(data[song + 5] < 0x80, "the canary is alive");
  return 0;
}
