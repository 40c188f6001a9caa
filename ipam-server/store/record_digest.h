// Checksums of records, by which damage is found that a file's structure does not show. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace spoke::ipam {

// Returns the CRC-32 over key, revision and value, so that a value under a wrong key is found as
// well. Stored with each record: the computation is for ever.
uint32_t RecordCrc(std::string_view key, int64_t revision, std::string_view value);

// The digest of a whole snapshot: two with the same records in the same order have equal ones.
class SnapshotDigest {
 public:
  void Add(uint32_t record_crc);
  int64_t records() const { return records_; }

  bool operator==(const SnapshotDigest&) const = default;

 private:
  int64_t records_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace spoke::ipam
