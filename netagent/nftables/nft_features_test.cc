#include "netagent/nftables/nft_features.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/claims.h"
#include "netagent/nftables/testing/fake_nft_tables.h"

namespace spoke::netagent {
namespace {

TEST(NftFeatures, AllAreThereInAKernelThatHasThem) {
  FakeNftTables tables;
  const std::vector<NftFeatureState> states = ProbeNftFeatures(tables);
  EXPECT_EQ(states.size(), 9U);
  for (const NftFeatureState& state : states) {
    EXPECT_TRUE(state.present) << NameOf(state.feature) << ": " << state.words;
    EXPECT_EQ(state.words, "");
    EXPECT_TRUE(Has(states, state.feature));
  }
}

TEST(NftFeatures, NothingIsThereWithoutTables) {
  FakeNftTables tables;
  tables.FailApply(absl::NotFoundError("step 1: no such module"));
  const std::vector<NftFeatureState> states = ProbeNftFeatures(tables);
  EXPECT_EQ(states.size(), 9U);
  for (const NftFeatureState& state : states) {
    EXPECT_FALSE(state.present);
    EXPECT_FALSE(Has(states, state.feature));
    EXPECT_THAT(state.words, testing::HasSubstr("no such module"));
  }
}

TEST(NftFeatures, NothingIsLeftBehind) {
  FakeNftTables tables;
  ProbeNftFeatures(tables);
  for (const nft::Family family : {nft::Family::kInet, nft::Family::kNetdev}) {
    EXPECT_FALSE(tables.HasTable({family, std::string(claims::kProbeTable)}));
  }
  // Not between two steps either: each transaction ends with nothing.
  for (const nft::Transaction& transaction : tables.applied()) {
    EXPECT_TRUE(std::holds_alternative<nft::DeleteTable>(transaction.steps.back().change));
  }
}

}  // namespace
}  // namespace spoke::netagent
