#include "netagent/enroll/trusted_roots.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

std::string Root(std::string_view name) {
  return "-----BEGIN CERTIFICATE-----\n" + std::string(name) + "\n-----END CERTIFICATE-----\n";
}

TEST(TrustedRoots, AreTheConfiguredOnesAndWhatTheServerHandsOut) {
  const std::string a = Root("a");
  const std::string ab = Root("a") + Root("b");
  EXPECT_EQ(TrustedRoots(a, ""), a);
  EXPECT_EQ(TrustedRoots(a, HandedText(a, a, ab)), ab);
  // The server goes on to the next root; nobody changes the configured file.
  const std::string b = HandedText(a, ab, Root("b"));
  EXPECT_EQ(TrustedRoots(a, b), ab);
  EXPECT_EQ(TrustedRoots(a, HandedText(a, ab, Root("b") + Root("c"))), ab + Root("c"));
  // The configured file follows, as it does in Kubernetes.
  EXPECT_EQ(TrustedRoots(Root("b"), b), Root("b"));
  EXPECT_EQ(TrustedRoots(ab, HandedText(a, a, ab)), ab);
}

TEST(TrustedRoots, AnotherAuthorityReplacesAllOfThem) {
  const std::string handed = HandedText(Root("a"), Root("a"), Root("a") + Root("b"));
  EXPECT_EQ(TrustedRoots(Root("x"), handed), Root("x"));
}

TEST(TrustedRoots, WhatHasNothingInCommonIsNotHandedOutByOneWeTrust) {
  EXPECT_EQ(HandedText(Root("a"), Root("a"), Root("x")), "");
  EXPECT_EQ(HandedText(Root("a"), Root("a"), ""), "");
}

TEST(TrustedRoots, TextAroundCertificatesIsLeftOut) {
  EXPECT_EQ(TrustedRoots("a comment\n" + Root("a") + "-----BEGIN CERTIFICATE-----\nhalf", "?"),
            Root("a"));
  EXPECT_EQ(TrustedRoots("", "?"), "");
}

}  // namespace
}  // namespace spoke::netagent
