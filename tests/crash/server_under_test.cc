#include "tests/crash/server_under_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/os/unique_fd.h"

namespace spoke::crash {
namespace {

constexpr size_t kLogEnd = 6000;
// The ports are below what Linux gives to connecting sockets: where those come from, an agent that
// tries to reach a dead server could connect to itself, and take the port.
constexpr uint16_t kFirstPort = 20'000;
constexpr uint16_t kPorts = 10'000;

std::string ProgramPath(std::string_view name) {
  const char* directory = std::getenv("SPOKE_BIN");
  return fmt::format("{}/{}", directory != nullptr ? directory : SPOKE_BIN_DIR, name);
}

sockaddr_in LocalAddress(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Servers of one process have ports of their own.
uint16_t FreePort() {
  static uint32_t next = static_cast<uint32_t>(::getpid());
  for (uint16_t i = 0; i < kPorts; ++i) {
    const auto port = static_cast<uint16_t>(kFirstPort + next++ % kPorts);
    const os::UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = LocalAddress(port);
    if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return port;
    }
  }
  CHECK(false, "one of ten thousand ports is free");
}

}  // namespace

ServerUnderTest::ServerUnderTest(std::string directory, std::string_view settings,
                                 std::string_view tls, std::string_view store)
    : directory_(std::move(directory)), port_(FreePort()) {
  const std::string config = fmt::format(
      "listen: {{agents: \"127.0.0.1:{}\", admin: \"{}\", metrics: \"off\"}}\n"
      "{}\nhealth: off\n"
      "store: {}\n{}",
      port_, admin(), tls,
      store.empty() ? fmt::format("{{sqlite: {}}}", File("ipam.db")) : std::string(store),
      settings);
  CHECK(os::WriteFileAtomic(File("server.yaml"), config, os::Durability::kVisible).ok(),
        "a test can write to its own directory");
}

std::string ServerUnderTest::target() const { return fmt::format("ipv4:127.0.0.1:{}", port_); }

absl::Status ServerUnderTest::Exec() {
  ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start({ProgramPath("spoke-ipam-server"),
                                                              "--config", File("server.yaml")},
                                                             File("server.log")));
  process_.emplace(std::move(process));
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerUnderTest::IsReady() {
  if (const std::string ended = process_->HasEnded(); !ended.empty()) {
    return absl::InternalError(fmt::format("the server {} by itself", ended));
  }
  const os::UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = LocalAddress(port_);
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

absl::Status ServerUnderTest::Kill() {
  const absl::StatusOr<int> end = process_->End(SIGKILL);
  process_.reset();
  if (!end.ok())
    return absl::InternalError(fmt::format("the server: {}", base::MessageOf(end.status())));
  if (WIFSIGNALED(*end) && WTERMSIG(*end) == SIGKILL) return absl::OkStatus();
  return absl::InternalError(fmt::format("the server {} before it was killed", DescribeEnd(*end)));
}

absl::Status ServerUnderTest::Stop() {
  const absl::StatusOr<int> end = process_->End(SIGTERM);
  process_.reset();
  if (!end.ok())
    return absl::InternalError(fmt::format("the server: {}", base::MessageOf(end.status())));
  if (WIFEXITED(*end) && WEXITSTATUS(*end) == 0) return absl::OkStatus();
  return absl::InternalError(fmt::format("the server {} when asked to end", DescribeEnd(*end)));
}

absl::StatusOr<std::string> ServerUnderTest::CopyStore(const std::string& to) const {
  std::error_code error;
  std::filesystem::create_directory(to, error);
  for (const char* suffix : {"", "-wal"}) {
    const std::string name = fmt::format("ipam.db{}", suffix);
    if (!error && std::filesystem::exists(File(name), error)) {
      std::filesystem::copy_file(File(name), to + "/" + name, error);
    }
  }
  if (error) return absl::InternalError(fmt::format("copy the store: {}", error.message()));
  return to + "/ipam.db";
}

absl::StatusOr<ServerUnderTest::Answer> ServerUnderTest::Ask(
    const std::vector<std::string>& words) const {
  std::vector<std::string> arguments = {ProgramPath("spokectl"), "--server", admin(), "--timeout",
                                        "30"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  const std::string output = File("answer");
  std::error_code ignored;
  std::filesystem::remove(output, ignored);
  ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(arguments, output));
  Answer answer{.code = process.Wait()};
  ASSIGN_OR_RETURN(answer.output, os::ReadFile(output));
  return answer;
}

std::string ServerUnderTest::Warnings() const {
  const auto log = os::ReadFile(File("server.log"));
  if (!log.ok()) return std::string(base::MessageOf(log.status()));
  std::string text;
  for (const absl::string_view line : absl::StrSplit(*log, '\n')) {
    if (!absl::StrContains(line, " level=info ")) absl::StrAppend(&text, line, "\n");
  }
  return text.size() <= kLogEnd ? text : text.substr(text.size() - kLogEnd);
}

}  // namespace spoke::crash
