// spoke: the CNI plugin. Exec'd by the container runtime for each pod; only dispatches.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>

#include "cni-plugin/commands.h"

namespace {

constexpr size_t kMaxInputBytes = 4 << 20;

std::optional<std::string> GetEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

bool ReadInput(std::string& text) {
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) return true;
    text.append(buffer.data(), static_cast<size_t>(got));
    if (text.size() > kMaxInputBytes) return false;
  }
}

bool WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);  // A runtime that is gone is an error to handle, not an end.
  const int code = spoke::cni::RunCommand(
      {.environment = &GetEnvironment,
       .read_stdin = &ReadInput,
       .write_stdout = [](const std::string& text) { return WriteAll(STDOUT_FILENO, text); },
       .write_stderr = [](const std::string& text) { WriteAll(STDERR_FILENO, text); }});
  ::_exit(code);  // Nothing is left to do that is worth the page faults.
}
