// The promises of ConntrackTable, as tests. Each implementation's test file instantiates them with
// a factory for a world of its own: a fake, or a fresh namespace of the real kernel.
#pragma once

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/connections/conntrack_table.h"

namespace spoke::netagent {

class ConntrackWorld {
 public:
  // Source and destination of the first packet, then of the answers.
  using Connection = std::array<ip::Address, 4>;

  virtual ~ConntrackWorld() = default;
  virtual ConntrackTable& table() = 0;
  // Adds a connection of its own, whether the ends are another's or not; `zone` 0: none.
  virtual void Track(const Connection& connection, uint16_t zone = 0) = 0;
  // The connections, in any order.
  virtual std::vector<Connection> Tracked() = 0;
  // The tracked connections that bear claims::kFlowCut.
  virtual std::vector<Connection> TrackedAsCut() = 0;
};

struct ConntrackWorldFactory {
  std::string name;
  // Makes a world; null where this machine cannot have one (no right to make namespaces).
  std::function<std::unique_ptr<ConntrackWorld>()> make;
};

class ConntrackTableContract : public testing::TestWithParam<ConntrackWorldFactory> {
 protected:
  using Connection = ConntrackWorld::Connection;
  using Outcome = ConntrackTable::Outcome;

  static constexpr ip::Address kPod4 = ip::Address::V4(0x0A010005);
  static constexpr ip::Address kOther4 = ip::Address::V4(0x0A010006);
  static constexpr ip::Address kNode4 = ip::Address::V4(0x0A000004);
  static constexpr ip::Address kFar4 = ip::Address::V4(0xC0000201);
  static constexpr ip::Address kService4 = ip::Address::V4(0x0A600001);
  static constexpr ip::Address kPod6 = ip::Address::V6(0xFD00'0000'0000'0000, 5);
  static constexpr ip::Address kOther6 = ip::Address::V6(0xFD00'0000'0000'0000, 6);
  static constexpr ip::Address kNode6 = ip::Address::V6(0xFD00'0000'0000'0000, 4);
  static constexpr ip::Address kFar6 = ip::Address::V6(0x2001'0DB8'0000'0000, 1);

  void SetUp() override {
    world_ = GetParam().make();
    if (world_ != nullptr) return;
    // A skip must not pass for a success.
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
    GTEST_SKIP() << "cannot make network namespaces";
  }

  static Connection Plain(const ip::Address& source, const ip::Address& destination) {
    return {source, destination, destination, source};
  }
  Outcome Delete(const AddressSet& addresses) {
    return world_->table().DeleteConnectionsOf(addresses);
  }

  // The rules of a policy that keeps 198.18.0.0/16 and fd18::/16 apart, and does not let `sinners`
  // reach 192.0.2.0/24 any more. kPod4 and kPod6 are one of these; kOther4 and kOther6 are not.
  static CutRules Cuts(const std::string& sinners = "sinners") {
    Policy policy{.version = 1};
    policy.entries["ClusterNetwork/main"] = {
        .key = "ClusterNetwork/main",
        .bytes = "",
        .value =
            policy::ClusterNetwork{.cluster = policy::Blocks({"10.0.0.0/8"}),
                                   .hub = {},
                                   .peer_spoke = policy::Blocks({"198.18.0.0/16", "fd18::/16"}),
                                   .platform = {},
                                   .storage = {}}};
    policy.entries["EgressPolicy/closed"] = {
        .key = "EgressPolicy/closed",
        .bytes = "",
        .value = policy::EgressPolicy{.namespaces = {sinners},
                                      .teams = {},
                                      .destination_cidrs = policy::Blocks({"192.0.2.0/24"}),
                                      .destination_groups = {},
                                      .excluded_cidrs = {},
                                      .mode = policy::EgressMode::kDrop,
                                      .established = policy::Established::kCut}};
    const ClassMap classes = ClassMap::Compile(policy, {}).value();
    const EgressRules egress = EgressRules::Compile(policy, classes, {}, {}).value();
    const auto pod = [](const char* link, const char* name, std::vector<ip::Address> addresses) {
      return TrafficPod{.host_link = link,
                        .host_index = 1,
                        .addresses = std::move(addresses),
                        .pod_namespace = name,
                        .pod_name = link,
                        .pod_uid = link};
    };
    return {policy,
            classes,
            egress,
            {{"spk1", pod("spk1", "sinners", {kPod4, kPod6})},
             {"spk2", pod("spk2", "others", {kOther4, kOther6})}}};
  }

  static constexpr ip::Address kPeer4 = ip::Address::V4(0xC6120007);
  static constexpr ip::Address kPeer6 = ip::Address::V6(0xFD18'0000'0000'0000, 7);

  std::unique_ptr<ConntrackWorld> world_;
};

TEST_P(ConntrackTableContract, AnEmptyTableIsDoneAtOnce) {
  EXPECT_EQ(Delete({kPod4, kPod6}), Outcome());
  EXPECT_EQ(Delete({}), Outcome());
}

TEST_P(ConntrackTableContract, DeletesWhatHasTheAddressAtAnyEndAndNothingElse) {
  const std::vector<Connection> of_the_pod = {
      Plain(kPod4, kFar4),                  // It began the connection.
      Plain(kFar4, kPod4),                  // It was reached.
      {kPod4, kFar4, kFar4, kNode4},        // It was masqueraded.
      {kFar4, kService4, kPod4, kFar4},     // A Service was translated to it.
      {kOther4, kService4, kPod4, kNode4},  // It was both.
      {kFar6, kNode6, kPod6, kFar6},        // IPv6 has the same.
      Plain(kPod6, kFar6),
  };
  const std::vector<Connection> of_others = {Plain(kOther4, kFar4),
                                             {kOther4, kFar4, kFar4, kNode4},
                                             Plain(kOther6, kFar6),
                                             Plain(kNode4, kFar4),
                                             {kFar4, kService4, kOther4, kFar4}};
  for (const Connection& connection : of_the_pod) world_->Track(connection);
  for (const Connection& connection : of_others) world_->Track(connection);
  const Outcome outcome = Delete({kPod4, kPod6});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.seen, of_the_pod.size() + of_others.size());
  EXPECT_EQ(outcome.deleted, of_the_pod.size());
  EXPECT_THAT(outcome.left, testing::IsEmpty());
  EXPECT_THAT(world_->Tracked(), testing::UnorderedElementsAreArray(of_others));
}

TEST_P(ConntrackTableContract, ASecondTimeThereIsNothingToDo) {
  world_->Track(Plain(kPod4, kFar4));
  EXPECT_EQ(Delete({kPod4}).deleted, 1U);
  EXPECT_EQ(Delete({kPod4}), Outcome());
  // A new connection is found again.
  world_->Track(Plain(kPod4, kFar4));
  EXPECT_EQ(Delete({kPod4}).deleted, 1U);
}

TEST_P(ConntrackTableContract, DeletesInEveryZone) {
  world_->Track(Plain(kPod4, kFar4));
  world_->Track(Plain(kPod4, kFar4), 7);
  world_->Track({kPod6, kFar6, kFar6, kNode6}, 65'535);
  world_->Track(Plain(kOther4, kFar4), 7);
  EXPECT_EQ(Delete({kPod4, kPod6}).deleted, 3U);
  EXPECT_THAT(world_->Tracked(), testing::ElementsAre(Plain(kOther4, kFar4)));
}

TEST_P(ConntrackTableContract, NoAddressesDeleteNothing) {
  world_->Track(Plain(kPod4, kFar4));
  EXPECT_EQ(Delete({}), (Outcome{.seen = 1}));
  EXPECT_EQ(world_->Tracked().size(), 1U);
}

TEST_P(ConntrackTableContract, DeletesMoreThanFitsIntoOneRequest) {
  constexpr size_t kMany = 700;
  for (size_t i = 0; i < kMany; ++i) world_->Track(Plain(kPod4, kFar4));
  world_->Track(Plain(kOther4, kFar4));
  const Outcome outcome = Delete({kPod4});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.deleted, kMany);
  EXPECT_EQ(world_->Tracked().size(), 1U);
}

TEST_P(ConntrackTableContract, CountsForEachPodWhatItHasBegun) {
  ConnectionTally tally({{.link = 7, .addresses = {kPod4, kPod6}, .connections = 99},
                         {.link = 8, .addresses = {kOther4, kOther6}}});
  EXPECT_EQ(world_->table().Count(tally), absl::OkStatus());
  EXPECT_EQ(tally.seen(), 0U);
  EXPECT_EQ(tally.pods().front().connections, 0U);
  for (int i = 0; i < 3; ++i) world_->Track({kPod4, kFar4, kFar4, kNode4});
  world_->Track({kPod6, kFar6, kFar6, kNode6}, 7);
  world_->Track(Plain(kPod4, kFar4));
  world_->Track(Plain(kFar4, kPod4));                   // It was reached.
  world_->Track({kFar4, kService4, kPod4, kFar4});      // It was reached by way of a Service too.
  world_->Track({kOther4, kService4, kPod4, kOther4});  // A Service's client has its own address.
  world_->Track(Plain(kNode4, kFar4));
  EXPECT_EQ(world_->table().Count(tally), absl::OkStatus());
  EXPECT_EQ(tally.seen(), 9U);
  const PodConnections& pod = tally.pods()[0];
  EXPECT_EQ(pod.connections, 5U);
  EXPECT_EQ(pod.translated_ports, 4U);
  constexpr uint8_t kUdp = 17;
  EXPECT_THAT(pod.targets,
              testing::UnorderedElementsAre(PodConnections::AtTarget{{kFar4, kUdp, 0}, 3},
                                            PodConnections::AtTarget{{kFar6, kUdp, 0}, 1}));
  EXPECT_EQ(tally.pods()[1].connections, 1U);
  EXPECT_EQ(tally.pods()[1].translated_ports, 0U);
}

TEST_P(ConntrackTableContract, CutsWhatThePolicyDoesNotAdmitAndNothingElse) {
  const std::vector<Connection> of_peers = {Plain(kOther4, kPeer4),
                                            Plain(kPeer4, kOther4),
                                            {kPod4, kService4, kPeer4, kPod4},
                                            {kPeer4, kNode4, kOther4, kPeer4},
                                            {kOther6, kPeer6, kPeer6, kNode6}};
  const std::vector<Connection> dropped = {Plain(kPod4, kFar4), {kPod4, kFar4, kFar4, kNode4}};
  const std::vector<Connection> others = {Plain(kFar4, kPod4),  // The policy is about egress.
                                          Plain(kOther4, kFar4), Plain(kPod4, kOther4),
                                          Plain(kPod6, kFar6), Plain(kNode4, kFar4)};
  std::vector<Connection> stay = others;
  stay.insert(stay.end(), dropped.begin(), dropped.end());
  for (const auto* const list : {&of_peers, &dropped, &others}) {
    for (const Connection& connection : *list) world_->Track(connection);
  }
  const CutsByRule found{.connections = 11, .peer_spoke = 5, .egress = 2};
  ConntrackTable::CutOutcome counted = world_->table().Cut(Cuts(), ConntrackTable::Act::kCount);
  // Some of the seven are named, in the table's order.
  EXPECT_EQ(counted.found.flows.size(), CutsByRule::kMaxFlows);
  counted.found.flows.clear();
  EXPECT_EQ(counted, (ConntrackTable::CutOutcome{.found = found}));
  EXPECT_EQ(world_->Tracked().size(), 12U) << "counting cuts nothing";

  ConntrackTable::CutOutcome cut = world_->table().Cut(Cuts(), ConntrackTable::Act::kCut);
  cut.found.flows.clear();
  EXPECT_EQ(cut, (ConntrackTable::CutOutcome{.found = found, .ended = 5, .marked = 2}));
  EXPECT_THAT(world_->Tracked(), testing::UnorderedElementsAreArray(stay));
  EXPECT_THAT(world_->TrackedAsCut(), testing::UnorderedElementsAreArray(dropped));

  // There is nothing to do a second time, and what is cut is no connection any more.
  EXPECT_EQ(world_->table().Cut(Cuts(), ConntrackTable::Act::kCut),
            (ConntrackTable::CutOutcome{.found = {.connections = 4}}));
}

TEST_P(ConntrackTableContract, WhatNoPolicyCutsAnyMoreIsReleased) {
  world_->Track(Plain(kPod4, kFar4));
  world_->Track(Plain(kOther4, kFar4));
  EXPECT_EQ(world_->table().Cut(Cuts(), ConntrackTable::Act::kCut).marked, 1U);
  EXPECT_EQ(world_->table().Cut(Cuts("nobody"), ConntrackTable::Act::kCut),
            (ConntrackTable::CutOutcome{.found = {.connections = 1}, .released = 1}));
  EXPECT_THAT(world_->Tracked(), testing::ElementsAre(Plain(kOther4, kFar4)));
  world_->Track(Plain(kPod4, kFar4));
  EXPECT_EQ(world_->table().Cut(Cuts(), ConntrackTable::Act::kCut).marked, 1U);
  EXPECT_EQ(world_->table().Cut(CutRules(), ConntrackTable::Act::kCut).released, 1U);
}

TEST_P(ConntrackTableContract, CutsInEveryZoneAndMoreThanFitsIntoOneRequest) {
  constexpr size_t kMany = 700;
  for (size_t i = 0; i < kMany; ++i) world_->Track(Plain(kOther4, kPeer4));
  world_->Track(Plain(kPod4, kFar4), 7);
  const auto outcome = world_->table().Cut(Cuts(), ConntrackTable::Act::kCut);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.ended, kMany);
  EXPECT_EQ(outcome.marked, 1U);
  EXPECT_THAT(world_->TrackedAsCut(), testing::ElementsAre(Plain(kPod4, kFar4)));
}

}  // namespace spoke::netagent
