// What every TokenReviewer promises, as tests. Tests only.
//
//   INSTANTIATE_TEST_SUITE_P(Fake, TokenReviewerContract, testing::Values([] { ... }));
#pragma once

#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/enroll/testing/fake_token_reviewer.h"

namespace spoke::ipam {

// A reviewer, and what it knows.
class ReviewedCluster {
 public:
  virtual ~ReviewedCluster() = default;
  virtual TokenReviewer& reviewer() = 0;
  virtual FakeTokenReviewer& cluster() = 0;
  // The next calls cannot be answered; or we may not ask.
  virtual void GoDown() = 0;
  virtual void Forbid() = 0;
};

using MakeReviewedCluster = std::function<std::unique_ptr<ReviewedCluster>()>;

class TokenReviewerContract : public testing::TestWithParam<MakeReviewedCluster> {
 protected:
  const std::unique_ptr<ReviewedCluster> world_ = GetParam()();
  TokenReviewer& reviewer_ = world_->reviewer();
  const TokenFacts facts_{.authenticated = true,
                          .user = "system:serviceaccount:spoke-system:spoke-netagent",
                          .audiences = {"spoke-ipam-server"},
                          .pod_name = "agent-1",
                          .pod_uid = "uid-1"};
  const PodFacts pod_{.k8s_namespace = "spoke-system",
                      .name = "agent-1",
                      .uid = "uid-1",
                      .node_name = "node-1",
                      .service_account = "spoke-netagent"};
};

TEST_P(TokenReviewerContract, TellsWhoseATokenIs) {
  world_->cluster().AddToken("good", facts_);
  TokenFacts unbound = facts_;
  unbound.pod_name = unbound.pod_uid = "";
  world_->cluster().AddToken("unbound", unbound);
  const auto told = reviewer_.Review("good", "spoke-ipam-server");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(*told, facts_);
  EXPECT_EQ(reviewer_.Review("unbound", "spoke-ipam-server").value(), unbound);
}

TEST_P(TokenReviewerContract, SaysThatATokenIsNoGood) {
  world_->cluster().AddToken("old", {.error = "token has expired"});
  world_->cluster().AddToken("other", facts_);
  const auto unknown = reviewer_.Review("nobody's", "spoke-ipam-server");
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  EXPECT_FALSE(unknown->authenticated);
  EXPECT_NE(unknown->error, "");
  EXPECT_EQ(reviewer_.Review("old", "spoke-ipam-server")->error, "token has expired");
  EXPECT_FALSE(reviewer_.Review("other", "another audience")->authenticated);
}

TEST_P(TokenReviewerContract, TellsWhatAPodIs) {
  world_->cluster().AddPod(pod_);
  PodFacts pending = pod_;
  pending.name = "agent-2";
  pending.node_name = "";
  world_->cluster().AddPod(pending);
  const auto told = reviewer_.ReadPod("spoke-system", "agent-1");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(*told, pod_);
  EXPECT_EQ(reviewer_.ReadPod("spoke-system", "agent-2").value(), pending);
  EXPECT_TRUE(absl::IsNotFound(reviewer_.ReadPod("spoke-system", "agent-3").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(reviewer_.ReadPod("a/../b", "agent-1").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(reviewer_.ReadPod("spoke-system", "?x=y").status()));
}

TEST_P(TokenReviewerContract, TellsWhatANodeIs) {
  const NodeFacts node{.name = "node-1",
                       .provider_id = "azure:///subscriptions/s/virtualMachines/1",
                       .labels = {{"topology.kubernetes.io/zone", "eastus-1"}, {"empty", ""}}};
  world_->cluster().AddNode(node);
  world_->cluster().AddNode({.name = "node-2"});
  const auto told = reviewer_.ReadNode("node-1");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(*told, node);
  EXPECT_EQ(reviewer_.ReadNode("node-2").value(), NodeFacts{.name = "node-2"});
  EXPECT_TRUE(absl::IsNotFound(reviewer_.ReadNode("node-3").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(reviewer_.ReadNode("a/../b").status()));
}

TEST_P(TokenReviewerContract, SaysWhetherItIsWorthAskingAgain) {
  world_->GoDown();
  EXPECT_TRUE(absl::IsUnavailable(reviewer_.Review("good", "a").status()));
  EXPECT_TRUE(absl::IsUnavailable(reviewer_.ReadPod("spoke-system", "agent-1").status()));
  EXPECT_TRUE(absl::IsUnavailable(reviewer_.ReadNode("node-1").status()));
  world_->Forbid();
  EXPECT_TRUE(absl::IsFailedPrecondition(reviewer_.ReadNode("node-1").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(reviewer_.Review("good", "a").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(reviewer_.ReadPod("spoke-system", "agent-1").status()));
}

}  // namespace spoke::ipam
