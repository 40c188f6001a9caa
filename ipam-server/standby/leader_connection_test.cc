// LeaderConnection against StandbyPort, over real sockets.
#include "ipam-server/standby/leader_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/standby/standby_port.h"
#include "lib/ip/address.h"
#include "lib/ip/socket_address.h"
#include "lib/os/clock.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam {
namespace {

constexpr int64_t kLongMs = 20'000;

class LeaderConnectionTest : public testing::Test {
 protected:
  std::unique_ptr<StandbyPort> Open(const std::string& address = "127.0.0.1:0") {
    auto port = StandbyPort::Open(address).value();
    address_ = "127.0.0.1:" + std::to_string(port->port());
    return port;
  }

  // Steps at times that run `ahead_ms` before the clock, until the link is `wanted`.
  static bool Await(LeaderConnection& connection, LeaderLink wanted, int64_t ahead_ms) {
    const int64_t end_ms = os::MonotonicMs() + kLongMs;
    while (os::MonotonicMs() < end_ms) {
      if (connection.Step(os::MonotonicMs() + ahead_ms) == wanted) return true;
      pollfd waiting{.fd = connection.fd(), .events = connection.events(), .revents = 0};
      ::poll(&waiting, 1, 10);
    }
    return false;
  }

  std::string address_;
};

TEST_F(LeaderConnectionTest, ALeaderWhosePortEndsIsGone) {
  auto port = Open();
  LeaderConnection connection(address_);
  ASSERT_TRUE(Await(connection, LeaderLink::kHeld, 0));
  EXPECT_EQ(connection.Step(os::MonotonicMs() + LeaderConnection::kHeldMs), LeaderLink::kHeld);
  port.reset();
  EXPECT_TRUE(Await(connection, LeaderLink::kGone, LeaderConnection::kHeldMs));
}

// The kernel closes what a process holds last first: its connections before what it listens on.
TEST_F(LeaderConnectionTest, ALeaderIsGoneWhoseListenerOutlivesItsConnections) {
  os::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = ip::ToSocketAddress(ip::Address::Parse("127.0.0.1").value(), 0);
  ASSERT_EQ(::bind(listener.get(), any.get(), any.size), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  sockaddr_in bound{};
  socklen_t size = sizeof(bound);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  LeaderConnection connection("127.0.0.1:" + std::to_string(ntohs(bound.sin_port)));
  ASSERT_TRUE(Await(connection, LeaderLink::kHeld, 0));
  os::UniqueFd held(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(held.valid());
  held.Reset();
  ASSERT_TRUE(Await(connection, LeaderLink::kTaken, LeaderConnection::kHeldMs));
  listener.Reset();
  EXPECT_TRUE(Await(connection, LeaderLink::kGone, LeaderConnection::kHeldMs));
}

TEST_F(LeaderConnectionTest, ALeaderThatListensAgainIsNotGone) {
  auto port = Open();
  LeaderConnection connection(address_);
  ASSERT_TRUE(Await(connection, LeaderLink::kHeld, 0));
  port.reset();
  port = Open(address_);
  EXPECT_TRUE(Await(connection, LeaderLink::kTaken, LeaderConnection::kHeldMs));
  for (int64_t ahead_ms = 0; ahead_ms < 20'000; ahead_ms += 500) {
    EXPECT_EQ(connection.Step(os::MonotonicMs() + ahead_ms), LeaderLink::kTaken);
  }
}

TEST_F(LeaderConnectionTest, ALeaderThatWasNeverReachedIsNotGone) {
  Open().reset();
  LeaderConnection connection(address_);
  for (int64_t ahead_ms = 0; ahead_ms < 20'000; ahead_ms += 500) {
    EXPECT_EQ(connection.Step(os::MonotonicMs() + ahead_ms), LeaderLink::kApart);
  }
}

TEST_F(LeaderConnectionTest, AConnectionThatIsClosedAtOnceSaysNothing) {
  auto port = Open();
  LeaderConnection connection(address_);
  ASSERT_TRUE(Await(connection, LeaderLink::kHeld, 0));
  port.reset();
  EXPECT_TRUE(Await(connection, LeaderLink::kApart, 0));
}

TEST_F(LeaderConnectionTest, WithoutAnAddressItStaysApart) {
  for (const char* address : {"", "nonsense", "server-a:7446", "10.0.0.1:x"}) {
    LeaderConnection connection(address);
    EXPECT_EQ(connection.Step(0), LeaderLink::kApart) << address;
    EXPECT_EQ(connection.fd(), -1) << address;
  }
}

// Beyond the most there are, a standby is let go; those that are there stay.
TEST_F(LeaderConnectionTest, APortHoldsABoundedNumberOfStandbys) {
  const auto port = Open();
  std::vector<std::unique_ptr<LeaderConnection>> held;
  for (size_t i = 0; i < StandbyPort::kMostConnections; ++i) {
    held.push_back(std::make_unique<LeaderConnection>(address_));
    ASSERT_TRUE(Await(*held.back(), LeaderLink::kHeld, 0));
  }
  LeaderConnection late(address_);
  EXPECT_TRUE(Await(late, LeaderLink::kHeld, 0));
  EXPECT_TRUE(Await(late, LeaderLink::kApart, 0));
  for (const auto& connection : held) {
    EXPECT_EQ(connection->Step(os::MonotonicMs()), LeaderLink::kHeld);
  }
}

TEST(ReachedAt, IsWhereThePortListens) {
  EXPECT_EQ(ReachedAt("10.1.2.3:7446", 7446, {}), "10.1.2.3:7446");
  EXPECT_EQ(ReachedAt("[fd00::1]:7446", 7000, {}), "[fd00::1]:7000");
}

TEST(ReachedAt, IsTheAddressFromWhichEtcdIsReached) {
  const std::vector<etcd::Endpoint> endpoints = {{.host = "127.0.0.1", .port = 2379}};
  EXPECT_EQ(ReachedAt("0.0.0.0:7446", 7446, endpoints), "127.0.0.1:7446");
  EXPECT_EQ(ReachedAt("0.0.0.0:7446", 7446, {}), "");
}

}  // namespace
}  // namespace spoke::ipam
