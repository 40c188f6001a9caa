// A program that a test starts and ends.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::crash {

// A program. Not thread-safe. It is killed when the object goes, and when the thread that started
// it ends, however that comes about: nothing outlives a test, not even one that is killed.
class ChildProcess {
 public:
  // Starts arguments[0], a path, with nothing but standard streams; what it writes is appended to
  // the file `output`. Errors: those of fork() and of opening the file. A program that cannot be
  // run ends with 127.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& arguments,
                                            const std::string& output);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  // Sends `signal` and waits for the end, for as long as that takes. Returns what waitpid() says.
  // Errors: kFailedPrecondition (it had ended by itself; the message says how).
  absl::StatusOr<int> End(int signal);

  // Sends `signal`, such as SIGSTOP, to a program that runs on.
  void Signal(int signal) const;

  // Waits until it ends by itself. Returns its exit code, 128 and more for a signal.
  int Wait();

  // Returns an empty text while it runs, and how it ended once it has.
  std::string HasEnded();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;  // The process; -1: waited for.
  int status_ = 0;  // The status, once waited for.
};

// Returns "ended with code 1" or "was ended by signal 9".
std::string DescribeEnd(int wait_status);

}  // namespace spoke::crash
