// The leader's key in etcd, from any text. The laws: a name is one line, and what was read is read
// back from how it is written.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ipam-server/store/etcd/leader_record.h"
#include "lib/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::ipam::etcd::DecodeLeader;
  const auto record = DecodeLeader(std::string_view(reinterpret_cast<const char*>(data), size));
  CHECK(record.name.find('\n') == std::string::npos, "a name is one line");
  CHECK(DecodeLeader(EncodeLeader(record)) == record, "a record is read back as it is written");
  return 0;
}
