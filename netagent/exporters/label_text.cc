#include "netagent/exporters/label_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace spoke::netagent {
namespace {

// How many bytes the character takes that `text` begins with; 0: it is none (RFC 3629).
size_t CharacterBytes(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0U) != 0x80) return 0;
  }
  // Longer than need be, a surrogate, or beyond U+10FFFF.
  if (first == 0xE0 && at(1) < 0xA0) return 0;
  if (first == 0xED && at(1) > 0x9F) return 0;
  if (first == 0xF0 && at(1) < 0x90) return 0;
  if (first == 0xF4 && at(1) > 0x8F) return 0;
  return length;
}

}  // namespace

std::string LabelText(std::string_view text) {
  std::string out;
  out.reserve(std::min(text.size(), kMaxLabelBytes));
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    if (out.size() + std::max<size_t>(length, 1) > kMaxLabelBytes) break;
    if (length == 0) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace spoke::netagent
