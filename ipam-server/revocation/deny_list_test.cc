#include "ipam-server/revocation/deny_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

DenyList Of(std::string_view kind, std::string_view value, absl::Time until) {
  DenyList list;
  EXPECT_TRUE(list.Put(DeniedName::From(kind, value).value(),
                       {.reason = "stolen", .by = "alice", .since = kNow, .until = until})
                  .ok());
  return list;
}

struct Case {
  std::string name;
  std::string kind;
  std::string value;
  bool denied = false;
};

class DenyListTest : public testing::TestWithParam<Case> {};

TEST_P(DenyListTest, DeniesWhatItNames) {
  const Case& c = GetParam();
  const PeerIdentity peer{.node = "node-1",
                          .serial = "0aff12",
                          .machines = {"VM-1", "/subscriptions/S/machines/7", ""}};
  const absl::Status status =
      Of(c.kind, c.value, absl::InfiniteFuture()).Check(peer, kNow + absl::Hours(1));
  EXPECT_EQ(absl::IsPermissionDenied(status), c.denied) << status;
  EXPECT_EQ(status.ok(), !c.denied);
  if (c.denied) EXPECT_THAT(std::string(status.message()), HasSubstr("is revoked: stolen"));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, DenyListTest,
    testing::Values(
        Case{"Node", "node", "node-1", true}, Case{"NodeInUpperCase", "node", "NODE-1", true},
        Case{"OtherNode", "node", "node-10", false}, Case{"Serial", "serial", "0AFF12", true},
        Case{"SerialWithColons", "serial", "0a:ff:12", true},
        Case{"OtherSerial", "serial", "0aff1", false}, Case{"VmId", "machine", "vm-1", true},
        Case{"Instance", "machine", "/subscriptions/s/machines/7", true},
        Case{"ProviderId", "machine", "azure:///subscriptions/S/machines/7", true},
        Case{"OtherMachine", "machine", "/subscriptions/s/machines/70", false},
        Case{"NodesNameAsMachine", "machine", "node-1", false}),
    [](const auto& test) { return test.param.name; });

TEST(DenyList, EndsWhenItShould) {
  const DenyList list = Of("node", "node-1", kNow + absl::Hours(1));
  EXPECT_FALSE(list.Check({.node = "node-1"}, kNow + absl::Minutes(59)).ok());
  EXPECT_TRUE(list.Check({.node = "node-1"}, kNow + absl::Hours(1)).ok());
}

TEST(DenyList, WhoIsUnknownIsNobodyWhoIsDenied) {
  EXPECT_TRUE(Of("node", "node-1", absl::InfiniteFuture()).Check({}, kNow).ok());
}

TEST(DenyList, IsLifted) {
  DenyList list = Of("serial", "ab", absl::InfiniteFuture());
  EXPECT_TRUE(list.Remove(DeniedName::From("serial", "AB").value()));
  EXPECT_FALSE(list.Remove(DeniedName::From("serial", "AB").value()));
  EXPECT_TRUE(list.Check({.serial = "ab"}, kNow).ok());
}

TEST(DenyList, IsBounded) {
  DenyList list;
  for (size_t i = 0; i < kMostDenied; ++i) {
    ASSERT_TRUE(list.Put({DeniedKind::kMachine, std::to_string(i)}, {}).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(list.Put({DeniedKind::kMachine, "x"}, {})));
  EXPECT_TRUE(list.Put({DeniedKind::kMachine, "7"}, {}).ok());
}

TEST(DeniedName, WhatNothingIsCalledIsRefused) {
  EXPECT_FALSE(DeniedName::From("pod", "a").ok());
  EXPECT_FALSE(DeniedName::From("", "a").ok());
  EXPECT_FALSE(DeniedName::From("node", "").ok());
  EXPECT_FALSE(DeniedName::From("node", "a/b").ok());
  EXPECT_FALSE(DeniedName::From("serial", "xyz").ok());
  EXPECT_FALSE(DeniedName::From("serial", "::").ok());
  EXPECT_FALSE(DeniedName::From("machine", "a b").ok());
  EXPECT_FALSE(DeniedName::From("machine", std::string(513, 'a')).ok());
}

}  // namespace
}  // namespace spoke::ipam
