#include "netagent/connections/testing/fake_conntrack_table.h"

#include "netagent/connections/testing/conntrack_table_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public ConntrackWorld {
 public:
  ConntrackTable& table() override { return table_; }
  void Track(const Connection& connection, uint16_t /*zone*/) override { table_.Add(connection); }
  std::vector<Connection> Tracked() override { return table_.connections(); }
  std::vector<Connection> TrackedAsCut() override {
    const std::set<Connection> cut = table_.cut();
    return {cut.begin(), cut.end()};
  }

 private:
  FakeConntrackTable table_;
};

INSTANTIATE_TEST_SUITE_P(Fake, ConntrackTableContract,
                         testing::Values(ConntrackWorldFactory{
                             "Fake", [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& test) { return test.param.name; });

constexpr ip::Address kPod = ip::Address::V4(0x0A010005);
constexpr ip::Address kOther = ip::Address::V4(0x0A010006);
constexpr ip::Address kFar = ip::Address::V4(0xC0000201);

TEST(FakeConntrackTable, FailsAsLongAsItIsToldTo) {
  FakeConntrackTable table;
  table.Add({kPod, kFar, kFar, kPod});
  table.Fail(absl::InternalError("no"));
  const auto failed = table.DeleteConnectionsOf({kPod, kOther});
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(failed.left, testing::ElementsAre(kPod, kOther));
  table.Fail(absl::OkStatus());
  table.Keep({kPod});
  const auto kept = table.DeleteConnectionsOf({kPod, kOther});
  EXPECT_THAT(kept.left, testing::ElementsAre(kPod));
  EXPECT_EQ(table.connections().size(), 1U);
  EXPECT_EQ(table.asked().size(), 2U);
}

}  // namespace
}  // namespace spoke::netagent
