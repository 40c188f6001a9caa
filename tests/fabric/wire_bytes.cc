#include "tests/fabric/wire_bytes.h"

namespace spoke::fabric {

uint16_t InternetChecksum(Bytes covered) {
  uint32_t sum = 0;
  for (size_t at = 0; at + 1 < covered.size(); at += 2) sum += Load16(covered, at);
  if (covered.size() % 2 == 1) sum += static_cast<uint32_t>(covered.back()) << 8U;
  while (sum > 0xFFFFU) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<uint16_t>(~sum & 0xFFFFU);
}

uint16_t Icmpv6Checksum(const ip::Address& source, const ip::Address& destination, Bytes message) {
  std::vector<uint8_t> covered;
  AppendAddress(covered, source);
  AppendAddress(covered, destination);
  Append16(covered, 0);
  Append16(covered, static_cast<uint16_t>(message.size()));
  Append16(covered, 0);
  Append16(covered, kIcmpv6);
  covered.insert(covered.end(), message.begin(), message.end());
  return InternetChecksum(covered);
}

}  // namespace spoke::fabric
