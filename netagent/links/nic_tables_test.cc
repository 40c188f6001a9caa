#include "netagent/links/nic_tables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/links/testing/fake_kernel.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ip::Address kOnFirst = ip::Address::V4(0x0A010005);
constexpr ip::Address kOnSecond = ip::Address::V4(0x0A020005);
constexpr ip::Address kAnywhere = ip::Address::V4(0x0A030005);

ip::MacAddress Mac(std::string_view text) { return ip::MacAddress::Parse(text).value(); }

class NicTablesTest : public testing::Test {
 protected:
  NicTablesTest() {
    kernel_.SetNic({.name = "eth0", .mac = first_, .mtu = 1500, .addresses = {}});
    assignments_.Apply(HoldingsReplaced{holdings_});
  }

  const ip::MacAddress first_ = Mac("00:0d:3a:00:00:01");
  const ip::MacAddress second_ = Mac("00:0d:3a:00:00:02");
  const std::vector<Holding> holdings_ = {
      {kOnFirst, "one", first_}, {kOnSecond, "two", second_}, {kAnywhere, "three"}};
  FakeKernel kernel_;
  testing_support::RecordingLog log_;
  Assignments assignments_{absl::Seconds(30)};
  NicTables tables_{kernel_, log_};
};

TEST_F(NicTablesTest, AddressesOfTheFirstNicAndOfNobodyKnowsWhichNeedNone) {
  tables_.Prepare(first_, holdings_);
  EXPECT_THAT(tables_.Of({kOnFirst, kAnywhere}, assignments_).value(), IsEmpty());
}

TEST_F(NicTablesTest, AddressesOfAnotherNicLeaveByItsTable) {
  kernel_.SetNic({.name = "eth1", .mac = second_, .mtu = 1500, .addresses = {}});
  tables_.Prepare(first_, holdings_);
  const uint32_t table = kernel_.SetNicTable(second_).value();
  EXPECT_THAT(tables_.Of({kOnFirst, kOnSecond}, assignments_).value(),
              ElementsAre(SourceTable{kOnSecond, table}));
}

TEST_F(NicTablesTest, ANicWithoutATableRefusesItsAddressesAndIsWarnedOfOnce) {
  for (int i = 0; i < 2; ++i) tables_.Prepare(first_, holdings_);
  const auto refused = tables_.Of({kOnSecond}, assignments_);
  ASSERT_TRUE(absl::IsUnavailable(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("00:0d:3a:00:00:02"));
  EXPECT_EQ(log_.Count("nic_table_failed"), 1);
  EXPECT_THAT(tables_.Missing(), ElementsAre(second_));
  EXPECT_THAT(tables_.ExplainMissing(), HasSubstr("NIC 00:0d:3a:00:00:02 has no way out"));
  kernel_.SetNic({.name = "eth1", .mac = second_, .mtu = 1500, .addresses = {}});
  tables_.Prepare(first_, holdings_);
  EXPECT_TRUE(tables_.Of({kOnSecond}, assignments_).ok());
  EXPECT_THAT(tables_.Missing(), IsEmpty());
  EXPECT_EQ(tables_.ExplainMissing(), "");
}

}  // namespace
}  // namespace spoke::netagent
