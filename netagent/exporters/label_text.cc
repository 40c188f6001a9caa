#include "netagent/exporters/label_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/base/utf8.h"

namespace spoke::netagent {

std::string LabelText(std::string_view text) {
  std::string out;
  out.reserve(std::min(text.size(), kMaxLabelBytes));
  while (!text.empty()) {
    uint32_t character = 0;
    const size_t length = base::DecodeUtf8(text, character);
    const bool good = length > 0 && character >= 0x20 && character != 0x7F;
    if (out.size() + std::max<size_t>(length, 1) > kMaxLabelBytes) break;
    if (good) {
      out += text.substr(0, length);
    } else {
      out += '?';
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace spoke::netagent
