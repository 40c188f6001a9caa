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
#include "netagent/kernel/conntrack_table.h"

namespace spoke::netagent {

class ConntrackWorld {
 public:
  // Source and destination of the first packet, then of the answers.
  using Connection = std::array<ip::Address, 4>;

  virtual ~ConntrackWorld() = default;
  virtual ConntrackTable& table() = 0;
  // Each is a connection of its own, whether the ends are those of another or not; `zone` 0: none.
  virtual void Track(const Connection& connection, uint16_t zone = 0) = 0;
  // In any order.
  virtual std::vector<Connection> Tracked() = 0;
};

struct ConntrackWorldFactory {
  std::string name;
  // Null where this machine cannot have such a world (no right to make namespaces).
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

  std::unique_ptr<ConntrackWorld> world_;
};

TEST_P(ConntrackTableContract, AnEmptyTableIsDoneAtOnce) {
  EXPECT_EQ(Delete({kPod4, kPod6}), Outcome());
  EXPECT_EQ(Delete({}), Outcome());
}

TEST_P(ConntrackTableContract, DeletesWhatHasTheAddressAtAnyEndAndNothingElse) {
  const std::vector<Connection> of_the_pod = {
      Plain(kPod4, kFar4),                  // It began it,
      Plain(kFar4, kPod4),                  // was reached,
      {kPod4, kFar4, kFar4, kNode4},        // was masqueraded,
      {kFar4, kService4, kPod4, kFar4},     // is what a Service was translated to,
      {kOther4, kService4, kPod4, kNode4},  // both,
      {kFar6, kNode6, kPod6, kFar6},        // and the same of IPv6.
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
  // And a new connection is found again.
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
  world_->Track(Plain(kFar4, kPod4));                   // It was reached,
  world_->Track({kFar4, kService4, kPod4, kFar4});      // also by way of a Service.
  world_->Track({kOther4, kService4, kPod4, kOther4});  // Who goes to one has its own address.
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

}  // namespace spoke::netagent
