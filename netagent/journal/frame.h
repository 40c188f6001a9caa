// Helpers for the frames of the agent's files: checksums, and numbers in little endian. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spoke::netagent {

// Returns the CRC-32 that zlib and Ethernet use.
uint32_t Crc32(std::string_view bytes);

// Appends the 32 bits as four bytes.
void AppendLittleEndian(uint32_t value, std::string& out);
// Reads the first four of `bytes`, which must have them.
uint32_t ReadLittleEndian(std::string_view bytes);

}  // namespace spoke::netagent
