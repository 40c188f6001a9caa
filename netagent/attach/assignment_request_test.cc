// What an ADD may wish for, and what it gets.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24);

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class LendRequestTest : public testing::Test {
 protected:
  LendRequestTest() {
    lendings_.Apply(
        HoldingsReplaced{{{A("10.1.0.5"), "open"},
                          {A("10.1.0.6"), "open"},
                          {A("10.1.0.7"), "open"},
                          {A("10.2.0.5"), "teams"},
                          {A("fd00::5"), "six"},
                          {A("fd00::6"), "six"},
                          {A("fd00::7"), "six"}},
                         {{.pool = "teams", .cidr = "10.2.0.0/24", .namespaces = {"web"}}}});
  }
  absl::StatusOr<Lending> Plan(const std::vector<std::string>& wished,
                               const std::string& container = "aaa") {
    LendRequest request{.key = {container, "eth0"}};
    for (const std::string& address : wished) request.addresses.push_back(A(address));
    return lendings_.PlanLend(request, kNow);
  }
  void Lend(const AttachmentKey& key) {
    lendings_.Apply(LendingBegun{lendings_.PlanLend({.key = key}, kNow).value()});
    lendings_.Apply(LendingBuilt{key});
  }

  Lendings lendings_{absl::Seconds(30)};
};

TEST_F(LendRequestTest, AWishedAddressIsLentAndTheOtherFamilyIsChosenAsEver) {
  EXPECT_THAT(Plan({"10.1.0.6"})->addresses, ElementsAre(A("10.1.0.6"), A("fd00::5")));
  EXPECT_THAT(Plan({"fd00::6", "10.1.0.6"})->addresses, ElementsAre(A("10.1.0.6"), A("fd00::6")));
}

TEST_F(LendRequestTest, AWishThatCannotComeTrueIsRefusedForGood) {
  struct Case {
    std::vector<std::string> wished;
    std::string_view says;
  };
  for (const Case& c : {Case{{"10.9.9.9"}, "10.9.9.9 is asked for, which this node does not have"},
                        Case{{"10.2.0.5"}, "of pool teams: that is not meant for this pod"},
                        Case{{"10.1.0.5", "10.1.0.6"}, "of one family"}}) {
    const absl::Status status = Plan(c.wished).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(c.says)));
  }
}

TEST_F(LendRequestTest, AWishedAddressThatIsInUseMayComeLater) {
  Lend({"bbb", "eth0"});  // Has 10.1.0.5.
  const absl::Status lent = Plan({"10.1.0.5"}).status();
  EXPECT_EQ(lent, absl::ResourceExhaustedError(
                      "address 10.1.0.5 is asked for, which is lent to another pod"));
  lendings_.Apply(LendingReleased{{"bbb", "eth0"}, kNow});
  EXPECT_EQ(Plan({"10.1.0.5"}).status(),
            absl::ResourceExhaustedError("address 10.1.0.5 is asked for, which is cooling"));
  lendings_.EndCooldowns(kNow + absl::Seconds(30));
  EXPECT_TRUE(Plan({"10.1.0.5"}).ok());
  lendings_.Apply(WithdrawnSet{{A("10.1.0.5")}});
  EXPECT_EQ(Plan({"10.1.0.5"}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(LendRequestTest, EachInterfaceOfAContainerHasTheLowestOrdinalThatIsFree) {
  Lend({"aaa", "eth0"});
  Lend({"aaa", "net1"});
  EXPECT_EQ(lendings_.Find({"aaa", "eth0"})->options.ordinal, 0U);
  EXPECT_EQ(lendings_.Find({"aaa", "net1"})->options.ordinal, 1U);
  EXPECT_EQ(Plan({}, "aab")->options.ordinal, 0U) << "another container has its own";
  lendings_.Apply(LendingReleased{{"aaa", "eth0"}, kNow, /*unused=*/true});
  EXPECT_EQ(Plan({}, "aaa")->options.ordinal, 0U) << "the default routes are free again";
}

TEST_F(LendRequestTest, WhatIsAskedForIsKeptWithTheLending) {
  LendRequest request{.key = {"aaa", "eth0"},
                      .attempt = 7,
                      .netns_path = "/run/netns/a",
                      .network = "spoke",
                      .options = {.mtu = 1400, .bandwidth = {.ingress_rate = 1000}}};
  const Lending lending = lendings_.PlanLend(request, kNow).value();
  EXPECT_EQ(lending.attempt, 7U);
  EXPECT_EQ(lending.netns_path, "/run/netns/a");
  EXPECT_EQ(lending.network, "spoke");
  EXPECT_EQ(lending.options, request.options);
}

}  // namespace
}  // namespace spoke::netagent
