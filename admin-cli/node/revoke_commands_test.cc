// Tests of revoke, unrevoke and revoked, and of the authority's roots.
#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;

using RevokeTest = CommandTest;

TEST_F(RevokeTest, NamesOneThing) {
  Change(FillCluster);
  const Outcome node = Run("node revoke node1 --reason stolen");
  EXPECT_EQ(node.out, "node node1 is revoked; 1 sessions ended\n") << node.err;
  EXPECT_THAT(server_.last_request(), HasSubstr("value: \"node1\" reason: \"stolen\""));
  EXPECT_EQ(Run("node revoke --serial 7f --for 2d -o name").out, "serial/7f\n");
  EXPECT_THAT(server_.last_request(), HasSubstr("ttl_ms: 172800000"));
  EXPECT_EQ(Json("node revoke --machine vm-1")["sessions_ended"], 1);
  for (const char* line : {"node revoke", "node revoke node1 --serial 7f", "node unrevoke"}) {
    const Outcome none = Run(line);
    EXPECT_EQ(none.code, 2) << line;
    EXPECT_THAT(none.err, HasSubstr("name one thing")) << line;
  }
}

TEST_F(RevokeTest, ANodeThatNobodyKnowsIsRevokedAndSaidToBeUnknown) {
  Change(FillCluster);
  const Outcome wrong = Run("node revoke nodee1");
  EXPECT_EQ(wrong.code, 0);
  EXPECT_EQ(wrong.out, "node nodee1 is revoked; 0 sessions ended\n");
  EXPECT_THAT(wrong.err, HasSubstr("nodee1"));
  EXPECT_THAT(wrong.err, HasSubstr("spokectl node unrevoke nodee1"));
  EXPECT_EQ(Run("node revoke node1").err, "");
  EXPECT_EQ(Run("node revoke --machine nobody").err, "");
}

TEST_F(RevokeTest, WhatIsRevokedIsListedAndLifted) {
  ASSERT_EQ(Run("node revoke node1 --reason stolen").code, 0);
  EXPECT_THAT(Run("node revoked").out, HasSubstr("for ever"));
  EXPECT_THAT(Run("node revoked").out, HasSubstr("stolen"));
  EXPECT_EQ(Json("node revoked")[0]["kind"], "node");
  EXPECT_EQ(Run("node unrevoke node1").out, "node node1 is revoked no more\n");
  EXPECT_EQ(Run("node unrevoke node1").code, 4);
  EXPECT_EQ(Json("node revoked"), nlohmann::json::array());
}

TEST_F(RevokeTest, TheAuthoritysRootsAreShown) {
  Change([](FakeState& state) {
    v1::RootInfo& root = *state.roots.add_roots();
    root.set_name("spoke authority 1");
    root.set_state("signing");
    root.set_not_after_unix_ms(1'800'000'000'000);
  });
  EXPECT_THAT(Run("authority list").out, HasSubstr("spoke authority 1  signing"));
  EXPECT_EQ(Json("authority rotate")[1]["state"], "next");
  Refuse("RotateAuthority", absl::FailedPreconditionError("a rotation is under way"));
  EXPECT_EQ(Run("authority rotate").code, 5);
}

}  // namespace
}  // namespace spoke::ctl
