#include "lib/node_checks/services/nameservers.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ParseNameservers, TakesAddressesInTheirOrder) {
  EXPECT_THAT(ParseNameservers("# comment\nsearch example.org\nnameserver 168.63.129.16\n"
                               "nameserver\t fd00::53  \nnameserver 168.63.129.16\n"
                               "nameserver fe80::1%eth0\nnameserver 127.0.0.53 # stub\n"
                               "options edns0"),
              ElementsAre(ip::Address::V4(0xA83F8110), ip::Address::V6(0xFD00ULL << 48U, 0x53),
                          ip::Address::V6(0xFE80ULL << 48U, 1), ip::Address::V4(0x7F000035)));
}

TEST(ParseNameservers, WhatIsNoneIsPassedOver) {
  EXPECT_THAT(ParseNameservers("nameserver\nnameserver x\nnameservers 10.0.0.1\n;nameserver "
                               "10.0.0.1\n nameserver 10.0.0.1\nnameserver 10.0.0.256"),
              IsEmpty());
  EXPECT_THAT(ParseNameservers(""), IsEmpty());
}

TEST(ParseNameservers, TakesOnlySoMany) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "nameserver 10.0.0." + std::to_string(i) + "\n";
  EXPECT_EQ(ParseNameservers(text).size(), kMaxNameservers);
}

}  // namespace
}  // namespace spoke::node_checks
