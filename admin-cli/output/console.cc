#include "admin-cli/output/console.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "admin-cli/output/table.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

absl::Status WriteAll(int fd, std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return base::ErrnoToStatus(errno, fmt::format("write to {}", name));
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return absl::OkStatus();
}

}  // namespace

void RealConsole::Out(std::string_view text) {
  written_.Update(WriteAll(STDOUT_FILENO, text, "standard output"));
}

void RealConsole::Err(std::string_view text) {
  // There is nowhere left to say that this failed.
  WriteAll(STDERR_FILENO, text, "standard error").IgnoreError();
}

absl::StatusOr<std::string> RealConsole::ReadInput(size_t max_bytes) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::ErrnoToStatus(errno, "read standard input");
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
    if (text.size() > max_bytes) {
      return absl::ResourceExhaustedError(
          fmt::format("standard input has more than {} bytes", max_bytes));
    }
  }
}

bool RealConsole::out_is_terminal() const { return ::isatty(STDOUT_FILENO) == 1; }
bool RealConsole::err_is_terminal() const { return ::isatty(STDERR_FILENO) == 1; }

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
