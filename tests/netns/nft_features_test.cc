// What this machine's kernel says to each trial, and that nothing stays of it.
#include "netagent/nftables/nft_features.h"

#include "gmock/gmock.h"
#include "netagent/claims.h"
#include "netagent/nftables/kernel_nft_tables.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {
namespace {

class NftFeaturesTest : public testing_support::NetnsTest {};

TEST_F(NftFeaturesTest, EachIsThereOrSaysWhyNotAndNothingStays) {
  const auto tables = KernelNftTables::Open().value();
  const std::vector<NftFeatureState> states = ProbeNftFeatures(*tables);
  EXPECT_EQ(states.size(), 9U);
  for (const NftFeatureState& state : states) {
    EXPECT_EQ(state.present, state.words.empty()) << NameOf(state.feature) << ": " << state.words;
    ::testing::Test::RecordProperty(std::string(NameOf(state.feature)),
                                    state.present ? "present" : state.words);
  }
  // Without these no test of rules could run.
  EXPECT_TRUE(Has(states, NftFeature::kTables));
  EXPECT_TRUE(Has(states, NftFeature::kDynamicSets));
  for (const nft::Family family : {nft::Family::kInet, nft::Family::kNetdev}) {
    EXPECT_EQ(tables->ReadRules({family, std::string(claims::kProbeTable)}).status().code(),
              absl::StatusCode::kNotFound);
  }
  // And once more, as after a restart.
  EXPECT_EQ(ProbeNftFeatures(*tables), states);
}

// A trial fails for what the kernel lacks, not because its own steps do not go together: with a
// step in it that no kernel has, the same trial fails and leaves nothing either.
TEST_F(NftFeaturesTest, WhatIsRefusedLeavesNothing) {
  const auto tables = KernelNftTables::Open().value();
  const nft::TableKey table{nft::Family::kInet, std::string(claims::kProbeTable)};
  nft::Transaction trial;
  trial.Add(table, nft::AddTable{});
  trial.Add(table, nft::AddChain{{.name = "probe"}});
  // Forwarding to a neighbour exists in netdev tables only.
  trial.Add(table, nft::AddRule{{.chain = "probe", .expressions = {nft::Forward{1, 0}}}});
  trial.Add(table, nft::DeleteTable{});
  EXPECT_FALSE(tables->Apply(trial).ok());
  EXPECT_EQ(tables->ReadRules(table).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::netagent
