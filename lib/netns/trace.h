// What tells one network namespace from others, also later, when nothing keeps it alive. Pure.
#pragma once

#include <cstdint>

namespace spoke::netns {

// All 0: nothing does.
struct Trace {
  uint64_t inode = 0;  // When the namespace is gone, the kernel gives the number to another.
  // SO_NETNS_COOKIE, which it never gives again until it boots; 0: it has none (before Linux 5.14).
  uint64_t cookie = 0;
  // The device and inode of the directory in which the path of the namespace ends.
  uint64_t directory_device = 0;
  uint64_t directory_inode = 0;

  bool operator==(const Trace&) const = default;
};

}  // namespace spoke::netns
