#include "ipam-server/operators/role.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/schema.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

Operator Of(Role role) { return {.name = "alice", .role = role, .from = "10.0.0.7"}; }

// A call that is new and in no row would be an admin's alone, and nobody would have decided so.
TEST(Roles, EveryCallHasARow) {
  const auto& service = testing_support::AdminServiceDescriptor();
  ASSERT_GT(service.method_count(), 20);
  for (int i = 0; i < service.method_count(); ++i) {
    EXPECT_TRUE(LeastRole(service.method(i)->name()).has_value()) << service.method(i)->name();
  }
  EXPECT_EQ(LeastRole("NoSuchCall"), std::nullopt);
}

TEST(Roles, WhatIsNotThereIsForAdminsOnly) {
  EXPECT_TRUE(Authorize(Of(Role::kAdmin), {.method = "NoSuchCall"}).ok());
  EXPECT_FALSE(Authorize(Of(Role::kOperator), {.method = "NoSuchCall"}).ok());
}

TEST(Roles, EachMayDoWhatTheOneBeforeMay) {
  struct Row {
    const char* method;
    bool viewer;
    bool operators;
  };
  for (const Row& row : {Row{"GetStatus", true, true}, Row{"ListNodes", true, true},
                         Row{"SetNodeMode", false, true}, Row{"ReleaseAddress", false, true},
                         Row{"Apply", false, false}, Row{"Backup", false, false}}) {
    EXPECT_EQ(Authorize(Of(Role::kViewer), {.method = row.method}).ok(), row.viewer) << row.method;
    EXPECT_EQ(Authorize(Of(Role::kOperator), {.method = row.method}).ok(), row.operators)
        << row.method;
    EXPECT_TRUE(Authorize(Of(Role::kAdmin), {.method = row.method}).ok()) << row.method;
  }
}

TEST(Roles, ARefusalSaysWhoAndWhatWouldDo) {
  const absl::Status refused = Authorize(Of(Role::kViewer), {.method = "SetNodeMode"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("alice is viewer here, and SetNodeMode takes the role operator"));
}

TEST(Roles, WhoeverMayLookMayTryAndForceTakesAnAdmin) {
  EXPECT_TRUE(Authorize(Of(Role::kViewer), {.method = "Apply", .dry_run = true}).ok());
  EXPECT_FALSE(Authorize(Of(Role::kOperator), {.method = "ReleaseAddress", .force = true}).ok());
  EXPECT_TRUE(Authorize(Of(Role::kAdmin), {.method = "ReleaseAddress", .force = true}).ok());
}

TEST(Roles, TheHighestOrganizationCounts) {
  EXPECT_EQ(RoleOf({"spoke:viewers", "spoke:admins"}), Role::kAdmin);
  EXPECT_EQ(RoleOf({"spoke:operators"}), Role::kOperator);
  EXPECT_EQ(RoleOf({"spoke:viewers"}), Role::kViewer);
  EXPECT_EQ(RoleOf({"admins", "spoke:admin", "SPOKE:ADMINS"}), std::nullopt);
  EXPECT_EQ(RoleOf({}), std::nullopt);
}

TEST(Roles, ACertificateOfOperatorsIsNoAgents) {
  EXPECT_TRUE(IsForOperators({"other", "spoke:something-new"}));
  EXPECT_FALSE(IsForOperators({"spokes"}));
  EXPECT_FALSE(IsForOperators({}));
}

}  // namespace
}  // namespace spoke::ipam
