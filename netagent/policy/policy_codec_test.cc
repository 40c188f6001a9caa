#include "netagent/policy/policy_codec.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

v1::PolicyBundle SampleBundle() {
  v1::PolicyBundle bundle;
  bundle.set_version(7);
  bundle.set_full(true);
  v1::PolicyEntry& network = *bundle.add_changed();
  network.set_key("ClusterNetwork/main");
  network.mutable_cluster_network()->add_cluster("10.0.0.0/8");
  network.mutable_cluster_network()->add_storage("fd00::/64");
  v1::PolicyEntry& team = *bundle.add_changed();
  team.set_key("Team/ml");
  team.mutable_team()->add_namespaces("train");
  return bundle;
}

Policy Sample() { return ApplyPolicy({}, FromWire(SampleBundle())).value(); }

TEST(PolicyCodec, KnownKindsAreDecoded) {
  const Policy policy = Sample();
  EXPECT_EQ(std::get<ClusterNetwork>(policy.entries.at("ClusterNetwork/main").value),
            (ClusterNetwork{.cluster = {"10.0.0.0/8"}, .storage = {"fd00::/64"}}));
  EXPECT_EQ(std::get<Team>(policy.entries.at("Team/ml").value), Team{{"train"}});
}

TEST(PolicyCodec, WhatBecomesOfConnectionsIsTheKindsUnlessItIsSaid) {
  const auto read = [](v1::Established established) {
    v1::PolicyBundle bundle = SampleBundle();
    bundle.mutable_changed(0)->mutable_cluster_network()->set_established(established);
    v1::PolicyEntry& egress = *bundle.add_changed();
    egress.set_key("EgressPolicy/x");
    egress.mutable_egress()->set_mode(v1::EgressPolicy::DROP);
    egress.mutable_egress()->set_established(established);
    const Policy policy = ApplyPolicy({}, FromWire(bundle)).value();
    EXPECT_EQ(DecodePolicyFile(EncodePolicyFile(policy)).value(), policy);
    const auto& network = std::get<ClusterNetwork>(policy.entries.at("ClusterNetwork/main").value);
    const auto& closed = std::get<EgressPolicy>(policy.entries.at("EgressPolicy/x").value);
    return std::pair(network.keep_established, closed.cut_established);
  };
  EXPECT_EQ(read(v1::ESTABLISHED_UNSPECIFIED), std::pair(false, false));
  EXPECT_EQ(read(v1::CUT), std::pair(false, true));
  EXPECT_EQ(read(v1::KEEP), std::pair(true, false));
  EXPECT_EQ(read(static_cast<v1::Established>(77)), std::pair(false, false)) << "a newer server's";
}

TEST(PolicyCodec, ALimitOfCutsIsInNoFile) {
  v1::PolicyBundle bundle = SampleBundle();
  bundle.mutable_cut_limit()->set_permille(50);
  EXPECT_EQ(ApplyPolicy({}, FromWire(bundle)).value(), Sample());
}

TEST(PolicyCodec, TheFileGivesThePolicyBack) {
  EXPECT_EQ(DecodePolicyFile(EncodePolicyFile(Sample())).value(), Sample());
}

TEST(PolicyCodec, AKindOfANewerAgentIsInTheFileWholly) {
  v1::PolicyBundle bundle = SampleBundle();
  // Field 9, which this version does not have: tag 0x4a, three bytes.
  v1::PolicyEntry future;
  ASSERT_TRUE(future.ParseFromString("\x0a\x03\x46/a\x4a\x03xyz"));
  ASSERT_EQ(future.key(), "F/a");
  *bundle.add_changed() = future;
  const Policy policy = ApplyPolicy({}, FromWire(bundle)).value();
  const Policy read = DecodePolicyFile(EncodePolicyFile(policy)).value();
  EXPECT_EQ(read, policy);
  EXPECT_THAT(read.entries.at("F/a").bytes, testing::HasSubstr("xyz"));
  EXPECT_TRUE(std::holds_alternative<UnknownKind>(read.entries.at("F/a").value));
}

TEST(PolicyCodec, AFileThatIsTornOrDamagedAnywhereIsRefused) {
  const std::string whole = EncodePolicyFile(Sample());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(DecodePolicyFile(whole.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(DecodePolicyFile(whole + "x").ok());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(DecodePolicyFile(damaged).ok()) << i;
  }
}

TEST(PolicyCodec, AFormatOfAnotherVersionSaysSo) {
  std::string other = EncodePolicyFile(Sample());
  other[8] = 2;
  EXPECT_EQ(DecodePolicyFile(other).status(),
            absl::FailedPreconditionError("the policy file has format 2; this agent reads 1"));
}

}  // namespace
}  // namespace spoke::netagent
