#include "tests/netns/links/local_address.h"

#include <linux/rtnetlink.h>

#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/network_layer.h"

namespace spoke::netagent {

void AwaitLocal(netlink::Socket& socket, const ip::Address& address) {
  const absl::Time deadline = absl::Now() + absl::Seconds(5);
  while (absl::Now() < deadline) {
    const auto routes = netlink::DumpAllRoutes(socket, address.family()).value();
    for (const netlink::Route& route : routes) {
      if (route.type == RTN_LOCAL && route.destination == ip::Prefix::Host(address)) return;
    }
    std::this_thread::yield();
  }
  ADD_FAILURE() << "the kernel does not take " << address.ToString() << " for its own";
}

void AwaitLocal(const netns::Netns& netns, const ip::Address& address) {
  const absl::Status status = netns.Run([&]() -> absl::Status {
    absl::StatusOr<netlink::Socket> socket = netlink::Socket::Open();
    if (!socket.ok()) return socket.status();
    AwaitLocal(*socket, address);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace spoke::netagent
