#include "netagent/traffic/traffic.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/traffic/traffic_fixture.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

TEST_F(TrafficTest, AddsUpWhatAPodAndItsNamespaceDid) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
  Count("cluster_sent4", ByLink(7, "10.0.1.7"), 100);
  Count("cluster_received4", nft::NetworkOrder(A("10.0.1.7")), 30);
  Count("sent4", ByClass("10.0.1.7", kInternet), 5);
  Count("sent4", ByClass("10.0.1.8", kCluster), 1000);
  Count("host_in", nft::HostOrder(kHub), 77);
  tables_.CountIn(kSpokeTable, "drop/unknown-source", 3, 300);
  const TrafficTotals totals = Read();
  EXPECT_EQ(totals.namespaces.at("web").at("cluster").sent, 1100U);
  EXPECT_EQ(totals.namespaces.at("web").at("cluster").received, 30U);
  EXPECT_EQ(totals.namespaces.at("web").at("internet").sent, 5U);
  EXPECT_EQ(totals.pods.size(), 2U);
  EXPECT_EQ(totals.pods[0].volumes.at("internet").sent, 5U);
  EXPECT_EQ(totals.node.at("forward").at("cluster").sent, 1100U);
  EXPECT_EQ(totals.node.at("input").at("hub").received, 77U);
  EXPECT_EQ(totals.drops.at("unknown-source").packets, 3U);
  EXPECT_EQ(totals.epoch, clock_.Now());
}

TEST_F(TrafficTest, ANewAgentGoesOnWithTheCountsOfTheLast) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8", "db")).ok());
  Count("sent4", ByClass("10.0.1.7", kInternet), 5);
  Count("sent4", ByClass("10.0.1.8", kInternet), 6);
  const absl::Time epoch = clock_.Now();
  clock_.Advance(absl::Hours(1));
  Begin();
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  const TrafficTotals totals = Read();
  EXPECT_EQ(totals.epoch, epoch);
  EXPECT_EQ(totals.namespaces.at("web").at("internet").sent, 5U);
  // The pod has gone meanwhile, and is known by the namespace that its address bears in the kernel.
  EXPECT_EQ(totals.namespaces.at("db").at("internet").sent, 6U);
  EXPECT_EQ(totals.pods.size(), 1U);
}

TEST_F(TrafficTest, ATableThatLooksDifferentIsReplacedInOneTransactionWithItsCounts) {
  nft::Transaction old;
  old.Add(kSpokeTable, nft::AddTable{});
  old.Add(kSpokeTable, nft::AddCounter{"schema/1", {}});
  old.Add(kSpokeTable, nft::AddCounter{"epoch/1000", {}});
  old.Add(kSpokeTable, nft::AddCounter{"ns/web/internet/sent", {2, 200}});
  old.Add(kSpokeTable, nft::AddCounter{"drop/unknown-source", {1, 10}});
  old.Add(kSpokeTable, nft::AddCounter{"pod/10.0.1.7/web", {}});
  old.Add(kSpokeTable, nft::AddSet{{.name = "sent4",
                                    .key = {nft::Field::kIpv4, nft::Field::kMark},
                                    .dynamic = true,
                                    .counts = true,
                                    .size = 10}});
  // That schema had this set, and this one has not.
  old.Add(kSpokeTable, nft::AddSet{{.name = "class4",
                                    .key = {nft::Field::kIpv4},
                                    .value = nft::Field::kMark,
                                    .intervals = true}});
  ASSERT_TRUE(tables_.Apply(old).ok());
  Count("sent4", ByClass("10.0.1.7", kInternet), 40);
  const size_t before = tables_.applied().size();
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  // The second transaction only puts the same rules again.
  EXPECT_LE(tables_.applied().size(), before + 2);
  const TrafficTotals totals = Read();
  EXPECT_EQ(totals.namespaces.at("web").at("internet").sent, 240U);
  EXPECT_EQ(totals.pods.at(0).volumes.at("internet").sent, 40U);
  EXPECT_EQ(totals.drops.at("unknown-source").bytes, 10U);
  EXPECT_EQ(totals.epoch, absl::FromUnixSeconds(1000));
  EXPECT_EQ(tables_.FindSet(kSpokeTable, "sent4")->size, kMaxCounted);
  EXPECT_FALSE(tables_.FindSet(kSpokeTable, "class4").has_value());
  // The schemas before 3 had names of pods among the counts.
  ASSERT_EQ(tables_.ReadCounters(kNamesTable)->size(), 1U);
  EXPECT_EQ(tables_.ReadCounters(kNamesTable)->at(0).name, "pod/10.0.1.7/web");
  const auto counters = tables_.ReadCounters(kSpokeTable).value();
  EXPECT_TRUE(std::none_of(counters.begin(), counters.end(), IsPodLabel));
}

TEST_F(TrafficTest, APolicyIsInForceWholeOrNotAtAll) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  const ClassMap before = traffic_->classes();
  EXPECT_EQ(traffic_
                ->OnPolicy(WithNetwork({.cluster = policy::Blocks({"1.0.0.0/8"}),
                                        .hub = policy::Blocks({"1.0.0.0/8"})}))
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(traffic_->classes(), before);
  tables_.FailApply(absl::UnavailableError("busy"));
  EXPECT_EQ(traffic_->OnPolicy(WithNetwork({.cluster = policy::Blocks({"1.0.0.0/8"})})).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(traffic_->classes(), before);
  tables_.FailApply(absl::OkStatus());
  EXPECT_TRUE(traffic_->OnPolicy(WithNetwork({.cluster = policy::Blocks({"1.0.0.0/8"})})).ok());
  EXPECT_EQ(traffic_->classes().ClassOf(A("1.2.3.4")), kCluster);
}

TEST_F(TrafficTest, APolicyThatCutsTheWayToTheServerIsRefusedWithTheReason) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  const absl::Status status =
      traffic_->OnPolicy(WithNetwork({.peer_spoke = policy::Blocks({"10.5.0.0/16"})}));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("10.5.0.1"));
  EXPECT_EQ(traffic_->classes().ClassOf(A("10.5.0.1")), kInternet);
}

TEST_F(TrafficTest, CountsOfAGroupStayItsOwnWhenThePolicyChanges) {
  Policy policy = Example();
  policy.entries["DestinationGroup/mirror"] = {
      .key = "DestinationGroup/mirror",
      .bytes = {},
      .value = policy::DestinationGroup{policy::Blocks({"1.0.0.0/8"})}};
  ASSERT_TRUE(traffic_->Start(policy, {Pod("a", 7, "10.0.1.7")}).ok());
  Count("sent4", ByClass("10.0.1.7", kFirstGroup), 5);
  Policy other = Example();
  other.entries["DestinationGroup/another"] = {
      .key = "DestinationGroup/another",
      .bytes = {},
      .value = policy::DestinationGroup{policy::Blocks({"2.0.0.0/8"})}};
  ASSERT_TRUE(traffic_->OnPolicy(other).ok());
  EXPECT_EQ(Read().namespaces.at("web").at("group:mirror").sent, 5U);
  // The next agent knows it as well.
  Begin();
  ASSERT_TRUE(traffic_->Start(other, {Pod("a", 7, "10.0.1.7")}).ok());
  EXPECT_EQ(Read().namespaces.at("web").at("group:mirror").sent, 5U);
}

TEST_F(TrafficTest, WhatSomebodyElseChangesIsPutRightAndCounted) {
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  const auto look = [&] {
    clock_.Advance(Traffic::kLook);
    traffic_->Tick();
  };
  look();
  EXPECT_EQ(Read().drift_repaired, 0U);
  nft::Transaction foreign;
  foreign.Add(
      kSpokeTable,
      nft::AddRule{{.chain = "forward", .expressions = {nft::Verdict{}}, .comment = "mine"}});
  ASSERT_TRUE(tables_.Apply(foreign).ok());
  look();
  EXPECT_EQ(Read().drift_repaired, 1U);
  EXPECT_EQ(log_.Count("traffic_rules_changed"), 1);
  for (const nft::Rule& rule : tables_.Rules(kSpokeTable, "forward")) {
    EXPECT_NE(rule.comment, "mine");
  }
  nft::Transaction taken;
  taken.Add(kSpokeTable, nft::DeleteElements{"pods4", {{.key = ByLink(7, "10.0.1.7")}}});
  ASSERT_TRUE(tables_.Apply(taken).ok());
  look();
  EXPECT_EQ(Read().drift_repaired, 2U);
  EXPECT_EQ(tables_.ReadSet(kSpokeTable, "pods4")->size(), 1U);
  // The tables of others are nobody's business.
  nft::Transaction others;
  others.Add({nft::Family::kIp, "nat"}, nft::AddTable{});
  ASSERT_TRUE(tables_.Apply(others).ok());
  look();
  tables_.Wipe();
  look();
  EXPECT_EQ(Read().drift_repaired, 3U);
  EXPECT_EQ(tables_.ReadSet(kSpokeTable, "pods4")->size(), 1U);
}

TEST_F(TrafficTest, APolicyLeavesPodsAsTheyAreUnlessSomebodyElseChangedSomething) {
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
  const auto touches_pods = [&] {
    const std::vector<nft::Step>& steps = tables_.applied().back().steps;
    return std::any_of(steps.begin(), steps.end(), [](const nft::Step& step) {
      const auto* flush = std::get_if<nft::FlushSet>(&step.change);
      return flush != nullptr && flush->set == "pods4";
    });
  };
  const auto foreign = [&](nft::Change change) {
    nft::Transaction transaction;
    transaction.Add(kSpokeTable, std::move(change));
    ASSERT_TRUE(tables_.Apply(transaction).ok());
  };
  const Policy other = WithNetwork(
      {.cluster = policy::Blocks({"10.0.0.0/16"}), .hub = policy::Blocks({"11.0.0.0/8"})});
  ASSERT_TRUE(traffic_->OnPolicy(other).ok());
  EXPECT_FALSE(touches_pods());
  // What the sets hold is looked at, and is as it should be.
  foreign(nft::AddCounter{"somebody's", {}});
  clock_.Advance(Traffic::kLook);
  traffic_->Tick();
  EXPECT_EQ(Read().drift_repaired, 0U);
  EXPECT_EQ(tables_.ReadSet(kSpokeTable, "pods4")->size(), 2U);

  foreign(nft::DeleteElements{"pods4", {{.key = ByLink(7, "10.0.1.7")}}});
  ASSERT_TRUE(traffic_->OnPolicy(Example()).ok());
  EXPECT_TRUE(touches_pods());
  EXPECT_EQ(tables_.ReadSet(kSpokeTable, "pods4")->size(), 2U);
}

TEST_F(TrafficTest, TheShortWayIsThatOfTheUplinkWhicheverItIs) {
  const auto compares = [&](uint32_t index) {
    const nft::Expression is_index =
        nft::Compare{nft::Comparison::kEqual, 0, nft::HostOrder(index)};
    const auto rules = tables_.Rules(kSpokeTable, "forward");
    return std::count_if(rules.begin(), rules.end(), [&](const nft::Rule& rule) {
      return std::count(rule.expressions.begin(), rule.expressions.end(), is_index) > 0;
    });
  };
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  EXPECT_EQ(compares(2), 2);
  // The NIC has gone, and come as another device.
  routes_.network.uplink_index = 9;
  clock_.Advance(Traffic::kLook);
  traffic_->Tick();
  EXPECT_EQ(compares(2), 0);
  EXPECT_EQ(compares(9), 2);
  // Nothing is shorter than the fast path, so no rule compares devices.
  routes_.network.uplink_index = 2;
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  EXPECT_TRUE(Read().fast_path);
  EXPECT_EQ(compares(2) + compares(9), 0);
}

TEST_F(TrafficTest, WhoseAnAddressIsStandsBesideTheCounts) {
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  const auto of_pods = [&](const nft::TableKey& table) {
    const auto counters = tables_.ReadCounters(table).value();
    return std::count_if(counters.begin(), counters.end(), IsPodLabel);
  };
  EXPECT_EQ(of_pods(kSpokeTable), 0);
  EXPECT_EQ(of_pods(kNamesTable), 1);
  // Without the table no pod could be attached.
  nft::Transaction taken;
  taken.Add(kNamesTable, nft::DeleteTable{});
  ASSERT_TRUE(tables_.Apply(taken).ok());
  clock_.Advance(Traffic::kLook);
  traffic_->Tick();
  EXPECT_EQ(Read().drift_repaired, 1U);
  EXPECT_EQ(of_pods(kNamesTable), 1);
  EXPECT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
  EXPECT_EQ(of_pods(kNamesTable), 2);
}

TEST_F(TrafficTest, AnAttachThatFailsChangesNothing) {
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  tables_.FailApply(absl::UnavailableError("busy"));
  EXPECT_EQ(traffic_->Attach(Pod("a", 7, "10.0.1.7")).code(), absl::StatusCode::kUnavailable);
  tables_.FailApply(absl::OkStatus());
  EXPECT_TRUE(Read().pods.empty());
  EXPECT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  EXPECT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok()) << "again";
  tables_.FailApply(absl::UnavailableError("busy"));
  EXPECT_FALSE(traffic_->Detach("spka").ok());
  tables_.FailApply(absl::OkStatus());
  EXPECT_FALSE(Read().pods.at(0).ended);
  EXPECT_TRUE(traffic_->Detach("spka").ok());
  EXPECT_TRUE(traffic_->Detach("spka").ok()) << "again";
}

TEST_F(TrafficTest, TheFastPathCountsForItsPodsAndLeavesWithoutALoss) {
  Begin(/*fast=*/true);
  TrafficPod jumbo = Pod("j", 9, "10.0.1.9");
  jumbo.mtu = 9000;
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7"), jumbo}).ok());
  EXPECT_TRUE(Read().fast_path);
  const auto fast = FastPodsNow();
  ASSERT_EQ(fast.size(), 1U);
  EXPECT_EQ(fast[0].host_index, 7U);
  fast_path_.Count(fast[0].id, {.sent_packets = 1, .sent_bytes = 50});
  Count("cluster_sent4", ByLink(7, "10.0.1.7"), 1);
  EXPECT_EQ(Read().namespaces.at("web").at("cluster").sent, 51U);
  // The fast path is off for the next agent: what was counted stays.
  Begin(/*fast=*/false);
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7"), jumbo}).ok());
  EXPECT_FALSE(Read().fast_path);
  EXPECT_EQ(FastPodsNow().size(), 0U);
  EXPECT_EQ(fast_path_.Read().value().size(), 2U);
  EXPECT_EQ(Read().namespaces.at("web").at("cluster").sent, 51U);
  ASSERT_TRUE(traffic_->Detach("spka").ok());
}

TEST_F(TrafficTest, PodsThatLeftTheFastPathAreCountedUntilTheyEnd) {
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7"), Pod("b", 8, "10.0.1.8")}).ok());
  EXPECT_EQ(Read().over_share_pods, 0U);
  fast_path_.ExceedShare(FastPodsNow().at(0).id);
  EXPECT_EQ(Read().over_share_pods, 1U);
  ASSERT_TRUE(traffic_->Detach("spka").ok());
  EXPECT_EQ(Read().over_share_pods, 0U);
}

TEST_F(TrafficTest, FastPodsReachAllOthersOfTheNodeTheOrdinaryWay) {
  const auto are = [](const std::vector<std::string>& pods) {
    // The node's own address is always among them.
    std::set<ip::Address> addresses = {A("10.0.1.4")};
    for (const std::string& pod : pods) addresses.insert(A(pod));
    return addresses;
  };
  tracks_ = true;
  TrafficPod jumbo = Pod("j", 9, "10.0.1.9");
  jumbo.mtu = 9000;
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {jumbo}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  EXPECT_EQ(fast_path_.ordinary(), are({"10.0.1.9"}));
  // This happens at once, not with the next look.
  TrafficPod shaped = Pod("s", 10, "10.0.1.10");
  shaped.shaped = true;
  ASSERT_TRUE(traffic_->Attach(shaped).ok());
  EXPECT_EQ(fast_path_.ordinary(), are({"10.0.1.9", "10.0.1.10"}));
  // Somebody's rule turns it off for a while: the pods that were there keep to the ordinary way.
  for (const bool foreign : {true, false}) {
    routes_.network.foreign_rules = foreign;
    clock_.Advance(Traffic::kLook);
    traffic_->Tick();
  }
  ASSERT_TRUE(traffic_->Attach(Pod("n", 11, "10.0.1.11")).ok());
  EXPECT_EQ(fast_path_.ordinary(), are({"10.0.1.7", "10.0.1.9", "10.0.1.10"}));
  // An address that no pod has any more is this node's as long as there is a route that says so.
  routes_.network.routes.push_back({.destination = ip::Prefix::Host(A("10.0.1.10")), .ours = true});
  ASSERT_TRUE(traffic_->Detach("spks").ok());
  for (const bool still : {true, false}) {
    if (!still) routes_.network.routes.pop_back();
    clock_.Advance(Traffic::kLook);
    traffic_->Tick();
    EXPECT_EQ(fast_path_.ordinary(),
              still ? are({"10.0.1.7", "10.0.1.9", "10.0.1.10"}) : are({"10.0.1.7", "10.0.1.9"}));
  }
}

TEST_F(TrafficTest, AFastPodThatHasGoneIsFoldedOnceWhateverFails) {
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  const uint64_t id = fast_path_.Read().value().at(0).id;
  fast_path_.Count(id, {.received_packets = 2, .received_bytes = 70});
  ASSERT_TRUE(traffic_->Detach("spka").ok());
  const auto received = [&] { return Read().namespaces.at("web").at("cluster").received; };
  EXPECT_EQ(received(), 70U);
  // Another pod gets the same address: the first is folded now, and the fast path does not forget
  // it.
  fast_path_.KeepAll(true);
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.7")).ok());
  EXPECT_EQ(received(), 70U);
  // A new agent does not count it twice either.
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("b", 8, "10.0.1.7")}).ok());
  EXPECT_EQ(received(), 70U);
  fast_path_.KeepAll(false);
  EXPECT_EQ(received(), 70U);
  EXPECT_EQ(fast_path_.Read().value().size(), 1U);
}

// The fast path's ids begin anew where it is off and no pod is left to hold its programs.
TEST_F(TrafficTest, IdsThatBeginAnewAreNotTakenForPodsThatWereFolded) {
  Begin(/*fast=*/false);
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  fast_path_.KeepAll(true);  // Its id stays in the set.
  ASSERT_TRUE(traffic_->Detach("spka").ok());
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.7")).ok());
  ASSERT_TRUE(traffic_->Detach("spkb").ok());
  fast_path_ = FakeFastPath({"nic0"});
  Begin(/*fast=*/false);
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("c", 9, "10.0.1.9")).ok());
  Begin(/*fast=*/false);
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("c", 9, "10.0.1.9")}).ok());
  Read();
  ASSERT_EQ(fast_path_.Read().value().size(), 1U);
  EXPECT_FALSE(fast_path_.Read().value()[0].ended);
  // What it has counted is not lost either when it ends.
  fast_path_.Count(fast_path_.Read().value()[0].id, {.sent_packets = 1, .sent_bytes = 50});
  ASSERT_TRUE(traffic_->Detach("spkc").ok());
  EXPECT_EQ(Read().namespaces.at("web").at("cluster").sent, 50U);
}

TEST_F(TrafficTest, APodThatIsOlderThanTheFastPathStaysSlowWhereConnectionsAreTracked) {
  tracks_ = true;
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
  const auto fast = FastPodsNow();
  ASSERT_EQ(fast.size(), 1U);
  EXPECT_EQ(fast[0].host_index, 8U);
}

TEST_F(TrafficTest, WhatSomebodyDeletesIsPutBackAtOnceAndTheEpochSaysThatCountsAreGone) {
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  const absl::Time began = Read().epoch;
  clock_.Advance(absl::Seconds(1));
  for (int times = 1; times <= 2; ++times) {
    nft::Transaction flush;
    flush.Add(kSpokeTable, nft::DeleteTable{});
    flush.Add(kNamesTable, nft::DeleteTable{});
    ASSERT_TRUE(tables_.Apply(flush).ok());
    traffic_->OnTablesChanged();
    EXPECT_LE(traffic_->NextWake(), clock_.Now() + absl::Milliseconds(50));
    clock_.Advance(absl::Milliseconds(50));
    traffic_->Tick();
    EXPECT_EQ(Read().drift_repaired, static_cast<uint64_t>(times));
    EXPECT_GT(Read().epoch, began);
    EXPECT_EQ(Read().epoch, clock_.Now());
  }
  // The next agent knows it too.
  const absl::Time epoch = absl::FromUnixSeconds(absl::ToUnixSeconds(Read().epoch));
  Begin();
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  EXPECT_EQ(Read().epoch, epoch);
}

TEST_F(TrafficTest, AFilterOfOthersTurnsTheFastPathOffUntilItIsGone) {
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  EXPECT_EQ(FastPodsNow().size(), 1U);
  const auto look = [&] {
    clock_.Advance(Traffic::kLookForObstacles);
    traffic_->Tick();
  };
  obstacles_ = FastPathObstacles{.all = "the chain ip filter KUBE-ROUTER-FORWARD", .new_pods = {}};
  look();
  EXPECT_FALSE(Read().fast_path);
  EXPECT_THAT(Read().fast_path_state, HasSubstr("KUBE-ROUTER-FORWARD"));
  EXPECT_EQ(FastPodsNow().size(), 0U);
  // A reading that fails changes nothing.
  obstacles_ = absl::UnavailableError("the rules change all the time");
  look();
  EXPECT_FALSE(Read().fast_path);
  obstacles_ = FastPathObstacles();
  look();
  EXPECT_TRUE(Read().fast_path);
  EXPECT_EQ(FastPodsNow().size(), 1U);
}

TEST_F(TrafficTest, StrictTrackingLeavesPodsFastThatAreAndTakesNoOthers) {
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  obstacles_ = FastPathObstacles{.all = {}, .new_pods = "strict"};
  clock_.Advance(Traffic::kLookForObstacles);
  traffic_->Tick();
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
  ASSERT_EQ(FastPodsNow().size(), 1U);
  EXPECT_EQ(FastPodsNow()[0].host_index, 7U);
  EXPECT_TRUE(Read().fast_path);
  EXPECT_THAT(Read().fast_path_state, HasSubstr("strict"));
  // The next agent finds it so, too.
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7"), Pod("b", 8, "10.0.1.8")}).ok());
  EXPECT_EQ(FastPodsNow().size(), 1U);
}

TEST_F(TrafficTest, LinksAreGuardedWithoutTheFastPathToo) {
  Begin(/*fast=*/false);
  TrafficPod adopted = Pod("x", 9, "10.0.1.9");
  adopted.addresses.clear();
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7"), adopted}).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("b", 8, "10.0.1.8")).ok());
  EXPECT_EQ(FastPodsNow().size(), 0U);
  ASSERT_EQ(fast_path_.Read().value().size(), 2U);
  fast_path_.Refuse(/*vlan-tag=*/1, 3);
  EXPECT_EQ(Read().drops.at("vlan-tag").packets, 3U);
  ASSERT_TRUE(traffic_->Detach("spkb").ok());
  EXPECT_TRUE(fast_path_.Read().value().at(1).ended);
  EXPECT_EQ(log_.Count("fast_path_unavailable"), 0);
}

TEST_F(TrafficTest, TheGuardGoesByTheMacThatThePodHasNow) {
  Begin(/*fast=*/true);
  TrafficPod pod = Pod("a", 7, "10.0.1.7");
  pod.pod_mac = ip::MacAddress{{0x0E, 0, 0, 0, 0, 1}};
  ASSERT_TRUE(traffic_->Start(Example(), {pod}).ok());
  const auto mac = [&] { return fast_path_.Read().value().at(0).pod_mac; };
  EXPECT_EQ(mac(), pod.pod_mac);
  const ip::MacAddress other{{2, 0, 0, 0, 0, 0x77}};
  traffic_->OnPodMac("spka", other);
  traffic_->OnPodMac("spkunknown", other);
  EXPECT_EQ(mac(), other);
  // The next agent is told what it was at first: any will do until it has looked.
  Begin(/*fast=*/false);
  ASSERT_TRUE(traffic_->Start(Example(), {pod}).ok());
  EXPECT_EQ(mac(), std::nullopt);
  traffic_->OnPodMac("spka", other);
  EXPECT_EQ(mac(), other);
}

TEST_F(TrafficTest, ProgramsThatSomebodyTakesOffAreCountedAsDrift) {
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {}).ok());
  fast_path_.TakeOff(2);
  clock_.Advance(Traffic::kLook);
  traffic_->Tick();
  EXPECT_EQ(Read().drift_repaired, 1U);
  EXPECT_EQ(log_.Count("traffic_rules_changed"), 1);
}

TEST_F(TrafficTest, OnePodThatTheFastPathRefusesDoesNotKeepTheOthersFromIt) {
  Begin(/*fast=*/true);
  // Two pods claim one address: the second is refused.
  ASSERT_TRUE(traffic_->Start(Policy{}, {}).ok());
  ASSERT_TRUE(fast_path_.AddPod(Pod("x", 5, "10.0.1.7"), PodWay::kFast).ok());
  ASSERT_TRUE(traffic_->OnPolicy(Example()).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("a", 7, "10.0.1.7")).ok());
  ASSERT_TRUE(traffic_->Attach(Pod("c", 9, "10.0.1.9")).ok());
  EXPECT_TRUE(Read().fast_path);
  EXPECT_EQ(log_.Count("fast_path_refused"), 1);
  const auto fast = fast_path_.Read().value();
  ASSERT_EQ(fast.size(), 2U);
  EXPECT_EQ(fast[1].host_index, 9U);
}

TEST_F(TrafficTest, AKernelThatRefusesTheFastPathIsNamedAndServedWithoutIt) {
  fast_path_.Break(absl::UnimplementedError("no bpf here"));
  Begin(/*fast=*/true);
  ASSERT_TRUE(traffic_->Start(Example(), {Pod("a", 7, "10.0.1.7")}).ok());
  EXPECT_FALSE(Read().fast_path);
  EXPECT_THAT(Read().fast_path_state, testing::HasSubstr("no bpf here"));
  EXPECT_EQ(log_.Count("fast_path_unavailable"), 1);
}

}  // namespace
}  // namespace spoke::netagent
