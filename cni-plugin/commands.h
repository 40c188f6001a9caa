// The verbs: each leads from a request to what is printed and the exit code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cni-plugin/expected.h"
#include "lib/os/unique_fd.h"

namespace spoke::cni {

// Opens `path` as a network namespace. `own`: that of this process, as a path in /proc.
// Errors: code 4 (nothing there, or no network namespace), 8 (it is `own`: the node's, so that an
// attachment would take the node's own network apart).
Expected<os::UniqueFd> OpenNetns(const std::string& path, const char* own);

// Returns whether `path` is the namespace that `netns` refers to, by identity: "/var/run/netns/a"
// and "/run/netns/a" are the same.
bool IsSameNetns(int netns, const std::string& path);

// The process as the verbs see it, so that a test can stand in for it.
class Process {
 public:
  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  virtual const char* Variable(const char* name) = 0;  // Returns the variable; nullptr: not set.
  // Returns the input, which lives as long as the process.
  virtual Expected<std::string_view> Input() = 0;
  virtual bool WriteOutput(std::string_view text) = 0;  // Returns false when not all was taken.
  virtual void WriteNote(std::string_view text) = 0;    // Writes to standard error.
  virtual const char* OwnNetns() { return "/proc/self/ns/net"; }
  virtual uint64_t DrawNumber() = 0;  // Returns a random number, not 0.
};

// Runs the command of the environment. Prints exactly one JSON object, or nothing for a verb
// without a result that worked. Returns the exit code: 0, or 1 after an error object. docs/CNI.md
// says what each verb promises.
int RunCommand(Process& process);

}  // namespace spoke::cni
