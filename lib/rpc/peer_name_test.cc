#include "lib/rpc/peer_name.h"

#include "gtest/gtest.h"

namespace spoke::rpc {
namespace {

TEST(ParsePeerName, TakesWhatGrpcSays) {
  const auto address = [](std::string_view text) { return ip::Address::Parse(text).value(); };
  const std::pair<ip::Address, uint16_t> v4(address("10.0.0.7"), 4711);
  EXPECT_EQ(ParsePeerName("ipv4:10.0.0.7:4711"), v4);
  const std::pair<ip::Address, uint16_t> v6(address("fe80::1"), 4711);
  EXPECT_EQ(ParsePeerName("ipv6:%5Bfe80::1%5D:4711"), v6);
  EXPECT_EQ(ParsePeerName("ipv6:[fe80::1]:4711"), v6);
  EXPECT_EQ(ParsePeerName("ipv6:%5Bfe80::1%25eth0%5D:4711"), v6);
}

TEST(ParsePeerName, IsNobodyWhereThereIsNoAddress) {
  const std::pair<ip::Address, uint16_t> nobody;
  for (const std::string_view name :
       {"", "unix:", "unix:/run/spoke/admin.sock", "ipv4:", "ipv4:10.0.0.7",
        "ipv4:10.0.0.7:", "ipv4:10.0.0.7:70000", "ipv4:10.0.0.7:1x", "ipv6:%5B%5D:1", "ipv4::1"}) {
    EXPECT_EQ(ParsePeerName(name), nobody) << name;
  }
}

}  // namespace
}  // namespace spoke::rpc
