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

TEST(IsLoopback, KnowsBothFamilies) {
  for (const char* text : {"127.0.0.1", "127.255.0.9", "::1"}) {
    EXPECT_TRUE(IsLoopback(Address::Parse(text).value())) << text;
  }
  for (const char* text : {"10.0.0.1", "128.0.0.1", "::", "::2", "fd00::1"}) {
    EXPECT_FALSE(IsLoopback(Address::Parse(text).value())) << text;
  }
}

TEST(PeerAddress, IsThePlainOne) {
  for (const char* text : {"10.0.0.1", "fd00::1", "::1"}) {
    const Address address = Address::Parse(text).value();
    EXPECT_EQ(PeerAddress(ToSocketAddress(address, 1)), address);
  }
  const Address mapped = Address::Parse("::ffff:10.0.0.1").value();
  EXPECT_EQ(PeerAddress(ToSocketAddress(mapped, 1)), Address::Parse("10.0.0.1").value());
  EXPECT_EQ(PeerAddress(SocketAddress()), Address());
}

}  // namespace
}  // namespace spoke::ip
