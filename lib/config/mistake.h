// One thing that is wrong with a file, as the readers of lib/config take it down. Pure.
#pragma once

#include <string>

namespace spoke::config {

// `path` is like "pools[1].cidr", empty for the file as a whole.
struct Mistake {
  int line = 1;  // 1 is the first.
  std::string path;
  std::string message;

  bool operator==(const Mistake&) const = default;
};

}  // namespace spoke::config
