#include "netagent/sync/policy_keeper.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/journal/policy_codec.h"
#include "netagent/sync/fake_server_link.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PolicyUpdate TeamUpdate(uint64_t version, uint64_t base, const std::string& pod_namespace) {
  v1::PolicyBundle bundle;
  bundle.set_version(version);
  bundle.set_full(base == 0);
  bundle.set_base_version(base);
  v1::PolicyEntry& entry = *bundle.add_changed();
  entry.set_key("Team/ml");
  entry.mutable_team()->add_namespaces(pod_namespace);
  return FromWire(bundle);
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
    return std::get<Team>(it->second.value).namespaces.at(0);
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
  EXPECT_THAT(server_.policy_acks, ElementsAre(PolicyAck{3, ""}, PolicyAck{4, ""}));
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
  EXPECT_EQ(InForce(), "web");  // Meanwhile the last good one.
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

}  // namespace
}  // namespace spoke::netagent
