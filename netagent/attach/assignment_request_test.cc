// Tests of what an ADD may ask for, and what it gets.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24);

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class AssignmentRequestTest : public testing::Test {
 protected:
  AssignmentRequestTest() {
    assignments_.Apply(
        HoldingsReplaced{{{A("10.1.0.5"), "open"},
                          {A("10.1.0.6"), "open"},
                          {A("10.1.0.7"), "open"},
                          {A("10.2.0.5"), "teams"},
                          {A("fd00::5"), "six"},
                          {A("fd00::6"), "six"},
                          {A("fd00::7"), "six"}},
                         {{.pool = "teams", .cidr = "10.2.0.0/24", .namespaces = {"web"}}}});
  }
  absl::StatusOr<Assignment> Plan(const std::vector<std::string>& requested,
                                  const std::string& container = "aaa") {
    Assignment request{.key = {container, "eth0"}};
    for (const std::string& address : requested) request.addresses.push_back(A(address));
    return assignments_.PlanAssignment(request, kNow);
  }
  void Assign(const AttachmentKey& key) {
    assignments_.Apply(AssignmentBegun{assignments_.PlanAssignment({.key = key}, kNow).value()});
    assignments_.Apply(AssignmentBuilt{key});
  }

  Assignments assignments_{absl::Seconds(30)};
};

TEST_F(AssignmentRequestTest, ARequestedAddressIsAssignedAndTheOtherFamilyIsChosenAsEver) {
  EXPECT_THAT(Plan({"10.1.0.6"})->addresses, ElementsAre(A("10.1.0.6"), A("fd00::5")));
  EXPECT_THAT(Plan({"fd00::6", "10.1.0.6"})->addresses, ElementsAre(A("10.1.0.6"), A("fd00::6")));
}

TEST_F(AssignmentRequestTest, ARequestThatCannotBeMetIsRefusedForGood) {
  struct Case {
    std::vector<std::string> requested;
    std::string_view says;
  };
  for (const Case& c : {Case{{"10.9.9.9"}, "10.9.9.9 is asked for, which this node does not have"},
                        Case{{"10.2.0.5"}, "of pool teams: that is not meant for this pod"},
                        Case{{"10.1.0.5", "10.1.0.6"}, "of one family"}}) {
    const absl::Status status = Plan(c.requested).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(c.says)));
  }
}

TEST_F(AssignmentRequestTest, ARequestedAddressThatIsInUseMayComeLater) {
  Assign({"bbb", "eth0"});  // It gets 10.1.0.5.
  const absl::Status in_use = Plan({"10.1.0.5"}).status();
  EXPECT_EQ(in_use, absl::ResourceExhaustedError(
                        "address 10.1.0.5 is asked for, which is assigned to another pod"));
  assignments_.Apply(AssignmentReleased{{"bbb", "eth0"}, kNow});
  EXPECT_EQ(Plan({"10.1.0.5"}).status(),
            absl::ResourceExhaustedError("address 10.1.0.5 is asked for, which is in cooldown"));
  assignments_.EndCooldowns(kNow + absl::Seconds(30));
  EXPECT_TRUE(Plan({"10.1.0.5"}).ok());
  assignments_.Apply(WithdrawnSet{{A("10.1.0.5")}});
  EXPECT_EQ(Plan({"10.1.0.5"}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(AssignmentRequestTest, EachInterfaceOfAContainerHasTheLowestOrdinalThatIsFree) {
  Assign({"aaa", "eth0"});
  Assign({"aaa", "net1"});
  EXPECT_EQ(assignments_.Find({"aaa", "eth0"})->options.ordinal, 0U);
  EXPECT_EQ(assignments_.Find({"aaa", "net1"})->options.ordinal, 1U);
  EXPECT_EQ(Plan({}, "aab")->options.ordinal, 0U) << "another container has its own";
  assignments_.Apply(AssignmentReleased{{"aaa", "eth0"}, kNow, /*unused=*/true});
  EXPECT_EQ(Plan({}, "aaa")->options.ordinal, 0U) << "the default routes are free again";
}

TEST_F(AssignmentRequestTest, WhatIsAskedForIsKeptWithTheAssignment) {
  Assignment request{.key = {"aaa", "eth0"},
                     .attempt = 7,
                     .netns_path = "/run/netns/a",
                     .network = "spoke",
                     .options = {.mtu = 1400, .bandwidth = {.ingress_rate = units::BitRate(1000)}}};
  const Assignment assignment = assignments_.PlanAssignment(request, kNow).value();
  EXPECT_EQ(assignment.attempt, 7U);
  EXPECT_EQ(assignment.netns_path, "/run/netns/a");
  EXPECT_EQ(assignment.network, "spoke");
  EXPECT_EQ(assignment.options, request.options);
}

}  // namespace
}  // namespace spoke::netagent
