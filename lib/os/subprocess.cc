#include "lib/os/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/clock.h"
#include "lib/os/unique_fd.h"

namespace spoke::os {
namespace {

constexpr size_t kMaxErrorBytes = 4096;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

absl::StatusOr<Pipe> OpenPipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return base::ErrnoToStatus(errno, "open a pipe");
  return Pipe{.read = UniqueFd(ends[0]), .write = UniqueFd(ends[1])};
}

// Returns the words as exec() wants them. Valid as long as `words` are, which it does not change:
// its type is older than const.
std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  return pointers;
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& command,
                            const std::vector<std::string>& variables, int out, int err) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
  // Daemons block the signals they wait for; their children must not inherit that.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments = Pointers(command);
  arguments.push_back(nullptr);
  std::vector<char*> environment = Pointers(variables);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, command.front().c_str(), &files, &attributes,
                                  arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return base::ErrnoToStatus(error, fmt::format("run {}", command.front()));
  return child;
}

// Reads what comes by `fd` up to `limit`; the rest is thrown away. Returns false at the end.
bool ReadSome(int fd, size_t limit, std::string& out, bool& too_much) {
  std::array<char, 65'536> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  const size_t room = limit - std::min(limit, out.size());
  too_much = too_much || static_cast<size_t>(got) > room;
  out.append(buffer.data(), std::min(static_cast<size_t>(got), room));
  return true;
}

// Reads until both ends are closed. Errors: kDeadlineExceeded, kResourceExhausted.
absl::Status Collect(UniqueFd out, UniqueFd err, const ProgramOptions& options, ProgramResult& to) {
  const int64_t deadline = MonotonicMs() + absl::ToInt64Milliseconds(options.time);
  bool too_much = false;
  bool too_many_errors = false;
  while (out.valid() || err.valid()) {
    const int64_t left = deadline - MonotonicMs();
    if (left <= 0) return absl::DeadlineExceededError("it takes too long");
    std::array<pollfd, 2> waiting{{{.fd = out.valid() ? out.get() : -1, .events = POLLIN},
                                   {.fd = err.valid() ? err.get() : -1, .events = POLLIN}}};
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(left)) < 0 && errno != EINTR) {
      return base::ErrnoToStatus(errno, "poll");
    }
    if (waiting[0].revents != 0 &&
        !ReadSome(out.get(), options.output_bytes, to.output, too_much)) {
      out = UniqueFd();
    }
    if (waiting[1].revents != 0 &&
        !ReadSome(err.get(), kMaxErrorBytes, to.errors, too_many_errors)) {
      err = UniqueFd();
    }
    if (too_much) return absl::ResourceExhaustedError("it says too much");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& command,
                                         const ProgramOptions& options) {
  ASSIGN_OR_RETURN(Pipe out, OpenPipe());
  ASSIGN_OR_RETURN(Pipe err, OpenPipe());
  ASSIGN_OR_RETURN(const pid_t child,
                   Spawn(command, options.variables, out.write.get(), err.write.get()));
  // If these stayed open, the pipes would never end.
  out.write = UniqueFd();
  err.write = UniqueFd();
  ProgramResult result;
  const absl::Status read = Collect(std::move(out.read), std::move(err.read), options, result);
  if (!read.ok()) ::kill(child, SIGKILL);
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return base::ErrnoToStatus(errno, "wait for " + command.front());
  }
  RETURN_IF_ERROR(base::Annotate(read, "run " + command.front()));
  result.exit_code = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
  return result;
}

}  // namespace spoke::os
