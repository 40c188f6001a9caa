#include "cni-plugin/json/utf8.h"

#include "lib/base/utf8.h"

namespace spoke::cni {

bool IsUtf8(std::string_view text) {
  uint32_t character = 0;
  while (!text.empty()) {
    const size_t length = base::DecodeUtf8(text, character);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string ToUtf8(std::string_view text) {
  std::string out;
  uint32_t character = 0;
  while (!text.empty()) {
    const size_t length = base::DecodeUtf8(text, character);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

bool IsWhiteSpace(uint32_t character) {
  return (character >= 0x09 && character <= 0x0D) || character == 0x20 || character == 0x85 ||
         character == 0xA0 || character == 0x1680 || (character >= 0x2000 && character <= 0x200A) ||
         character == 0x2028 || character == 0x2029 || character == 0x202F || character == 0x205F ||
         character == 0x3000;
}

}  // namespace spoke::cni
