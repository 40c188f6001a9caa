#include "netagent/policy/policy_keeper.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/wire.h"
#include "netagent/policy/policy_file.h"
#include "netagent/session/testing/fake_server_link.h"
#include "proto/spoke/v1/policy.pb.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

node_api::PolicyUpdate TeamUpdate(uint64_t version, uint64_t base,
                                  const std::string& pod_namespace) {
  v1::PolicyBundle bundle;
  bundle.set_version(version);
  bundle.set_full(base == 0);
  bundle.set_base_version(base);
  v1::PolicyEntry& entry = *bundle.add_changed();
  entry.set_key("Team/ml");
  entry.mutable_team()->add_namespaces(pod_namespace);
  return {.bundle = std::make_shared<const v1::PolicyBundle>(bundle)};
}

class PolicyKeeperTest : public testing::Test {
 protected:
  PolicyKeeperTest() { Restart(); }
  void Restart() {
    keeper_.emplace(path_, server_, log_);
    keeper_->Start();
  }
  std::string InForce() const {
    const auto it = keeper_->policy().entries.find("Team/ml");
    if (it == keeper_->policy().entries.end()) return "";
    return std::get<policy::Team>(it->second.value).namespaces.at(0);
  }

  const testing_support::TempDir dir_;
  std::string path_ = dir_.File("policy");
  FakeServerLink server_;
  testing_support::RecordingLog log_;
  std::optional<PolicyKeeper> keeper_;
};

TEST_F(PolicyKeeperTest, WhatWasAcknowledgedIsThereAfterARestart) {
  EXPECT_EQ(keeper_->VersionForHello(), 0U);
  keeper_->OnPolicy(TeamUpdate(3, 0, "web"));
  keeper_->OnPolicy(TeamUpdate(4, 3, "batch"));
  EXPECT_THAT(server_.policy_acks,
              ElementsAre(node_api::PolicyAck{3, ""}, node_api::PolicyAck{4, ""}));
  Restart();
  EXPECT_EQ(keeper_->VersionForHello(), 4U);
  EXPECT_EQ(InForce(), "batch");
}

TEST_F(PolicyKeeperTest, ABadPolicyIsAnsweredAndTheLastGoodOneStaysAcrossRestarts) {
  keeper_->OnPolicy(TeamUpdate(3, 0, "web"));
  keeper_->OnPolicy(TeamUpdate(4, 3, "Not A Namespace"));
  EXPECT_EQ(server_.policy_acks.back().version, 4U);
  EXPECT_THAT(server_.policy_acks.back().error, HasSubstr("Team/ml"));
  EXPECT_THAT(server_.begun_anew, IsEmpty());
  EXPECT_EQ(InForce(), "web");
  Restart();
  EXPECT_EQ(InForce(), "web");
  EXPECT_EQ(keeper_->VersionForHello(), 3U);
}

TEST_F(PolicyKeeperTest, APolicyThatCannotBeWrittenIsNotInForce) {
  keeper_->OnPolicy(TeamUpdate(3, 0, "web"));
  // Neither a file nor anything else can take the place of a directory that is not empty.
  std::filesystem::create_directories(path_ + ".tmp/x");
  keeper_->OnPolicy(TeamUpdate(4, 3, "batch"));
  EXPECT_THAT(server_.policy_acks.back().error, HasSubstr("keep the policy"));
  EXPECT_EQ(InForce(), "web");
  EXPECT_EQ(keeper_->VersionForHello(), 3U);
  Restart();
  EXPECT_EQ(InForce(), "web");
}

TEST_F(PolicyKeeperTest, AChangeToAnotherVersionAsksForAllOfItAnew) {
  keeper_->OnPolicy(TeamUpdate(3, 0, "web"));
  keeper_->OnPolicy(TeamUpdate(9, 8, "batch"));
  EXPECT_THAT(server_.policy_acks.back().error, HasSubstr("relative to 8"));
  EXPECT_EQ(server_.begun_anew.size(), 1U);
  EXPECT_EQ(keeper_->VersionForHello(), 0U);
  EXPECT_EQ(InForce(), "web");  // The last good one is in force meanwhile.
  keeper_->OnPolicy(TeamUpdate(9, 0, "batch"));
  EXPECT_EQ(keeper_->VersionForHello(), 9U);
  EXPECT_EQ(InForce(), "batch");
}

TEST_F(PolicyKeeperTest, ADamagedFileIsSaidAndIsNoPolicy) {
  keeper_->OnPolicy(TeamUpdate(3, 0, "web"));
  std::ofstream(path_, std::ios::app) << "x";
  Restart();
  EXPECT_EQ(log_.Count("policy_unreadable"), 1);
  EXPECT_EQ(keeper_->VersionForHello(), 0U);
  EXPECT_EQ(InForce(), "");
  keeper_->OnPolicy(TeamUpdate(3, 0, "web"));
  Restart();
  EXPECT_EQ(log_.Count("policy_unreadable"), 1);
  EXPECT_EQ(InForce(), "web");
}

// Makes an update that may end five in a hundred connections.
node_api::PolicyUpdate Limited(uint64_t version, const std::string& pod_namespace) {
  node_api::PolicyUpdate update = TeamUpdate(version, 0, pod_namespace);
  update.max_cut_permille = 50;
  return update;
}

class CountedPolicyTest : public PolicyKeeperTest {
 protected:
  CountedPolicyTest() {
    keeper_.emplace(
        path_, server_, log_,
        PolicyKeeper::Callbacks{.put_in_force =
                                    [this](const Policy& policy) {
                                      in_force_.push_back(policy.version);
                                      return absl::OkStatus();
                                    },
                                .count_cuts =
                                    [this](const Policy&, PolicyKeeper::CountDone done) {
                                      asked_.push_back(std::move(done));
                                    }});
    keeper_->Start();
  }

  std::vector<uint64_t> in_force_;
  std::vector<PolicyKeeper::CountDone> asked_;
};

TEST_F(CountedPolicyTest, IsNotInForceBeforeItsConnectionsAreCounted) {
  keeper_->OnPolicy(Limited(3, "web"));
  EXPECT_THAT(in_force_, IsEmpty());
  EXPECT_THAT(server_.policy_acks, IsEmpty());
  const CutsByRule count{.connections = 400, .peer_spoke = 20};
  asked_.at(0)(count);
  EXPECT_THAT(in_force_, ElementsAre(3));
  EXPECT_THAT(server_.policy_acks,
              ElementsAre(node_api::PolicyAck{.version = 3, .error = "", .cut = SaidOf(count)}));
}

TEST_F(CountedPolicyTest, ThatEndsNoneIsPutInForceAndSaysThatNobodyHasCounted) {
  keeper_->OnPolicy(Limited(3, "web"));
  asked_.at(0)(std::nullopt);
  EXPECT_THAT(in_force_, ElementsAre(3));
  EXPECT_THAT(server_.policy_acks, ElementsAre(node_api::PolicyAck{.version = 3, .error = ""}));
}

TEST_F(CountedPolicyTest, ThatEndsMoreThanItMayIsRefusedUntilItComesWithoutALimit) {
  keeper_->OnPolicy(TeamUpdate(3, 0, "web"));
  asked_.at(0)(CutsByRule());
  keeper_->OnPolicy(Limited(4, "batch"));
  const CutsByRule count{.connections = 400, .peer_spoke = 20, .egress = 1};
  asked_.at(1)(count);
  EXPECT_THAT(in_force_, ElementsAre(3));
  EXPECT_EQ(InForce(), "web");
  const node_api::PolicyAck& held = server_.policy_acks.back();
  EXPECT_TRUE(held.held);
  EXPECT_EQ(held.cut, SaidOf(count));
  EXPECT_THAT(held.error, HasSubstr("would end 21 of the node's 400 connections, more than 5 %"));
  EXPECT_EQ(keeper_->VersionForHello(), 3U);

  keeper_->OnPolicy(TeamUpdate(4, 3, "batch"));
  asked_.at(2)(count);
  EXPECT_THAT(in_force_, ElementsAre(3, 4));
  EXPECT_EQ(server_.policy_acks.back(),
            (node_api::PolicyAck{.version = 4, .error = "", .cut = SaidOf(count)}));
}

TEST_F(CountedPolicyTest, IsForgottenWhenAnotherComesMeanwhile) {
  keeper_->OnPolicy(Limited(3, "web"));
  keeper_->OnPolicy(Limited(4, "batch"));
  asked_.at(0)(CutsByRule());
  EXPECT_THAT(in_force_, IsEmpty());
  asked_.at(1)(CutsByRule());
  EXPECT_THAT(in_force_, ElementsAre(4));
  EXPECT_EQ(server_.policy_acks.size(), 1U);
}

TEST_F(CountedPolicyTest, IsHeldWhenNobodyCouldCountButNotWhereNobodyCan) {
  keeper_->OnPolicy(Limited(3, "web"));
  asked_.at(0)(absl::UnavailableError("busy"));
  EXPECT_TRUE(server_.policy_acks.back().held);
  EXPECT_THAT(server_.policy_acks.back().error, HasSubstr("busy"));
  EXPECT_THAT(in_force_, IsEmpty());
  keeper_->OnPolicy(TeamUpdate(3, 0, "web"));
  asked_.at(1)(absl::UnavailableError("busy"));
  EXPECT_THAT(in_force_, ElementsAre(3)) << "without a limit it does not matter";
  keeper_->OnPolicy(Limited(4, "batch"));
  asked_.at(2)(absl::UnimplementedError("no ctnetlink"));
  EXPECT_THAT(in_force_, ElementsAre(3, 4));
  EXPECT_EQ(server_.policy_acks.back(), (node_api::PolicyAck{.version = 4, .error = ""}));
}

}  // namespace
}  // namespace spoke::netagent
