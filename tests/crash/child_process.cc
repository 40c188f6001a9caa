#include "tests/crash/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/unique_fd.h"

namespace spoke::crash {
namespace {

// Runs between fork() and exec, so only what a signal handler could call is called.
[[noreturn]] void Become(char* const* arguments, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // The parent ended before that.
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (::dup2(input, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      ::dup2(output, STDERR_FILENO) < 0) {
    ::_exit(127);
  }
  ::close_range(3, ~0U, 0);
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

std::string DescribeEnd(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("ended with code {}", WEXITSTATUS(wait_status));
  return fmt::format("was ended by signal {}", WTERMSIG(wait_status));
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& arguments,
                                                 const std::string& output) {
  const os::UniqueFd file(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid()) return base::ErrnoToStatus(errno, fmt::format("open {}", output));
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  // execv() does not write to them.
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return base::ErrnoToStatus(errno, "fork");
  if (pid == 0) Become(pointers.data(), file.get(), parent);
  return ChildProcess(pid);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

absl::StatusOr<int> ChildProcess::End(int signal) {
  if (const std::string ended = HasEnded(); !ended.empty()) {
    return absl::FailedPreconditionError(fmt::format("it {} by itself", ended));
  }
  ::kill(pid_, signal);
  ::waitpid(pid_, &status_, 0);
  pid_ = -1;
  return status_;
}

int ChildProcess::Wait() {
  if (pid_ >= 0) {
    ::waitpid(pid_, &status_, 0);
    pid_ = -1;
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

std::string ChildProcess::HasEnded() {
  if (pid_ >= 0) {
    if (::waitpid(pid_, &status_, WNOHANG) == 0) return "";
    pid_ = -1;
  }
  return DescribeEnd(status_);
}

}  // namespace spoke::crash
