#include "netagent/journal/frame.h"

#include <zlib.h>

namespace spoke::netagent {

uint32_t Crc32(std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

void AppendLittleEndian(uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xFFU);
}

uint32_t ReadLittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i > 0; --i) value = (value << 8U) | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

}  // namespace spoke::netagent
