#include "gtest/gtest.h"
#include "lib/nft/ruleset.h"

namespace spoke::nft {
namespace {

const TableKey kTable{Family::kInet, "spoke"};

TEST(StepTitle, NamesWhatIsDoneAndToWhat) {
  Transaction transaction;
  transaction.Add(kTable, FlushSet{"hops4"});
  transaction.Add(kTable, DeleteTable{});
  EXPECT_EQ(TitleOf(transaction, 0), "step 1 of 2, flush set inet spoke hops4");
  EXPECT_EQ(TitleOf(transaction.steps[1]), "delete table inet spoke");
}

}  // namespace
}  // namespace spoke::nft
