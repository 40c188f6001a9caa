// The CNI plugin `spoke`, which the container runtime executes for each pod; it only dispatches.
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include "cni-plugin/agent/agent_client.h"
#include "cni-plugin/commands.h"

namespace {

constexpr int kInputDeadlineMs = 5000;
constexpr int kOutputDeadlineMs = 5000;

// The bytes of input; longer input is rare, and costs a copy.
constexpr size_t kInputBytes = 64 << 10;

class ThisProcess : public spoke::cni::Process {
 public:
  const char* Variable(const char* name) override { return std::getenv(name); }
  spoke::cni::Expected<std::string_view> Input() override {
    auto* buffer = static_cast<char*>(std::malloc(kInputBytes));
    if (buffer == nullptr) return spoke::cni::Error{spoke::cni::kInternal, "out of memory", ""};
    const auto text =
        spoke::cni::ReadWhole(STDIN_FILENO, kInputDeadlineMs, {buffer, kInputBytes}, overflow_);
    if (!text.ok() || text->data() != buffer) return text;
    // What is allocated next lies right behind it, mostly in the same page.
    buffer = static_cast<char*>(std::realloc(buffer, std::max<size_t>(text->size(), 1)));
    return std::string_view(buffer, text->size());
  }
  bool WriteOutput(std::string_view text) override {
    return spoke::cni::WriteWhole(STDOUT_FILENO, text, kOutputDeadlineMs);
  }
  void WriteNote(std::string_view text) override {
    spoke::cni::WriteWhole(STDERR_FILENO, text, kOutputDeadlineMs);
  }
  uint64_t DrawNumber() override {
    uint64_t number = 0;
    // Early in a boot there may be no random numbers yet; then time and process are as good as any.
    if (::getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number)) {
      number = (static_cast<uint64_t>(::getpid()) << 32U) ^
               static_cast<uint64_t>(spoke::cni::MonotonicMs());
    }
    return number | 1U;
  }

 private:
  std::string overflow_;
};

// Fills closed descriptors, so that what is opened (the pod's namespace, for one) does not become
// standard output because that was closed.
void FillStandardDescriptors() {
  std::array<pollfd, 3> standard{{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}};
  ::poll(standard.data(), standard.size(), 0);
  for (const pollfd& descriptor : standard) {
    // A write to it fails, as it would have without.
    if ((descriptor.revents & POLLNVAL) != 0) ::open("/dev/null", O_RDONLY);
  }
}

}  // namespace

int main() {
  FillStandardDescriptors();
  std::signal(SIGPIPE, SIG_IGN);  // A runtime that is gone is an error to handle, not an end.
  ThisProcess process;
  ::_exit(RunCommand(process));  // Nothing is left to do that is worth the page faults.
}
