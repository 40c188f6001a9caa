#include "netagent/attach/attachments.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/attachments_fixture.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class AttachmentsTest : public AttachmentsFixture {
 protected:
  void Grant(const std::vector<std::string>& addresses) {
    node_api::DesiredState desired{.version = 1, .full = true};
    for (const std::string& address : addresses)
      desired.added.push_back({.range = ip::Prefix::Host(A(address)), .pool = "default"});
    desired.pools = {{"default", "10.1.0.0/24", 251, 8, 243}};
    ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  }
  absl::StatusOr<AttachSpec> Add(const AttachmentKey& key) {
    return AttachmentsFixture::Add({.key = key, .pod = {"ns", "pod", "uid"}, .network = "spoke"});
  }
};

TEST_F(AttachmentsTest, AddBuildsTheLinkAndReportsTheAssignment) {
  Grant({"10.1.0.5", "10.1.0.6"});
  const auto spec = Add(kPodA);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->mtu, 1500U);
  EXPECT_EQ(kernel_.Attached(HostLinkName(kPodA)), *spec);
  attachments_->Tick();
  ASSERT_EQ(server_.reports.size(), 1U);
  EXPECT_THAT(server_.reports[0].in_use,
              ElementsAre(testing::Field(&node_api::Assignment::address, A("10.1.0.5"))));
  EXPECT_THAT(server_.acknowledged, ElementsAre(1U));
  EXPECT_THAT(kernel_.Unreachable(), ElementsAre(A("10.1.0.5"), A("10.1.0.6")));
}

// It may have another cooldown in its configuration.
TEST_F(AttachmentsTest, TheServersWordDoesNotShortenACooldown) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  ASSERT_TRUE(attachments_->Del(kPodA).ok());
  node_api::DesiredState desired{.version = 2, .full = true};
  desired.added = {{.range = ip::Prefix::Host(A("10.1.0.5")),
                    .pool = "default",
                    .cooldown = settings_.cooldown / 2}};
  ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  clock_.Advance(settings_.cooldown - absl::Seconds(1));
  attachments_->Tick();
  EXPECT_FALSE(Add(kPodB).ok());
  clock_.Advance(absl::Seconds(1));
  attachments_->Tick();
  EXPECT_TRUE(Add(kPodB).ok());
}

TEST_F(AttachmentsTest, DelTakesTheLinkDownAndTheCooldownBegins) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  ASSERT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_FALSE(HasLink(kPodA));
  attachments_->Tick();
  EXPECT_EQ(server_.reports.back().released.size(), 1U);
  EXPECT_FALSE(Add(kPodB).ok());
  clock_.Advance(absl::Seconds(30));
  attachments_->Tick();
  EXPECT_THAT(server_.reports.back().cooled, ElementsAre(A("10.1.0.5")));
  EXPECT_TRUE(Add(kPodB).ok());
}

TEST_F(AttachmentsTest, DelIsRepeatableAndOfTheUnknownIsFine) {
  Grant({"10.1.0.5"});
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
  ASSERT_TRUE(Add(kPodA).ok());
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
  attachments_->Tick();
  EXPECT_EQ(server_.reports.size(), 2U);
}

TEST_F(AttachmentsTest, AnOperatorEndsTheAssignmentItMeansAndNoLaterOne) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  const Assignment assignment = attachments_->assignments().Built().at(0);
  const ip::Address address = assignment.addresses.at(0);
  attachments_->OnEndAssignment({address, assignment.generation + 1, "why"});
  attachments_->OnEndAssignment({A("10.1.0.6"), assignment.generation, "why"});
  EXPECT_TRUE(HasLink(assignment.key));
  kernel_.FailCall(1, absl::UnavailableError("busy"));
  attachments_->OnEndAssignment({address, assignment.generation, "why"});
  EXPECT_EQ(log_.Count("assignment_not_ended"), 1);
  EXPECT_EQ(attachments_->assignments().Built().size(), 1U);
  attachments_->OnEndAssignment({address, assignment.generation, "why"});
  EXPECT_FALSE(HasLink(assignment.key));
  EXPECT_TRUE(attachments_->assignments().Built().empty());
  EXPECT_EQ(log_.Count("assignment_ended"), 1);
  attachments_->Tick();
  EXPECT_EQ(server_.reports.back().released.size(), 1U) << "the server hears of it";
}

TEST_F(AttachmentsTest, AnEmptyPoolIsNamedWithItsCounts) {
  const auto never = Add(kPodA);
  EXPECT_EQ(never.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(never.status().message()), HasSubstr("node node1 has been given none"));
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  EXPECT_THAT(
      std::string(Add(kPodB).status().message()),
      HasSubstr("node node1, pool default: 1 attached here, 1 in use, 0 in cooldown, 0 available; "
                "server: pool default (10.1.0.0/24): 251 usable, 8 attached, 243 free"));
}

TEST_F(AttachmentsTest, AKernelThatRefusesLeavesNothingAssigned) {
  Grant({"10.1.0.5"});
  kernel_.FailAttach(HostLinkName(kPodA), absl::InternalError("no"));
  EXPECT_EQ(Add(kPodA).status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(attachments_->assignments().Built(), IsEmpty());
  attachments_->Tick();
  EXPECT_THAT(server_.reports, IsEmpty());
  EXPECT_TRUE(Add(kPodB).ok());  // The address is free at once: no pod ever had it.
}

TEST_F(AttachmentsTest, AJournalThatFailsAtAnyPointLeavesNothingBehind) {
  for (int works = 0; works < 2; ++works) {
    Grant({"10.1.0.5"});
    tmpfs_.fail_after = works;
    EXPECT_EQ(Add(kPodA).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(HasLink(kPodA));
    EXPECT_THAT(attachments_->assignments().Built(), IsEmpty());
    tmpfs_.fail_after = -1;
    Restart();
    EXPECT_THAT(attachments_->assignments().Built(), IsEmpty());
    EXPECT_THAT(attachments_->assignments().Unfinished(), IsEmpty());
    ASSERT_TRUE(Add(kPodA).ok());
    ASSERT_TRUE(attachments_->Del(kPodA).ok());
    clock_.Advance(absl::Minutes(1));
    attachments_->Tick();
  }
}

TEST_F(AttachmentsTest, ADelThatCannotBeWrittenFreesNothing) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  tmpfs_.fail_after = 0;
  EXPECT_EQ(attachments_->Del(kPodA).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(attachments_->assignments().Built().size(), 1U);
  tmpfs_.fail_after = -1;
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_THAT(attachments_->assignments().Built(), IsEmpty());
}

TEST_F(AttachmentsTest, ARestartKeepsWhatIsAssignedAndInCooldown) {
  Grant({"10.1.0.5", "10.1.0.6"});
  ASSERT_TRUE(Add(kPodA).ok());
  ASSERT_TRUE(Add(kPodB).ok());
  ASSERT_TRUE(attachments_->Del(kPodB).ok());
  const Greeting before = attachments_->BeginSession();
  Restart();
  EXPECT_EQ(attachments_->BeginSession(), before);
  EXPECT_TRUE(HasLink(kPodA));
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
}

TEST_F(AttachmentsTest, ACooldownThatAClockAheadHasWrittenEndsWithinTheCooldownOfTheRestart) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  tmpfs_.events.push_back(AssignmentReleased{kPodA, clock_.Now() + absl::Hours(24)});
  Detach(kernel_, HostLinkName(kPodA)).IgnoreError();
  Restart();
  EXPECT_EQ(attachments_->NextWake(), clock_.Now() + settings_.cooldown);
  Restart();  // The journal has the same end.
  clock_.Advance(settings_.cooldown);
  attachments_->Tick();
  EXPECT_TRUE(Add(kPodB).ok());
}

TEST_F(AttachmentsTest, AnAssignmentKnowsItsPodsNamespaceAgain) {
  const netns::Trace trace{.inode = 100, .cookie = 7, .directory_device = 24, .directory_inode = 5};
  settings_.trace_netns = [&](const std::string& path, int netns) {
    EXPECT_EQ(path, "/run/netns/a");
    EXPECT_EQ(netns, pods_.back().get());
    return trace;
  };
  Restart();
  Grant({"10.1.0.5"});
  ASSERT_TRUE(AttachmentsFixture::Add({.key = kPodA, .netns_path = "/run/netns/a"}).ok());
  Restart();
  ASSERT_EQ(attachments_->assignments().Built().size(), 1U);
  EXPECT_EQ(attachments_->assignments().Built()[0].netns_trace, trace);
}

TEST_F(AttachmentsTest, ARestartUndoesWhatWasBegunAndNotFinished) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  // The agent died between the kernel's work and the journal's last entry.
  tmpfs_.events.pop_back();
  Restart();
  EXPECT_FALSE(HasLink(kPodA));
  EXPECT_TRUE(Add(kPodB).ok());
}

TEST_F(AttachmentsTest, WithALostJournalNoAddressInUseIsAssignedAgain) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  tmpfs_.events.clear();
  Restart();
  EXPECT_EQ(log_.Count("link_adopted"), 1);
  Grant({"10.1.0.5", "10.1.0.6"});
  EXPECT_THAT(Add(kPodB)->addresses, ElementsAre(A("10.1.0.6")));
  Restart();  // An adopted link is not adopted again.
  EXPECT_EQ(log_.Count("link_adopted"), 1);
  // The pod's own DEL still finds its link and frees its address.
  ASSERT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_FALSE(HasLink(kPodA));
  EXPECT_THAT(attachments_->BeginSession().hello.cooldown, ElementsAre(A("10.1.0.5")));
}

TEST_F(AttachmentsTest, ChangesAreRelativeToWhatTheServerSaidBefore) {
  Grant({"10.1.0.5", "10.1.0.6"});
  ASSERT_TRUE(
      attachments_
          ->OnDesired({.version = 2,
                       .added = {{.range = ip::Prefix::Host(A("10.1.0.7")), .pool = "default"}},
                       .removed = {ip::Prefix::Host(A("10.1.0.5"))}})
          .ok());
  EXPECT_THAT(attachments_->assignments().Attached(), ElementsAre(A("10.1.0.6"), A("10.1.0.7")));
  Restart();
  EXPECT_THAT(attachments_->assignments().Attached(), ElementsAre(A("10.1.0.6"), A("10.1.0.7")));
}

TEST_F(AttachmentsTest, AnAddressInCooldownIsNotAssignedBeforeItsEnd) {
  node_api::DesiredState desired{.version = 1, .full = true};
  desired.added = {
      {.range = ip::Prefix::Host(A("10.1.0.5")), .pool = "default", .cooldown = absl::Seconds(10)}};
  ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  EXPECT_FALSE(Add(kPodA).ok());
  clock_.Advance(absl::Seconds(10));
  attachments_->Tick();
  EXPECT_TRUE(Add(kPodA).ok());
}

TEST_F(AttachmentsTest, ADesiredStateThatCannotBeWrittenIsNotAcknowledged) {
  tmpfs_.fail_after = 0;
  EXPECT_EQ(attachments_
                ->OnDesired({.version = 1,
                             .full = true,
                             .added = {{.range = ip::Prefix::Host(A("10.1.0.5")), .pool = "p"}}})
                .code(),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(server_.acknowledged, IsEmpty());
}

TEST_F(AttachmentsTest, AnAgreementIsWrittenBeforeItIsSaidAndOutlivesTheAgent) {
  Grant({"10.1.0.5", "10.1.0.6"});
  ASSERT_TRUE(Add(kPodA).ok());
  const ip::Prefix in_use = ip::Prefix::Host(attachments_->assignments().Built()[0].addresses[0]);
  const ip::Prefix available = ip::Prefix::Host(A("10.1.0.6"));
  attachments_->OnReclaim({7, {in_use, available}});
  ASSERT_EQ(server_.reclaim_answers.size(), 1U);
  EXPECT_EQ(server_.reclaim_answers[0], (node_api::ReclaimAnswer{7, {available}, {in_use}}));
  EXPECT_FALSE(Add(kPodB).ok());
  Restart();  // The server stays away.
  EXPECT_THAT(attachments_->assignments().Withdrawn(), ElementsAre(A("10.1.0.6")));
  EXPECT_THAT(std::string(Add(kPodB).status().message()), HasSubstr("0 available, 1 unusable"));
  attachments_->OnReclaim({8, {in_use, available}});
  EXPECT_EQ(server_.reclaim_answers[1], (node_api::ReclaimAnswer{8, {available}, {in_use}}));
}

TEST_F(AttachmentsTest, WhatCannotBeWrittenIsDeniedAndWhatWasAgreedToStaysAgreed) {
  Grant({"10.1.0.5", "10.1.0.6"});
  const ip::Prefix first = ip::Prefix::Host(A("10.1.0.5"));
  const ip::Prefix second = ip::Prefix::Host(A("10.1.0.6"));
  attachments_->OnReclaim({1, {first}});
  tmpfs_.fail_after = 0;
  attachments_->OnReclaim({2, {second, first}});
  EXPECT_EQ(server_.reclaim_answers[1], (node_api::ReclaimAnswer{2, {first}, {second}}));
  tmpfs_.fail_after = -1;
  EXPECT_THAT(Add(kPodA)->addresses, ElementsAre(A("10.1.0.6")));
}

TEST_F(AttachmentsTest, ABlockIsListedGivenUpAndTakenOffAsOne) {
  node_api::DesiredState block{.version = 1, .full = true};
  node_api::DesiredState gone{.version = 2};
  const ip::Prefix whole = ip::Prefix::Parse("fd00::10/124").value();
  block.added = {{.range = whole, .pool = "six"}};
  gone.removed = {whole};
  ASSERT_TRUE(attachments_->OnDesired(block).ok());
  EXPECT_EQ(attachments_->assignments().Attached().size(), 16U);
  ASSERT_TRUE(Add(kPodA).ok());
  attachments_->OnReclaim({1, {whole}});
  EXPECT_THAT(server_.reclaim_answers.back().denied, ElementsAre(whole));
  EXPECT_THAT(attachments_->assignments().Withdrawn(), IsEmpty());
  ASSERT_TRUE(attachments_->Del(kPodA).ok());
  clock_.Advance(absl::Seconds(30));
  attachments_->Tick();
  attachments_->OnReclaim({2, {whole}});
  EXPECT_THAT(server_.reclaim_answers.back().agreed, ElementsAre(whole));
  EXPECT_EQ(attachments_->assignments().Withdrawn().size(), 16U);
  EXPECT_FALSE(Add(kPodA).ok());
  ASSERT_TRUE(attachments_->OnDesired(gone).ok());
  EXPECT_THAT(attachments_->assignments().Attached(), IsEmpty());
  EXPECT_THAT(kernel_.Unreachable(), IsEmpty());
  block.full = false;
  ASSERT_TRUE(attachments_->OnDesired(block).ok());
  EXPECT_TRUE(Add(kPodA).ok());
}

TEST_F(AttachmentsTest, ThePoolsOfNamespacesHoldAfterARestartWithoutTheServer) {
  node_api::DesiredState desired{.version = 1, .full = true};
  desired.added = {{.range = ip::Prefix::Host(A("10.1.0.5")), .pool = "open"},
                   {.range = ip::Prefix::Host(A("10.2.0.5")), .pool = "teams"}};
  desired.pools = {{"open", "10.1.0.0/24", 251, 1, 250},
                   {"teams", "10.2.0.0/24", 251, 1, 250, {"web"}}};
  ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  Restart();
  EXPECT_THAT(Add(kPodA)->addresses, ElementsAre(A("10.1.0.5")));  // The pod is of namespace "ns".
  const auto none = Add(kPodB);
  EXPECT_THAT(
      std::string(none.status().message()),
      HasSubstr(
          "no IPv4 address is free on this node for namespace ns (considered: pool "
          "open): node node1, pool open: 1 attached here, 1 in use, 0 in cooldown, 0 available, "
          "pool teams: 1 attached here, 0 in use, 0 in cooldown, 1 available"));
  // A change that does not mention the pool does not open it.
  ASSERT_TRUE(attachments_->OnDesired({.version = 2}).ok());
  EXPECT_FALSE(Add(kPodB).ok());
  desired.pools[1].namespaces.clear();
  ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  EXPECT_THAT(Add(kPodB)->addresses, ElementsAre(A("10.2.0.5")));
}

TEST_F(AttachmentsTest, AConflictIsToldInEachSessionAndTheAddressNotAssigned) {
  const ip::MacAddress mac = ip::MacAddress::Parse("00:0d:3a:01:02:03").value();
  Grant({"10.1.0.5"});
  EXPECT_EQ(attachments_->OnConflict(A("10.1.0.9"), mac).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(attachments_->OnConflict(A("10.1.0.5"), mac).ok());
  ASSERT_TRUE(attachments_->OnConflict(A("10.1.0.5"), mac).ok());
  EXPECT_THAT(server_.conflicts, ElementsAre(node_api::ConflictReport{A("10.1.0.5"), mac},
                                             node_api::ConflictReport{A("10.1.0.5"), mac}))
      << "the server ends a conflict that it does not hear of";
  EXPECT_EQ(log_.Count("address_in_conflict"), 1);
  EXPECT_FALSE(Add(kPodA).ok());
  Restart();
  EXPECT_THAT(attachments_->BeginSession().conflicts,
              ElementsAre(node_api::ConflictReport{A("10.1.0.5"), mac}));
  Grant({"10.1.0.5"});  // That the server still lists it does not make it good.
  EXPECT_FALSE(Add(kPodA).ok());
  Grant({});
  Grant({"10.1.0.5"});
  EXPECT_TRUE(Add(kPodA).ok());
  EXPECT_THAT(attachments_->BeginSession().conflicts, IsEmpty());
}

TEST_F(AttachmentsTest, WhenAConflictIsOverTheAddressIsAssignedAgainAlsoAfterARestart) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(attachments_->OnConflictOver(A("10.1.0.5")).ok());
  ASSERT_TRUE(attachments_->OnConflict(A("10.1.0.5"), std::nullopt).ok());
  EXPECT_FALSE(Add(kPodA).ok());
  ASSERT_TRUE(attachments_->OnConflictOver(A("10.1.0.5")).ok());
  EXPECT_EQ(log_.Count("address_conflict_over"), 1);
  Restart();
  EXPECT_THAT(attachments_->BeginSession().conflicts, IsEmpty());
  EXPECT_TRUE(Add(kPodA).ok());
}

TEST_F(AttachmentsTest, AConflictThatCannotBeWrittenIsHeededNevertheless) {
  Grant({"10.1.0.5"});
  tmpfs_.fail_after = 0;
  EXPECT_EQ(attachments_->OnConflict(A("10.1.0.5"), std::nullopt).code(),
            absl::StatusCode::kUnavailable);
  tmpfs_.fail_after = -1;
  EXPECT_EQ(server_.conflicts.size(), 1U);
  EXPECT_FALSE(Add(kPodA).ok());
}

TEST_F(AttachmentsTest, AnInventorySaysWhatIsHeldAndAssigned) {
  Grant({"10.1.0.5", "10.1.0.6"});
  ASSERT_TRUE(Add(kPodA).ok());
  attachments_->OnInventory({9});
  ASSERT_EQ(server_.inventories.size(), 1U);
  const node_api::Inventory& inventory = server_.inventories[0];
  EXPECT_EQ(inventory.id, 9U);
  EXPECT_THAT(inventory.held, ElementsAre(A("10.1.0.5"), A("10.1.0.6")));
  ASSERT_EQ(inventory.in_use.size(), 1U);
  EXPECT_EQ(inventory.in_use[0].address, A("10.1.0.5"));
  EXPECT_EQ(inventory.in_use[0].generation, attachments_->assignments().Find(kPodA)->generation);
  EXPECT_EQ(inventory.in_use[0].lessee,
            (node_api::Lessee{.container_id = kPodA.container_id, .ifname = kPodA.ifname}))
      << "keys and generations, but no pods";
}

// Another node may have it by now, and a server that knows less takes this one's word.
TEST_F(AttachmentsTest, AnInventorySaysNothingOfWhatIsGivenUp) {
  Grant({"10.1.0.5", "10.1.0.6"});
  attachments_->OnReclaim({1, {ip::Prefix::Host(A("10.1.0.5"))}});
  attachments_->OnInventory({2});
  Restart();
  attachments_->OnInventory({3});
  ASSERT_EQ(server_.inventories.size(), 2U);
  for (const node_api::Inventory& inventory : server_.inventories) {
    EXPECT_THAT(inventory.held, ElementsAre(A("10.1.0.6")));
  }
}

TEST_F(AttachmentsTest, WhatWaitsForProofIsNotAssignedAndSaysSo) {
  settings_.proof_required = {.ipv4 = true, .ipv6 = true};
  settings_.explain_unproven = [] { return "2 not listed by the host"; };
  Restart();
  Grant({"10.1.0.5", "10.1.0.6", "10.1.0.7"});
  ASSERT_TRUE(attachments_->OnProven({A("10.1.0.6")}).ok());
  ASSERT_TRUE(Add(kPodA).ok());
  EXPECT_THAT(
      std::string(Add(kPodB).status().message()),
      HasSubstr("pool default: 3 attached here, 1 in use, 0 in cooldown, 0 available, 2 unproven; "
                "2 of 3 addresses wait for proof: 2 not listed by the host; server: "));
  // A proof is kept: after a restart without host and fabric, assignment goes on.
  ASSERT_TRUE(attachments_->OnProven({A("10.1.0.7")}).ok());
  Restart();
  EXPECT_THAT(attachments_->assignments().Unproven(), ElementsAre(A("10.1.0.5")));
  EXPECT_TRUE(Add(kPodB).ok());
}

TEST_F(AttachmentsTest, AProofThatCannotBeKeptIsNone) {
  settings_.proof_required = {.ipv4 = true, .ipv6 = true};
  Restart();
  Grant({"10.1.0.5"});
  tmpfs_.fail_after = 0;
  EXPECT_EQ(attachments_->OnProven({A("10.1.0.5")}).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Add(kPodA).ok());
}

TEST_F(AttachmentsTest, WhatIsOnTheNodesDeviceIsNotAssignedAndSaysSo) {
  Grant({"10.1.0.5"});
  attachments_->OnNicAddresses({A("10.1.0.5")});
  EXPECT_THAT(std::string(Add(kPodA).status().message()),
              HasSubstr("0 available, 1 on eth0 itself"));
  attachments_->OnNicAddresses({});
  EXPECT_TRUE(Add(kPodA).ok());
}

TEST_F(AttachmentsTest, ANicWithoutAWayOutDoesNotStandInTheWayOfAnother) {
  const ip::MacAddress first = ip::MacAddress::Parse("00:0d:3a:00:00:01").value();
  const ip::MacAddress second = ip::MacAddress::Parse("00:0d:3a:00:00:02").value();
  kernel_.SetNic({.name = "eth0", .mac = first, .mtu = 1500, .addresses = {}});
  Restart();
  node_api::DesiredState desired{.version = 1, .full = true};
  desired.added = {{.range = ip::Prefix::Host(A("10.1.0.5")), .pool = "default", .nic_mac = second},
                   {.range = ip::Prefix::Host(A("10.1.0.6")), .pool = "default", .nic_mac = first}};
  ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  // The other address has been idle for longer.
  EXPECT_THAT(Add(kPodA)->addresses, ElementsAre(A("10.1.0.6")));
  const absl::Status refused = Add(kPodB).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << "so that it waits";
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("0 available, 1 unusable; NIC 00:0d:3a:00:00:02 has no way out"));
  // The device comes, and the server says nothing.
  kernel_.SetNic({.name = "eth1", .mac = second, .mtu = 1500, .addresses = {}});
  ASSERT_TRUE(attachments_->NextWake().has_value());
  EXPECT_LE(*attachments_->NextWake() - clock_.Now(), absl::Seconds(10));
  clock_.Advance(*attachments_->NextWake() - clock_.Now());
  attachments_->Tick();
  EXPECT_EQ(attachments_->NextWake(), std::nullopt);
  EXPECT_THAT(Add(kPodB)->addresses, ElementsAre(A("10.1.0.5")));
}

TEST_F(AttachmentsTest, UnreachableRoutesAreSetOnlyWhenTheAddressesHaveChanged) {
  Grant({"10.1.0.5"});
  attachments_->Tick();
  const int calls = kernel_.calls();
  for (int i = 0; i < 5; ++i) attachments_->Tick();
  EXPECT_EQ(kernel_.calls(), calls);
  // An operation that the kernel has refused is tried again.
  kernel_.FailCall(1, absl::UnavailableError("later"));
  Grant({"10.1.0.5", "10.1.0.6"});
  EXPECT_THAT(kernel_.Unreachable(), ElementsAre(A("10.1.0.5")));
  attachments_->Tick();
  EXPECT_THAT(kernel_.Unreachable(), ElementsAre(A("10.1.0.5"), A("10.1.0.6")));
}

}  // namespace
}  // namespace spoke::netagent
