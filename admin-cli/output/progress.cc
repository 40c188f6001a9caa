#include "admin-cli/output/progress.h"

#include <algorithm>

#include "admin-cli/output/table.h"
#include "fmt/core.h"

namespace spoke::ctl {

std::string ProgressLine(std::string_view what, uint64_t done, uint64_t total,
                         std::string_view text) {
  constexpr uint64_t kBar = 30;
  if (total == 0) return fmt::format("{}  {}", what, Printable(text));
  const double share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto filled = static_cast<size_t>(share * static_cast<double>(kBar));
  return fmt::format("{}  [{}{}] {:3}%  {}", what, std::string(filled, '#'),
                     std::string(kBar - filled, '.'), static_cast<int>(share * 100),
                     Printable(text));
}

void Progress::Show(uint64_t done, uint64_t total, std::string_view text) {
  if (!console_.err_is_terminal()) return;
  const std::string line = ProgressLine(what_, done, total, text);
  if (line == shown_) return;
  console_.Err("\r\x1b[K" + line);
  shown_ = line;
}

void Progress::Clear() {
  if (!shown_.empty()) console_.Err("\r\x1b[K");
  shown_.clear();
}

}  // namespace spoke::ctl
