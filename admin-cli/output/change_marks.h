// Marks what has changed since the picture before, for --watch. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin-cli/output/table.h"

namespace spoke::ctl {

class ChangeMarks {
 public:
  // Begins the next picture. It is compared with the one that ends here; one in which nothing was
  // marked, such as while the server is away, is passed over.
  void Begin();

  // Marks each cell of `row` that differs from that of the last picture, in the row of that name
  // and at the same place; of several rows of one name, the first is compared with the first. A row
  // that is new is marked whole. In the first picture nothing is marked. How long ago
  // something was ("5m") is no change: it changes by itself.
  void Mark(std::string_view name, Row& row);

 private:
  using Key = std::pair<std::string, size_t>;  // The name, and which one of that name.
  using Picture = std::map<Key, std::vector<std::string>>;

  Picture last_;
  Picture present_;
  std::map<std::string, size_t> seen_;  // How many rows of each name there are so far.
};

}  // namespace spoke::ctl
