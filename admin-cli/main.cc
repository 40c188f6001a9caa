// The main program of spokectl, which operators use.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "admin-cli/run.h"

int main(int argc, char** argv) {
  try {
    spoke::ctl::RealConsole console;
    const spoke::os::RealClock clock;
    const spoke::ctl::World world{console, clock,
                                  [](absl::Duration duration) {
                                    absl::SleepFor(duration);
                                    return true;  // Whoever has had enough interrupts.
                                  },
                                  [](const std::string& name) {
                                    const char* value = std::getenv(name.c_str());
                                    return std::string(value == nullptr ? "" : value);
                                  },
                                  spoke::ctl::ProgramOf(argc > 0 ? argv[0] : "")};
    return spoke::ctl::Run(std::vector<std::string>(argv + 1, argv + argc), world);
  } catch (const std::exception& error) {
    // The exception is a library's, and a fault of ours: nothing we call is meant to throw this
    // far.
    std::fputs(error.what(), stderr);
    return 1;
  }
}
