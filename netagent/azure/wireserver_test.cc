#include "netagent/azure/wireserver.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"

namespace spoke::netagent::azure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ip::MacAddress kMac = ip::MacAddress::Parse("00:0d:3a:31:45:48").value();

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

http::Response Good() {
  return {.status = 200,
          .body = os::ReadFile(SPOKE_SOURCE_DIR
                               "/netagent/azure/testdata/getinterfaceinfov1_secondaries.xml")
                      .value()};
}

TEST(Wireserver, TheAddressesOfOurNicAreListed) {
  std::vector<http::Request> requests;
  const auto addresses = ReadHostAddresses(
      "http://168.63.129.16",
      [&](const http::Request& request, absl::Duration) -> absl::StatusOr<http::Response> {
        requests.push_back(request);
        return Good();
      },
      kMac);
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_THAT(*addresses, ElementsAre(A("10.0.0.4"), A("10.0.0.5")));
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].url,
            "http://168.63.129.16/machine/plugins?comp=nmagent&type=getinterfaceinfov1");
}

TEST(Wireserver, BlocksAreTakenApartUnlessNoNicCouldHaveThem) {
  HostInterface nic{.mac = kMac, .subnets = {{}}};
  nic.subnets[0].addresses = {{ip::Prefix::Parse("10.0.0.4/32").value(), true},
                              {ip::Prefix::Parse("10.0.0.16/28").value(), false}};
  const auto addresses = AddressesOf({nic}, kMac);
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_EQ(addresses->size(), 17U);
  EXPECT_TRUE(addresses->contains(A("10.0.0.31")));
  nic.subnets[0].addresses.push_back({ip::Prefix::Parse("10.0.0.0/8").value(), false});
  EXPECT_EQ(AddressesOf({nic}, kMac).status().code(), absl::StatusCode::kInvalidArgument);
}

struct Trouble {
  std::string name;
  absl::StatusOr<http::Response> answer;
  absl::StatusCode code;
  std::string message;
};

class WireserverTrouble : public testing::TestWithParam<Trouble> {};

TEST_P(WireserverTrouble, IsAnErrorThatSaysWhere) {
  const auto outcome = ReadHostAddresses(
      "http://168.63.129.16",
      [](const http::Request&, absl::Duration) { return GetParam().answer; }, kMac);
  EXPECT_EQ(outcome.status().code(), GetParam().code);
  EXPECT_THAT(std::string(outcome.status().message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, WireserverTrouble,
    testing::Values(
        Trouble{"Unreachable", absl::DeadlineExceededError("3 s"), absl::StatusCode::kUnavailable,
                "http://168.63.129.16/machine/plugins?comp=nmagent&type=getinterfaceinfov1: 3 s"},
        Trouble{"Refused", http::Response{.status = 403}, absl::StatusCode::kUnavailable,
                "HTTP 403"},
        Trouble{"NoXml", http::Response{.status = 200, .body = "{}"},
                absl::StatusCode::kInvalidArgument, "http://168.63.129.16"},
        Trouble{"AnotherNic",
                http::Response{.status = 200,
                               .body = "<Interfaces><Interface MacAddress=\"0022482A0001\"/>"
                                       "</Interfaces>"},
                absl::StatusCode::kNotFound,
                "no NIC with MAC 00:0d:3a:31:45:48, but 00:22:48:2a:00:01"},
        Trouble{"NoNic", http::Response{.status = 200, .body = "<Interfaces/>"},
                absl::StatusCode::kNotFound, "but none"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent::azure
