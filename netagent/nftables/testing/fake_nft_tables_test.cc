#include "netagent/nftables/testing/fake_nft_tables.h"

#include "netagent/nftables/testing/nft_tables_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public NftTablesWorld {
 public:
  nft::Tables& tables() override { return tables_; }

 private:
  FakeNftTables tables_;
};

INSTANTIATE_TEST_SUITE_P(Fake, NftTablesContract,
                         testing::Values(NftTablesWorldFactory{
                             "Fake", [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& test) { return test.param.name; });

class FakeNftTablesTest : public testing::Test {
 protected:
  FakeNftTablesTest() {
    nft::Transaction transaction;
    transaction.Add(kTable, nft::AddTable{});
    transaction.Add(kTable, nft::AddSet{{.name = "sent4",
                                         .key = {nft::Field::kIpv4},
                                         .dynamic = true,
                                         .counts = true,
                                         .size = 1}});
    transaction.Add(kTable, nft::AddCounter{"drop/x", {}});
    transaction.Add(kTable, nft::AddChain{{.name = "forward"}});
    transaction.Add(
        kTable,
        nft::AddRule{{.chain = "forward", .expressions = {nft::CountHere{}}, .comment = "all"}});
    EXPECT_TRUE(tables_.Apply(transaction).ok());
  }

  const nft::TableKey kTable{nft::Family::kInet, "spoke"};
  FakeNftTables tables_;
};

TEST_F(FakeNftTablesTest, CountsAsAPacketDoes) {
  EXPECT_TRUE(tables_.Count(kTable, "sent4", {10, 0, 0, 1}, 1, 100));
  EXPECT_TRUE(tables_.Count(kTable, "sent4", {10, 0, 0, 1}, 1, 100));
  EXPECT_FALSE(tables_.Count(kTable, "sent4", {10, 0, 0, 2}, 1, 100));
  tables_.CountIn(kTable, "drop/x", 1, 60);
  tables_.CountRule(kTable, "forward", "all", {2, 120});
  EXPECT_EQ(tables_.ReadSet(kTable, "sent4")->at(0).bytes, 200U);
  EXPECT_EQ(tables_.ReadCounters(kTable)->at(0).bytes, 60U);
  EXPECT_EQ(tables_.ReadRules(kTable)->at(0).packets, 2U);
}

TEST_F(FakeNftTablesTest, FailsAsLongAsItIsToldTo) {
  tables_.FailApply(absl::UnavailableError("busy"));
  nft::Transaction transaction;
  transaction.Add(kTable, nft::AddCounter{"drop/y", {}});
  EXPECT_CODE(tables_.Apply(transaction), kUnavailable);
  tables_.FailApply(absl::OkStatus());
  EXPECT_EQ(tables_.ReadCounters(kTable)->size(), 1U);
  EXPECT_CODE(tables_.Apply(transaction), kOk);
  tables_.FailReads(absl::UnavailableError("busy"));
  EXPECT_CODE(tables_.ReadCounters(kTable).status(), kUnavailable);
  EXPECT_CODE(tables_.Generation().status(), kUnavailable);
}

TEST_F(FakeNftTablesTest, SomebodyElseWipesAllTables) {
  const uint32_t before = *tables_.Generation();
  tables_.Wipe();
  EXPECT_FALSE(tables_.HasTable(kTable));
  EXPECT_GT(*tables_.Generation(), before);
  EXPECT_EQ(tables_.applied().size(), 1U);
}

}  // namespace
}  // namespace spoke::netagent
