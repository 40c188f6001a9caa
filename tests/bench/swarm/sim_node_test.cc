#include "tests/bench/swarm/sim_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spoke::swarm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

v1::IpConfiguration Configuration(uint32_t host_order, uint32_t prefix_length = 32) {
  v1::IpConfiguration out;
  out.set_base(ip::Address::V4(host_order).ToBytes());
  out.set_prefix_length(prefix_length);
  return out;
}

v1::ServerMessage WelcomeOf(uint64_t epoch) {
  v1::ServerMessage message;
  message.mutable_welcome()->set_session_epoch(epoch);
  return message;
}

v1::ServerMessage DesiredOf(uint64_t version, bool full, const std::vector<uint32_t>& added,
                            const std::vector<uint32_t>& removed = {}) {
  v1::ServerMessage message;
  v1::DesiredState& desired = *message.mutable_desired();
  desired.set_version(version);
  desired.set_full(full);
  for (const uint32_t address : added) *desired.add_added() = Configuration(address);
  for (const uint32_t address : removed) *desired.add_removed() = Configuration(address);
  return message;
}

v1::ServerMessage AckOf(uint64_t sequence) {
  v1::ServerMessage message;
  message.mutable_report_ack()->set_sequence(sequence);
  return message;
}

class SimNodeTest : public testing::Test {
 protected:
  SimNode::Outcome Take(SimNode& node, const v1::ServerMessage& message, int64_t now = 0) {
    SimNode::Outcome out;
    node.Take(message, now, out);
    return out;
  }
  v1::Hello Begin(SimNode& node, uint64_t epoch, const std::vector<uint32_t>& addresses) {
    v1::Hello hello;
    node.Greet(hello);
    Take(node, WelcomeOf(epoch));
    Take(node, DesiredOf(1, true, addresses));
    return hello;
  }
  v1::AssignmentReport Report(SimNode& node) {
    v1::AssignmentReport report;
    EXPECT_TRUE(node.HasReport());
    node.FillReport(report, 0, 0);
    return report;
  }
  std::map<std::string, uint64_t> Complaints() { return ledger_.complaints().by_kind; }

  Ledger ledger_;
  SimNode node_{0, {.operations = 1, .window = 2}, ledger_};
  SimNode other_{1, {.operations = 100, .window = 1}, ledger_};
};

TEST_F(SimNodeTest, AcknowledgesStateAndCountsBlocksByAddress) {
  Begin(node_, 1, {1, 2});
  v1::ServerMessage message = DesiredOf(2, false, {});
  *message.mutable_desired()->add_added() = Configuration(0x10, 28);
  const auto out = Take(node_, message);
  ASSERT_THAT(out.answers, SizeIs(1));
  EXPECT_EQ(out.answers[0].ack().version(), 2U);
  EXPECT_EQ(node_.usable(), 18U);
  EXPECT_TRUE(node_.synced());
  EXPECT_THAT(Complaints(), IsEmpty());
}

TEST_F(SimNodeTest, ComplainsOfAnAddressGivenToTwo) {
  Begin(node_, 1, {1, 2});
  Begin(other_, 1, {2, 3});
  EXPECT_THAT(Complaints(), ElementsAre(Pair("twice", 1)));
}

TEST_F(SimNodeTest, ComplainsOfAnAddressTakenWithoutAgreement) {
  Begin(node_, 1, {1, 2});
  Take(node_, DesiredOf(2, false, {}, {2}));
  EXPECT_THAT(Complaints(), ElementsAre(Pair("taken", 1)));
}

TEST_F(SimNodeTest, ComplainsOfAnAddressForgottenAfterARestart) {
  Begin(node_, 1, {1, 2});
  Begin(node_, 2, {1});
  EXPECT_THAT(Complaints(), ElementsAre(Pair("lost", 1)));
}

TEST_F(SimNodeTest, ComplainsOfAnEpochThatDoesNotRise) {
  Begin(node_, 5, {});
  Begin(node_, 5, {});
  EXPECT_THAT(Complaints(), ElementsAre(Pair("stale_epoch", 1)));
}

TEST_F(SimNodeTest, ComplainsOfDisorder) {
  v1::Hello hello;
  node_.Greet(hello);
  Take(node_, DesiredOf(1, true, {}));
  Take(node_, WelcomeOf(1));
  Take(node_, DesiredOf(3, false, {}));
  Take(node_, DesiredOf(2, true, {}));
  Take(node_, AckOf(1));
  EXPECT_THAT(Complaints(), ElementsAre(Pair("bad_ack", 1), Pair("delta_first", 1),
                                        Pair("no_welcome", 1), Pair("version_back", 1)));
}

TEST_F(SimNodeTest, GivesUpWhatIsAvailableAndDeniesWhatIsAssigned) {
  Begin(node_, 1, {1, 2});
  ASSERT_TRUE(node_.Assign());
  v1::ServerMessage request;
  request.mutable_reclaim()->set_id(7);
  *request.mutable_reclaim()->add_configurations() = Configuration(1);
  *request.mutable_reclaim()->add_configurations() = Configuration(2);
  const auto out = Take(node_, request);
  ASSERT_THAT(out.answers, SizeIs(1));
  const v1::ReclaimAnswer& answer = out.answers[0].reclaim_answer();
  EXPECT_EQ(answer.id(), 7U);
  ASSERT_THAT(answer.agreed(), SizeIs(1));
  ASSERT_THAT(answer.denied(), SizeIs(1));
  EXPECT_EQ(answer.agreed(0).base(), Configuration(2).base());
  // Another may have it from now on, even before this node hears that it is gone.
  Begin(other_, 1, {2});
  Take(node_, DesiredOf(2, false, {}, {2}));
  EXPECT_THAT(Complaints(), IsEmpty());
}

TEST_F(SimNodeTest, StaysByAnAgreementUntilAListBeginsASession) {
  Begin(node_, 1, {1});
  v1::ServerMessage request;
  *request.mutable_reclaim()->add_configurations() = Configuration(1);
  Take(node_, request);
  Take(node_, DesiredOf(2, true, {1}));  // This was sent before our agreement had come.
  EXPECT_FALSE(node_.Assign());
  Begin(node_, 2, {1});  // It never came.
  EXPECT_TRUE(node_.Assign());
  Begin(other_, 1, {1});
  EXPECT_THAT(Complaints(), ElementsAre(Pair("twice", 1)));
}

TEST_F(SimNodeTest, ComplainsOfAnAddressGivenToAnotherBeforeItHasCooled) {
  Ledger ledger(/*cooldown=*/1000);
  SimNode first(0, {}, ledger);
  SimNode second(1, {}, ledger);
  Begin(first, 1, {1, 2, 3});
  v1::ServerMessage request;
  for (const uint32_t address : {1U, 2U, 3U}) {
    *request.mutable_reclaim()->add_configurations() = Configuration(address);
  }
  Take(first, request, 5000);
  EXPECT_EQ(first.given_up(), 3U);
  Begin(first, 2, {1});  // The same node may have it back at once.
  Begin(second, 1, {});
  Take(second, DesiredOf(2, false, {2}), 5999);
  Take(second, DesiredOf(3, false, {3}), 6000);
  EXPECT_THAT(ledger.complaints().by_kind, ElementsAre(Pair("too_soon", 1)));
  EXPECT_EQ(ledger.moves(), 2U);
  EXPECT_EQ(ledger.size(), 3U);
}

TEST_F(SimNodeTest, PatientPodsWaitForAnAddress) {
  Begin(other_, 1, {1});
  EXPECT_EQ(other_.StartPods(2, SimNode::Patience::kWaits), 1U);
  EXPECT_THAT(Report(other_).in_use(), SizeIs(1));
  EXPECT_FALSE(other_.HasReport());
  Take(other_, DesiredOf(2, false, {2}));
  Take(other_, AckOf(1));
  const v1::AssignmentReport report = Report(other_);
  EXPECT_THAT(report.in_use(), SizeIs(1));
  EXPECT_THAT(report.released(), SizeIs(1));
  EXPECT_THAT(Complaints(), IsEmpty());
}

TEST_F(SimNodeTest, ProbesReachAllButADeadNic) {
  v1::ServerMessage message;
  message.mutable_probe_request()->set_id(7);
  for (const char* address : {"100.64.0.1", "100.64.0.2"}) {
    message.mutable_probe_request()->add_targets()->set_address(address);
  }
  const auto outcomes = [&](uint32_t node, int64_t now) {
    SimNode probed(node, {}, ledger_, {.node = 2, .from = 100});
    Begin(probed, 1, {});
    SimNode::Outcome out;
    probed.Take(message, now, out);
    std::vector<int> outcomes;
    EXPECT_EQ(out.answers.at(0).probe_results().id(), 7U);
    for (const auto& result : out.answers.at(0).probe_results().results()) {
      outcomes.push_back(result.outcome());
    }
    return outcomes;
  };
  constexpr int kReached = v1::ProbeResults::Result::REACHED;
  constexpr int kLost = v1::ProbeResults::Result::TIMED_OUT;
  EXPECT_THAT(outcomes(0, 99), ElementsAre(kReached, kReached));
  EXPECT_THAT(outcomes(0, 100), ElementsAre(kReached, kLost));
  EXPECT_THAT(outcomes(2, 100), ElementsAre(kLost, kLost));
}

TEST_F(SimNodeTest, PodsComeAndGoOneOperationAReport) {
  Begin(node_, 1, {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(node_.StartPods(2), 2U);
  const v1::AssignmentReport first = Report(node_);
  EXPECT_THAT(first.in_use(), SizeIs(1));
  Report(node_);
  EXPECT_FALSE(node_.HasReport());  // The window is full.
  const auto out = Take(node_, AckOf(2), 5);
  EXPECT_THAT(out.latencies, ElementsAre(5, 5));
  const v1::AssignmentReport release = Report(node_);
  EXPECT_THAT(release.in_use(), IsEmpty());
  ASSERT_THAT(release.released(), SizeIs(1));
  EXPECT_EQ(release.released(0).address(), first.in_use(0).address());
  EXPECT_EQ(release.released(0).generation(), first.in_use(0).generation());
  Take(node_, AckOf(3));
  // The other pod's release also says that the first one's address has ended its cooldown.
  EXPECT_THAT(Report(node_).cooled(), ElementsAre(first.in_use(0).address()));
  node_.StopPods();
  Take(node_, AckOf(4));
  Take(node_, AckOf(5));
  EXPECT_THAT(Complaints(), ElementsAre(Pair("bad_ack", 1)));  // 5 was never sent.
}

TEST_F(SimNodeTest, CoalescesWhatCameUpWhileAReportWasOnItsWay) {
  Begin(other_, 1, {1, 2, 3, 4, 5, 6, 7, 8});
  ASSERT_TRUE(other_.Assign());
  EXPECT_THAT(Report(other_).in_use(), SizeIs(1));
  ASSERT_TRUE(other_.Assign());
  ASSERT_TRUE(other_.Assign());
  EXPECT_FALSE(other_.HasReport());
  Take(other_, AckOf(1));
  EXPECT_THAT(Report(other_).in_use(), SizeIs(2));
  EXPECT_FALSE(other_.settled());
  Take(other_, AckOf(2));
  EXPECT_TRUE(other_.settled());
}

TEST_F(SimNodeTest, SaysInHelloWhatWasNotAcknowledged) {
  Begin(node_, 1, {1, 2, 3});
  ASSERT_TRUE(node_.Assign());
  Report(node_);
  ASSERT_TRUE(node_.Assign());
  EXPECT_FALSE(node_.settled());
  EXPECT_FALSE(node_.held()[0].settled);
  const v1::Hello hello = Begin(node_, 2, {1, 2, 3});
  EXPECT_THAT(hello.in_use(), SizeIs(2));
  EXPECT_TRUE(node_.settled());
  EXPECT_TRUE(node_.held()[0].settled);
  EXPECT_FALSE(node_.HasReport());
  EXPECT_THAT(Complaints(), IsEmpty());
}

TEST_F(SimNodeTest, KeepsPolicyByVersion) {
  Begin(node_, 1, {});
  v1::ServerMessage message;
  message.mutable_policy()->set_version(3);
  message.mutable_policy()->set_full(true);
  EXPECT_EQ(Take(node_, message).answers[0].policy_ack().version(), 3U);
  message.mutable_policy()->set_version(5);
  message.mutable_policy()->set_full(false);
  message.mutable_policy()->set_base_version(4);
  EXPECT_NE(Take(node_, message).answers[0].policy_ack().error(), "");
  EXPECT_THAT(Complaints(), ElementsAre(Pair("policy_base", 1)));
  v1::Hello hello;
  node_.Greet(hello);
  EXPECT_EQ(hello.policy_version(), 3U);
}

TEST_F(SimNodeTest, SaysWhatItHoldsWhenAsked) {
  Begin(node_, 1, {1, 2});
  ASSERT_TRUE(node_.Assign());
  v1::ServerMessage request;
  request.mutable_inventory_request()->set_id(9);
  const auto out = Take(node_, request);
  const v1::Inventory& inventory = out.answers[0].inventory();
  EXPECT_EQ(inventory.id(), 9U);
  EXPECT_THAT(inventory.held(), SizeIs(2));
  EXPECT_THAT(inventory.in_use(), SizeIs(1));
}

TEST_F(SimNodeTest, APodThatRunsGoesOnceItsAddressIsAcknowledged) {
  Begin(other_, 1, {1});
  EXPECT_FALSE(other_.IsUrgent());
  ASSERT_TRUE(other_.RunPod(10));
  EXPECT_FALSE(other_.RunPod(10)) << "there is one address";
  EXPECT_TRUE(other_.IsUrgent());
  EXPECT_EQ(other_.waits_since(), -1) << "nothing is on its way";
  v1::AssignmentReport report;
  other_.FillReport(report, 20, 0);
  EXPECT_THAT(report.in_use(), SizeIs(1));
  EXPECT_EQ(other_.waits_since(), 20);
  const auto out = Take(other_, AckOf(1), 30);
  EXPECT_EQ(out.written, 20);
  EXPECT_EQ(out.wanted, 10);
  EXPECT_EQ(other_.waits_since(), -1);
  EXPECT_THAT(Report(other_).released(), SizeIs(1));
  Take(other_, AckOf(2), 40);
  EXPECT_TRUE(other_.settled());
  EXPECT_EQ(other_.Count(SimNode::Use::kInUse), 0U);
  EXPECT_THAT(Complaints(), IsEmpty());
}

TEST_F(SimNodeTest, AWelcomeAcknowledgesWhatTheHelloSaid) {
  Begin(node_, 1, {1});
  ASSERT_TRUE(node_.RunPod(10));
  v1::Hello hello;
  node_.Greet(hello, 20);
  EXPECT_EQ(node_.waits_since(), 20);
  const auto out = Take(node_, WelcomeOf(2), 30);
  EXPECT_EQ(out.written, 20);
  EXPECT_EQ(out.wanted, 10);
}

TEST_F(SimNodeTest, WhatComesUpAfterTheHelloIsNotAcknowledgedByItsAnswer) {
  Begin(node_, 1, {1, 2});
  v1::Hello hello;
  node_.Greet(hello, 20);
  ASSERT_TRUE(node_.RunPod(25));
  Take(node_, WelcomeOf(2), 30);
  EXPECT_FALSE(node_.settled());
  EXPECT_THAT(Report(node_).in_use(), SizeIs(1));
}

TEST_F(SimNodeTest, WhatItIsToldAndSaysIsKeptForAJudgement) {
  using Kind = ha::Event::Kind;
  Ledger ledger(0, Ledger::Memory::kAll);
  SimNode node(7, {.operations = 10, .window = 1}, ledger);
  Begin(node, 1, {1, 2});
  ASSERT_TRUE(node.RunPod(10));
  Report(node);
  Take(node, AckOf(1), 20);
  v1::Hello hello;
  node.Greet(hello, 30);
  Take(node, WelcomeOf(2), 40);
  v1::ServerMessage reclaim;
  *reclaim.mutable_reclaim()->add_configurations() = Configuration(2);
  Take(node, DesiredOf(1, true, {1, 2}), 45);
  Take(node, reclaim, 50);
  node.Greet(hello, 60);
  Take(node, WelcomeOf(3), 70);
  Take(node, DesiredOf(1, true, {}), 80);
  std::vector<Kind> kinds;
  for (const ha::Event& event : ledger.history()) kinds.push_back(event.kind);
  EXPECT_THAT(kinds,
              ElementsAre(Kind::kHeld, Kind::kHeld, Kind::kUseBegun, Kind::kUseStored,
                          Kind::kEndBegun, Kind::kEndStored, Kind::kGivenUp, Kind::kMissing));
  EXPECT_EQ(ha::CheckHistory(ledger.history(), {}).lost, 1U);
}

TEST(SwarmNames, ANodeIsFoundByItsName) {
  EXPECT_EQ(NodeOf(NamesOf(42).name), 42U);
  EXPECT_EQ(NodeOf("sim-"), std::nullopt);
  EXPECT_EQ(NodeOf("node-00042"), std::nullopt);
}

}  // namespace
}  // namespace spoke::swarm
