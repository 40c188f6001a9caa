// Addresses that have to be proven to work before they are assigned.
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kCooldown = absl::Seconds(30);
const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

HoldingsReplaced Holdings(const std::vector<std::string>& addresses) {
  HoldingsReplaced event;
  for (const std::string& address : addresses) event.holdings.push_back({A(address), "default"});
  return event;
}

Assignments WithHoldings(const std::vector<std::string>& addresses) {
  Assignments assignments(kCooldown);
  assignments.Apply(Holdings(addresses));
  return assignments;
}

// Does what the agent does for an ADD that works.
Assignment Assign(Assignments& assignments, const AttachmentKey& key, absl::Time now = kNow) {
  const Assignment assignment = assignments.PlanAssignment({.key = key}, now).value();
  assignments.Apply(AssignmentBegun{assignment});
  assignments.Apply(AssignmentBuilt{key});
  return assignment;
}

UseCounts CountsOf(const Assignments& assignments) { return assignments.CountByPool()["default"]; }

class AssignmentsWithProof : public testing::Test {
 protected:
  bool CanAssign(const AttachmentKey& key = kPodB) const {
    return assignments_.PlanAssignment({.key = key}, kNow).ok();
  }

  Assignments assignments_{kCooldown, {.ipv4 = true}};
};

TEST_F(AssignmentsWithProof, AnAddressIsAssignedOnceItIsProven) {
  assignments_.Apply(Holdings({"10.1.0.5", "10.1.0.6"}));
  EXPECT_FALSE(CanAssign());
  EXPECT_EQ(CountsOf(assignments_), (UseCounts{.unproven = 2}));
  EXPECT_THAT(assignments_.Unproven(), ElementsAre(A("10.1.0.5"), A("10.1.0.6")));
  assignments_.Apply(AddressesProven{{A("10.1.0.6")}});
  EXPECT_THAT(Assign(assignments_, kPodA).addresses, ElementsAre(A("10.1.0.6")));
  EXPECT_FALSE(CanAssign());
  EXPECT_THAT(assignments_.Unproven(), ElementsAre(A("10.1.0.5")));
}

TEST_F(AssignmentsWithProof, WhatAPodHasHadNeedsNoProof) {
  assignments_.Apply(Holdings({"10.1.0.5"}));
  assignments_.Apply(
      AssignmentBegun{{.key = kPodA, .addresses = {A("10.1.0.5")}, .generation = 1}});
  assignments_.Apply(AssignmentBuilt{kPodA});
  EXPECT_THAT(assignments_.Unproven(), IsEmpty());
  assignments_.Apply(AssignmentReleased{kPodA, kNow});
  assignments_.EndCooldowns(kNow + kCooldown);
  EXPECT_TRUE(CanAssign());
}

TEST_F(AssignmentsWithProof, AnAddressThatHasLeftAndComesBackIsProvenAnew) {
  assignments_.Apply(Holdings({"10.1.0.5"}));
  assignments_.Apply(AddressesProven{{A("10.1.0.5")}});
  assignments_.Apply(Holdings({}));
  assignments_.Apply(Holdings({"10.1.0.5"}));
  EXPECT_FALSE(CanAssign());
  // An address that a pod had in between is proven anew too.
  assignments_.Apply(AddressesProven{{A("10.1.0.5")}});
  Assign(assignments_, kPodA);
  assignments_.Apply(Holdings({}));
  assignments_.Apply(AssignmentReleased{kPodA, kNow});
  assignments_.Apply(Holdings({"10.1.0.5"}));
  assignments_.EndCooldowns(kNow + kCooldown);
  EXPECT_FALSE(CanAssign());
}

TEST_F(AssignmentsWithProof, WhatIsWithdrawnIsNotProvenAndLaterProvenAnew) {
  assignments_.Apply(Holdings({"10.1.0.5"}));
  assignments_.Apply(AddressesProven{{A("10.1.0.5")}});
  assignments_.Apply(WithdrawnSet{{A("10.1.0.5")}});
  EXPECT_THAT(assignments_.Unproven(), IsEmpty());
  assignments_.Apply(AddressesProven{{A("10.1.0.5")}});  // The proof comes too late.
  assignments_.Apply(WithdrawnSet{{A("10.1.0.5")}, /*withdrawn=*/false});
  EXPECT_FALSE(CanAssign());
  EXPECT_THAT(assignments_.Unproven(), ElementsAre(A("10.1.0.5")));
}

TEST_F(AssignmentsWithProof, OtherFamiliesAndOtherNodesNeedNone) {
  assignments_.Apply(Holdings({"fd00::5"}));
  EXPECT_TRUE(CanAssign());
  EXPECT_THAT(assignments_.Unproven(), IsEmpty());
  const Assignments without = WithHoldings({"10.1.0.5"});
  EXPECT_THAT(without.Unproven(), IsEmpty());
}

TEST_F(AssignmentsWithProof, EachFamilyHasAProofOfItsOwn) {
  assignments_ = Assignments(kCooldown, {.ipv4 = true, .ipv6 = true});
  assignments_.Apply(Holdings({"10.1.0.5", "fd00::5", "fd00::6"}));
  assignments_.Apply(AddressesProven{{A("10.1.0.5")}});
  EXPECT_FALSE(CanAssign()) << "a pod gets both families or none";
  EXPECT_THAT(assignments_.Unproven(), ElementsAre(A("fd00::5"), A("fd00::6")));
  assignments_.Apply(AddressesProven{{A("fd00::6")}});
  EXPECT_THAT(Assign(assignments_, kPodA).addresses, ElementsAre(A("10.1.0.5"), A("fd00::6")));
}

TEST_F(AssignmentsWithProof, ASnapshotKeepsWhatIsProven) {
  assignments_.Apply(Holdings({"10.1.0.5", "10.1.0.6", "10.1.0.7"}));
  assignments_.Apply(AddressesProven{{A("10.1.0.6"), A("10.9.9.9")}});
  Assignments replayed(kCooldown, {.ipv4 = true});
  for (const Event& event : assignments_.Snapshot()) replayed.Apply(event);
  EXPECT_EQ(replayed.Proven(), assignments_.Proven());
  EXPECT_THAT(replayed.Proven(), ElementsAre(A("10.1.0.6")));
  EXPECT_THAT(replayed.Unproven(), ElementsAre(A("10.1.0.5"), A("10.1.0.7")));
}

}  // namespace
}  // namespace spoke::netagent
