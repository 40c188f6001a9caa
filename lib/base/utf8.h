// Text that came from outside, read as UTF-8 (RFC 3629). Pure; a header alone, for the plugin,
// which links nothing of lib/base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spoke::base {

// Returns how many bytes the first character of `text` has, and which it is; 0: there is none, or
// it is not UTF-8 (a surrogate, an overlong form or anything above U+10FFFF).
inline size_t DecodeUtf8(std::string_view text, uint32_t& character) {
  if (text.empty()) return 0;
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) {
    character = first;
    return 1;
  }
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  uint32_t value = first & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xC0U) != 0x80) return 0;
    value = (value << 6U) | (byte & 0x3FU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || (value >= 0xD800 && value < 0xE000) || value > 0x10FFFF) return 0;
  character = value;
  return length;
}

// Returns whether all of `text` is UTF-8.
inline bool IsUtf8(std::string_view text) {
  uint32_t character = 0;
  while (!text.empty()) {
    const size_t length = DecodeUtf8(text, character);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// The beginning of a text that may be too long.

// Returns the first bytes of UTF-8 text `text`, at most `most`, and never a part of a character:
// protobuf refuses such text, and terminals show rubbish.
inline std::string CutText(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return std::string(text.substr(0, most));
}

}  // namespace spoke::base
