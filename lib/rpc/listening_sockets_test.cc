#include "lib/rpc/listening_sockets.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::rpc {
namespace {

bool CanConnect(int port) {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
}

TEST(ListenAt, TakesWhatConfigurationsSay) {
  for (const char* address : {"127.0.0.1:0", "0.0.0.0:0", "localhost:0", "[::]:0"}) {
    const auto listening = ListenAt(address);
    ASSERT_TRUE(listening.ok()) << listening.status();
    EXPECT_GT(listening->port, 0) << address;
    EXPECT_TRUE(CanConnect(listening->port)) << address;
  }
}

TEST(ListenAt, RefusesWhatIsNoAddress) {
  for (const char* address : {"", "7443", ":7443", "127.0.0.1", "127.0.0.1:x", "unix:relative"}) {
    EXPECT_EQ(ListenAt(address).status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
  EXPECT_EQ(ListenAt("192.0.2.1:0").status().code(), absl::StatusCode::kUnavailable);
}

TEST(ListenAt, APortInUseIsNamed) {
  const auto first = ListenAt("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string taken = fmt::format("127.0.0.1:{}", first->port);
  const auto second = ListenAt(taken);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), testing::HasSubstr(taken));
}

TEST(ListenAt, AFileThatIsNoSocketStays) {
  const testing_support::TempDir dir;
  const std::string path = dir.File("precious");
  fclose(fopen(path.c_str(), "w"));
  EXPECT_FALSE(ListenAt("unix:" + path).ok());
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace spoke::rpc
