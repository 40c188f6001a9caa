#include "ipam-server/policy/protected_addresses.h"

#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;

std::vector<ip::Address> Parse(const std::vector<std::string>& texts) {
  std::vector<ip::Address> out;
  for (const std::string& text : texts) out.push_back(*ip::Address::Parse(text));
  return out;
}

struct Case {
  const char* name;
  const char* listen;
  std::vector<std::string> own;
  std::vector<std::string> advertised;
  std::vector<std::string> want;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class ProtectedAddressesTest : public testing::TestWithParam<Case> {};

TEST_P(ProtectedAddressesTest, AreWhereAgentsReachTheServer) {
  const Case& c = GetParam();
  std::vector<std::string> got;
  for (const auto& protected_address :
       ProtectedAddressesOf(c.listen, Parse(c.own), Parse(c.advertised))) {
    got.push_back(protected_address.address.ToString());
    EXPECT_FALSE(protected_address.what.empty());
  }
  EXPECT_THAT(got, ElementsAreArray(c.want));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ProtectedAddressesTest,
    testing::Values(
        Case{"OneAddress", "10.0.0.4:7443", {"10.0.0.4", "10.0.0.5"}, {}, {"10.0.0.4"}},
        Case{"All", "0.0.0.0:7443", {"127.0.0.1", "10.0.0.4", "fe80::1"}, {}, {"10.0.0.4"}},
        Case{"AllOfV6", "[::]:7443", {"10.0.0.4", "fd00::4", "::1"}, {}, {"10.0.0.4", "fd00::4"}},
        Case{"V6", "[fd00::4]:7443", {"10.0.0.4"}, {}, {"fd00::4"}},
        Case{"LoopbackOnly", "127.0.0.1:7443", {"10.0.0.4"}, {}, {}},
        Case{"Advertised", "10.0.0.4:7443", {}, {"10.9.0.1", "10.0.0.4"}, {"10.9.0.1", "10.0.0.4"}},
        Case{"ASocket", "unix:/run/s", {"10.0.0.4"}, {"10.9.0.1"}, {"10.9.0.1"}},
        Case{"AName", "server.example:7443", {"10.0.0.4"}, {}, {}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(OwnAddresses, HaveLoopback) {
  const auto own = OwnAddresses();
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_THAT(*own, Contains(*ip::Address::Parse("127.0.0.1")));
}

}  // namespace
}  // namespace spoke::ipam
