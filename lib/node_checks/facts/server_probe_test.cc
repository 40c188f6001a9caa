// Tests of connections to what listens, what does not, and what is no address.
#include "lib/node_checks/facts/server_probe.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "tests/support/temp_dir.h"

namespace spoke::node_checks {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);

// A TCP socket on a port of 127.0.0.1.
struct Listener {
  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    target = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  os::UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string target;
};

TEST(TryToConnect, TellsWhoListensFromWhoDoesNot) {
  const Listener listener;
  // A port that is bound, and not listening: it is refused, and nobody else can have it.
  EXPECT_TRUE(absl::IsUnavailable(TryToConnect(listener.target, kPatience)));
  ASSERT_EQ(::listen(listener.fd.get(), 1), 0);
  EXPECT_TRUE(TryToConnect(listener.target, kPatience).ok());
}

TEST(TryToConnect, WhatIsNoAddressIsSaid) {
  EXPECT_TRUE(absl::IsInvalidArgument(TryToConnect("host", kPatience)));
  EXPECT_TRUE(absl::IsInvalidArgument(TryToConnect(":7443", kPatience)));
  EXPECT_TRUE(absl::IsInvalidArgument(TryToConnect("host:", kPatience)));
  EXPECT_TRUE(absl::IsNotFound(TryToConnect("[::zz]:7443", kPatience)));
}

TEST(TryAgentSocket, TellsAnAgentFromTheFileItLeft) {
  const testing_support::TempDir dir;
  const std::string path = dir.File("cni.sock");
  EXPECT_TRUE(absl::IsNotFound(TryAgentSocket(path)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  {
    const os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(fd.get(), 1), 0);
    EXPECT_TRUE(TryAgentSocket(path).ok());
  }
  EXPECT_TRUE(absl::IsUnavailable(TryAgentSocket(path)));
  EXPECT_FALSE(TryAgentSocket(std::string(200, 'x')).ok());
}

}  // namespace
}  // namespace spoke::node_checks
