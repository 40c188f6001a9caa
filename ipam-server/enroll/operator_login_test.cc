#include "ipam-server/enroll/operator_login.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

const OperatorRules kRules{.audience = "spoke-operators",
                           .viewers = {"group:system:serviceaccounts:web"},
                           .operators = {"user:system:serviceaccount:ops:night"},
                           .admins = {"group:spoke-admins"}};

TokenFacts Token(const std::string& user, std::vector<std::string> groups = {}) {
  return {.authenticated = true,
          .user = user,
          .audiences = {"spoke-operators"},
          .groups = std::move(groups)};
}

TEST(OperatorLogin, TheHighestRoleOfUserAndGroupsCounts) {
  EXPECT_EQ(*RoleFor(Token("system:serviceaccount:ops:night"), kRules), Role::kOperator);
  EXPECT_EQ(*RoleFor(Token("a", {"system:serviceaccounts:web"}), kRules), Role::kViewer);
  EXPECT_EQ(*RoleFor(Token("system:serviceaccount:ops:night", {"x", "spoke-admins"}), kRules),
            Role::kAdmin);
}

TEST(OperatorLogin, AGroupIsNoUserOfThatNameAndTheOtherWayRound) {
  EXPECT_EQ(RoleFor(Token("spoke-admins"), kRules).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(RoleFor(Token("b", {"system:serviceaccount:ops:night"}), kRules).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(OperatorLogin, EachWrongTokenHasAMessageOfItsOwn) {
  const auto refused = [](const TokenFacts& token, const OperatorRules& rules = kRules) {
    const auto role = RoleFor(token, rules);
    EXPECT_FALSE(role.ok());
    return std::string(role.status().message());
  };
  EXPECT_THAT(refused({.error = "token has expired"}), HasSubstr("no good: token has expired"));
  TokenFacts other = Token("system:serviceaccount:ops:night");
  other.audiences = {"https://kubernetes.default.svc"};
  EXPECT_THAT(refused(other), HasSubstr("not for the audience spoke-operators"));
  other.audiences = {};
  EXPECT_THAT(refused(other), HasSubstr("not for the audience spoke-operators"));
  EXPECT_THAT(refused(Token("mallory")), HasSubstr("mallory has no role here"));
  EXPECT_THAT(refused(Token(std::string(65, 'a'))), HasSubstr("shorter name"));
  EXPECT_THAT(refused(Token("a b")), HasSubstr("printable"));
  EXPECT_THAT(refused(Token("a"), OperatorRules()), HasSubstr("names nobody"));
}

TEST(OperatorLogin, WhatIsNoTokenIsNotAskedAbout) {
  EXPECT_TRUE(CheckOperatorToken("abc.def").ok());
  for (const std::string& token : {std::string(), std::string("a b"), std::string(20'000, 'a')}) {
    EXPECT_EQ(CheckOperatorToken(token).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(OperatorLogin, SubjectsAreUsersOrGroups) {
  for (const char* good : {"user:a", "group:system:masters"}) {
    EXPECT_TRUE(CheckOperatorSubject(good).ok()) << good;
  }
  for (const char* bad : {"", "a", "user:", "role:a", "group:a b"}) {
    EXPECT_FALSE(CheckOperatorSubject(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace spoke::ipam
