#include "tests/bench/path/fast_map.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lib/base/status.h"

namespace spoke::path_bench {
namespace {

// The kernel writes one value for each processor that could ever be there: room for 512 of them
// with values of 64 bytes.
constexpr size_t kValueWords = 4096;

// libbpf would do the same and more; what is measured is the kernel.
int64_t Bpf(bpf_cmd command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

}  // namespace

absl::StatusOr<FastMap> FastMap::Open(uint32_t id) {
  bpf_attr by_id{};
  by_id.map_id = id;
  const auto fd = static_cast<int>(Bpf(BPF_MAP_GET_FD_BY_ID, by_id));
  if (fd < 0) return base::ErrnoToStatus(errno, "open the fast path's map");
  FastMap map{os::UniqueFd(fd)};
  map.values_.resize(kValueWords);

  bpf_map_info info{};
  bpf_attr about{};
  about.info.bpf_fd = static_cast<uint32_t>(fd);
  about.info.info_len = sizeof info;
  about.info.info = reinterpret_cast<uint64_t>(&info);
  if (Bpf(BPF_OBJ_GET_INFO_BY_FD, about) < 0) {
    return base::ErrnoToStatus(errno, "look at the fast path's map");
  }
  for (uint32_t key = 0; key < info.max_entries; ++key) {
    RETURN_IF_ERROR(map.LookUp(key));
    const bool counted = std::any_of(map.values_.begin(), map.values_.end(),
                                     [](uint64_t value) { return value != 0; });
    if (counted) map.used_.push_back(key);
  }
  return map;
}

absl::Status FastMap::LookUp(uint32_t key) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(fd_.get());
  attributes.key = reinterpret_cast<uint64_t>(&key);
  attributes.value = reinterpret_cast<uint64_t>(values_.data());
  if (Bpf(BPF_MAP_LOOKUP_ELEM, attributes) < 0) {
    return base::ErrnoToStatus(errno, "read the fast path's map");
  }
  return absl::OkStatus();
}

absl::Status FastMap::Read() {
  for (const uint32_t key : used_) RETURN_IF_ERROR(LookUp(key));
  return absl::OkStatus();
}

}  // namespace spoke::path_bench
