#include "ipam-server/store/record_digest.h"

#include <zlib.h>

#include <array>
#include <cstddef>

namespace spoke::ipam {
namespace {

// Adds `value`, least significant byte first on every machine: a store may move to another.
template <typename T>
uint32_t AddInteger(uint32_t crc, T value) {
  std::array<unsigned char, sizeof(T)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(static_cast<uint64_t>(value) >> (8 * i));
  }
  return static_cast<uint32_t>(::crc32_z(crc, bytes.data(), bytes.size()));
}

uint32_t AddText(uint32_t crc, std::string_view text) {
  if (text.empty()) return crc;  // zlib takes a null pointer for "begin anew".
  return static_cast<uint32_t>(
      ::crc32_z(crc, reinterpret_cast<const unsigned char*>(text.data()), text.size()));
}

}  // namespace

uint32_t RecordCrc(std::string_view key, int64_t revision, std::string_view value) {
  // The length keeps a byte from changing sides between key and value unseen.
  uint32_t crc = AddInteger(0, static_cast<uint32_t>(key.size()));
  crc = AddText(crc, key);
  crc = AddInteger(crc, revision);
  return AddText(crc, value);
}

void SnapshotDigest::Add(uint32_t record_crc) {
  ++records_;
  crc_ = AddInteger(crc_, record_crc);
}

}  // namespace spoke::ipam
