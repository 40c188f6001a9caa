// How the writing of taints and conditions stands. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spoke::ipam {

enum class WriteResult : uint8_t { kOk, kConflict, kThrottled, kDenied, kFailed };
inline constexpr size_t kWriteResults = 5;
std::string_view NameOf(WriteResult result);

// How things stand, for metrics.
struct NodesStanding {
  bool usable = false;  // The API server tells of nodes, and takes writes.
  uint64_t nodes = 0;
  uint64_t unfit = 0;
  uint64_t tainted = 0;
  uint64_t joining = 0;
  uint64_t held_back = 0;
  uint64_t waiting = 0;
  std::array<uint64_t, kWriteResults> writes{};  // By WriteResult.
  uint64_t lists = 0;
  uint64_t watches = 0;
  uint64_t forgotten = 0;
};

}  // namespace spoke::ipam
