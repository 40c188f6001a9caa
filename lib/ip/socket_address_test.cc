#include "lib/ip/socket_address.h"

#include <utility>

#include "gtest/gtest.h"

namespace spoke::ip {
namespace {

TEST(SocketAddress, GoesThereAndBack) {
  for (const char* text : {"10.1.2.3", "0.0.0.0", "fd00::1:2", "::"}) {
    const Address address = Address::Parse(text).value();
    const SocketAddress socket = ToSocketAddress(address, 4321);
    EXPECT_EQ(socket.size, address.is_v4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    EXPECT_EQ(socket.get()->sa_family, address.is_v4() ? AF_INET : AF_INET6);
    EXPECT_EQ(FromSocketAddress(socket).value(), std::pair(address, uint16_t{4321}));
  }
}

TEST(SocketAddress, OfNeitherFamilyIsNone) {
  EXPECT_EQ(FromSocketAddress({}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace spoke::ip
