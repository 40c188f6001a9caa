#include "tests/bench/cni/plugin_run.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/unique_fd.h"

namespace spoke::cni_bench {
namespace {

// A pipe takes this much before anybody reads, so the input can be written before the spawn.
constexpr size_t kPipeBytes = 64 << 10;

absl::Duration Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

struct Pipe {
  os::UniqueFd read;
  os::UniqueFd write;
};

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return base::ErrnoToStatus(errno, "make a pipe");
  return Pipe{os::UniqueFd(ends[0]), os::UniqueFd(ends[1])};
}

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

absl::StatusOr<pid_t> Spawn(const PluginCall& call, int input, int output) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> environment = {
      "CNI_COMMAND=" + call.command,
      "CNI_CONTAINERID=" + call.container_id,
      "CNI_NETNS=" + call.netns,
      "CNI_IFNAME=" + call.ifname,
      "CNI_ARGS=" + call.args,
      "CNI_PATH=" + call.path,
      std::string("PATH=") + (path == nullptr ? "/usr/sbin:/usr/bin:/sbin:/bin" : path)};
  std::vector<char*> pointers;
  pointers.reserve(environment.size() + 1);
  for (std::string& variable : environment) pointers.push_back(variable.data());
  pointers.push_back(nullptr);
  std::string program = call.program;
  std::array<char*, 2> arguments = {program.data(), nullptr};

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), pointers.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return base::ErrnoToStatus(error, "run " + call.program);
  return pid;
}

}  // namespace

absl::StatusOr<PluginRun> RunPlugin(const PluginCall& call, std::string_view input) {
  if (input.size() > kPipeBytes) return absl::InvalidArgumentError("the input is too long");
  ASSIGN_OR_RETURN(Pipe in, MakePipe());
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  if (::write(in.write.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) {
    return base::ErrnoToStatus(errno, "write a plugin's input");
  }
  in.write.Reset();

  PluginRun run;
  const absl::Duration began = Now();
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(call, in.read.get(), out.write.get()));
  out.write.Reset();
  run.output = ReadAll(out.read.get());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  run.took = Now() - began;
  if (!WIFEXITED(status)) {
    return absl::InternalError(fmt::format("{} was killed by signal {}", call.program,
                                           WIFSIGNALED(status) ? WTERMSIG(status) : 0));
  }
  run.code = WEXITSTATUS(status);
  return run;
}

}  // namespace spoke::cni_bench
