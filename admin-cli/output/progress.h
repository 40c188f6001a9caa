// A line on standard error that shows how far long work is, when that is a terminal; else nothing.
// Not thread-safe; borrows the console.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "admin-cli/output/console.h"

namespace spoke::ctl {

// Returns "audit  [#####.....]  50%  3 of 6 nodes": `text` is what stands behind the bar. With a
// total of 0 there is no bar.
std::string ProgressLine(std::string_view what, uint64_t done, uint64_t total,
                         std::string_view text);

class Progress {
 public:
  Progress(Console& console, std::string what) : console_(console), what_(std::move(what)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Takes the line away, so that what follows stands alone.
  ~Progress() { Clear(); }

  // Draws the line when it differs from the last.
  void Show(uint64_t done, uint64_t total, std::string_view text);
  void Clear();

 private:
  Console& console_;
  std::string what_;
  std::string shown_;
};

}  // namespace spoke::ctl
