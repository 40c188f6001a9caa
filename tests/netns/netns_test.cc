#include "lib/netns/netns.h"

#include <sched.h>
#include <sys/socket.h>

#include <future>
#include <optional>
#include <stdexcept>
#include <vector>

#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netns {
namespace {

Identity CurrentIdentity() { return Netns::Current().value().identity(); }

class NetnsRunTest : public testing_support::NetnsTest {
 protected:
  Netns Other() {
    const os::UniqueFd fd = testing_support::NewNetns();
    return Netns::FromDescriptor(fd.get()).value();
  }
};

TEST_F(NetnsRunTest, TwoNamespacesDiffer) {
  const Netns other = Other();
  EXPECT_NE(other.identity(), CurrentIdentity());
  EXPECT_NE(other.identity(), Other().identity());
}

TEST_F(NetnsRunTest, ANewOneIsEmptyAndEndsWithItsDescriptor) {
  const Identity home = CurrentIdentity();
  const Netns made = Netns::Create().value();
  EXPECT_EQ(CurrentIdentity(), home);
  EXPECT_NE(made.identity(), home);
  const absl::Status status = made.Run([&]() -> absl::Status {
    netlink::Socket socket = netlink::Socket::Open().value();
    const auto links = netlink::DumpLinks(socket, "").value();
    EXPECT_EQ(links.size(), 1U);
    EXPECT_FALSE(links.at(0).up);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(NetnsRunTest, RunsInsideAndComesBack) {
  const Netns other = Other();
  const Identity home = CurrentIdentity();
  const absl::Status status = other.Run([&] {
    EXPECT_EQ(CurrentIdentity(), other.identity());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(CurrentIdentity(), home);
}

TEST_F(NetnsRunTest, ComesBackAfterAnErrorAndAnException) {
  const Netns other = Other();
  const Identity home = CurrentIdentity();
  EXPECT_EQ(other.Run([] { return absl::AbortedError("inside"); }), absl::AbortedError("inside"));
  EXPECT_EQ(CurrentIdentity(), home);
  EXPECT_THROW(
      static_cast<void>(other.Run([]() -> absl::Status { throw std::runtime_error("inside"); })),
      std::runtime_error);
  EXPECT_EQ(CurrentIdentity(), home);
}

TEST_F(NetnsRunTest, OtherThreadsStayWhereTheyAre) {
  const Netns other = Other();
  const Identity home = CurrentIdentity();
  std::promise<void> entered;
  std::promise<void> looked;
  auto elsewhere = std::async(std::launch::async, [&] {
    return other.Run([&] {
      entered.set_value();
      looked.get_future().wait();
      return absl::OkStatus();
    });
  });
  entered.get_future().wait();
  EXPECT_EQ(CurrentIdentity(), home);
  looked.set_value();
  EXPECT_TRUE(elsewhere.get().ok());
}

TEST_F(NetnsRunTest, ASocketStaysInTheNamespaceItWasOpenedIn) {
  const Netns other = Other();
  std::optional<netlink::Socket> socket;
  ASSERT_TRUE(other
                  .Run([&] {
                    socket = netlink::Socket::Open().value();
                    const std::vector<netlink::Request> up = {netlink::SetLinkUp(1, true)};
                    return netlink::SendBatch(*socket, up).status;
                  })
                  .ok());
  EXPECT_TRUE(netlink::GetLink(*socket, "lo")->up);
  auto here = netlink::Socket::Open().value();
  EXPECT_FALSE(netlink::GetLink(here, "lo")->up);
}

TEST_F(NetnsRunTest, NestedRunsUnwindInOrder) {
  const Netns outer = Other();
  const Netns inner = Other();
  const Identity home = CurrentIdentity();
  EXPECT_TRUE(outer
                  .Run([&] {
                    const absl::Status status = inner.Run([&] {
                      EXPECT_EQ(CurrentIdentity(), inner.identity());
                      return absl::OkStatus();
                    });
                    EXPECT_EQ(CurrentIdentity(), outer.identity());
                    return status;
                  })
                  .ok());
  EXPECT_EQ(CurrentIdentity(), home);
}

}  // namespace
}  // namespace spoke::netns
