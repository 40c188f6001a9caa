// The verbs: from a request to what is printed and the exit code.
#pragma once

#include <functional>
#include <string>

#include "cni-plugin/request.h"

namespace spoke::cni {

// The process as the verbs see it, so that a test can stand in for it.
struct Process {
  Environment environment;
  std::function<bool(std::string& text)> read_stdin;          // False: unreadable or too long.
  std::function<bool(const std::string& text)> write_stdout;  // False: not all was taken.
  std::function<void(const std::string& text)> write_stderr;
};

// Runs the command of the environment. Prints exactly one JSON object, or nothing for a DEL that
// worked. Returns the exit code: 0, or 1 after an error object.
int RunCommand(const Process& process);

}  // namespace spoke::cni
