// One thing that is wrong with a file, as the readers of lib/config note it. Pure.
#pragma once

#include <string>

namespace spoke::config {

// The key that is wrong, like "pools[1].cidr"; empty for the file as a whole.
struct Mistake {
  int line = 1;  // The line; the first is 1.
  std::string path;
  std::string message;

  bool operator==(const Mistake&) const = default;
};

}  // namespace spoke::config
