#include "admin-cli/output/console.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

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

}  // namespace spoke::ctl
