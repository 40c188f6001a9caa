// The beginning of a text that may be too long. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spoke::base {

// Returns the first bytes of UTF-8 text `text`, at most `most`, and never a part of a character:
// protobuf refuses such text, and terminals show rubbish.
inline std::string CutText(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return std::string(text.substr(0, most));
}

}  // namespace spoke::base
