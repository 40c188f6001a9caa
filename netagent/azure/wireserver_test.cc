#include "netagent/azure/wireserver.h"

#include <utility>

#include "absl/synchronization/notification.h"
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

using Outcome = absl::StatusOr<std::set<ip::Address>>;

// Asks, and waits for the outcome.
Outcome ReadNow(HostList& list) {
  Outcome outcome = absl::UnknownError("none");
  absl::Notification done;
  EXPECT_TRUE(list.Read([&](Outcome result) {
    outcome = std::move(result);
    done.Notify();
  }));
  done.WaitForNotification();
  return outcome;
}

TEST(Wireserver, TheAddressesOfOurNicAreListedOnAThreadOfItsOwn) {
  std::vector<http::Request> requests;
  std::thread::id asked_on;
  WireserverList list(
      "http://168.63.129.16",
      [&](const http::Request& request, absl::Duration) -> absl::StatusOr<http::Response> {
        requests.push_back(request);
        asked_on = std::this_thread::get_id();
        return Good();
      },
      kMac);
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = ReadNow(list);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_THAT(*outcome, ElementsAre(A("10.0.0.4"), A("10.0.0.5")));
  }
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].url,
            "http://168.63.129.16/machine/plugins?comp=nmagent&type=getinterfaceinfov1");
  EXPECT_NE(asked_on, std::this_thread::get_id());
}

TEST(Wireserver, OneReadingIsUnderWayAtATimeAndIsWaitedForAtTheEnd) {
  absl::Notification asked;
  absl::Notification answer;
  int outcomes = 0;
  {
    WireserverList list(
        "http://168.63.129.16",
        [&](const http::Request&, absl::Duration) -> absl::StatusOr<http::Response> {
          asked.Notify();
          answer.WaitForNotification();
          return Good();
        },
        kMac);
    ASSERT_TRUE(list.Read([&](const Outcome&) { ++outcomes; }));
    asked.WaitForNotification();
    EXPECT_FALSE(list.Read([&](const Outcome&) { ++outcomes; }));
    answer.Notify();
  }
  EXPECT_EQ(outcomes, 1);
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
  WireserverList list(
      "http://168.63.129.16",
      [](const http::Request&, absl::Duration) { return GetParam().answer; }, kMac);
  const Outcome outcome = ReadNow(list);
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
