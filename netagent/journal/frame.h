// What the agent's files are framed with: checksums, and numbers in little endian. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spoke::netagent {

// CRC-32 as zlib and Ethernet have it.
uint32_t Crc32(std::string_view bytes);

// 32 bits, four bytes.
void AppendLittleEndian(uint32_t value, std::string& out);
// The first four of `bytes`, which must have them.
uint32_t ReadLittleEndian(std::string_view bytes);

}  // namespace spoke::netagent
