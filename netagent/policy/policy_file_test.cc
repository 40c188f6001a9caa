#include "netagent/policy/policy_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "lib/policy/wire.h"
#include "proto/spoke/v1/policy.pb.h"

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

Policy Sample() { return ApplyPolicy({}, policy::FromWire(SampleBundle())).value(); }

TEST(PolicyFile, ALimitOfCutsIsInNoFile) {
  v1::PolicyBundle bundle = SampleBundle();
  bundle.mutable_cut_limit()->set_permille(5);
  EXPECT_EQ(ApplyPolicy({}, policy::FromWire(bundle)).value(), Sample());
}

TEST(PolicyFile, TheFileGivesThePolicyBack) {
  EXPECT_EQ(DecodePolicyFile(EncodePolicyFile(Sample())).value(), Sample());
}

TEST(PolicyFile, AKindOfANewerAgentIsInTheFileWholly) {
  v1::PolicyBundle bundle = SampleBundle();
  // The entry has field 9, which this version does not know: tag 0x4a, three bytes.
  v1::PolicyEntry future;
  ASSERT_TRUE(future.ParseFromString("\x0a\x03\x46/a\x4a\x03xyz"));
  ASSERT_EQ(future.key(), "F/a");
  *bundle.add_changed() = future;
  const Policy policy = ApplyPolicy({}, policy::FromWire(bundle)).value();
  const Policy read = DecodePolicyFile(EncodePolicyFile(policy)).value();
  EXPECT_EQ(read, policy);
  EXPECT_THAT(read.entries.at("F/a").bytes, testing::HasSubstr("xyz"));
  EXPECT_TRUE(std::holds_alternative<policy::UnknownKind>(read.entries.at("F/a").value));
}

TEST(PolicyFile, AFileThatIsTornOrDamagedAnywhereIsRefused) {
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

TEST(PolicyFile, AFormatOfAnotherVersionSaysSo) {
  std::string other = EncodePolicyFile(Sample());
  other[8] = 2;
  EXPECT_EQ(DecodePolicyFile(other).status(),
            absl::FailedPreconditionError("the policy file has format 2; this agent reads 1"));
}

}  // namespace
}  // namespace spoke::netagent
