#include "netagent/shaping/testing/fake_shaper.h"

#include "netagent/shaping/testing/shaper_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public ShaperWorld {
 public:
  Shaper& Begin() override { return shaper_; }
  uint32_t AddLink() override { return ++links_; }
  void RemoveLink(uint32_t) override {}
  void Disturb(TrafficDirection, ShapeClassId) override { shaper_.Disturb(1); }

 private:
  FakeShaper shaper_;
  uint32_t links_ = 10;
};

INSTANTIATE_TEST_SUITE_P(Fake, ShaperContract,
                         ::testing::Values(+[]() -> std::unique_ptr<ShaperWorld> {
                           return std::make_unique<FakeWorld>();
                         }));

TEST(FakeShaper, CountsWhatATestSays) {
  FakeShaper shaper;
  ShapingTables tables;
  tables.trees[0] = {{.id = 2,
                      .rate = units::ByteRate(1),
                      .ceil = units::ByteRate(1),
                      .queue = units::ByteCount(1)}};
  tables.flows = {{.host_index = 7, .class_id = 2}};
  ASSERT_TRUE(shaper.Apply(tables).ok());
  shaper.Count(ShapeClassReading{.id = 2, .sent = units::ByteCount(100)});
  shaper.Count(ShapedFlowReading{.host_index = 7, .offered = units::ByteCount(300)});
  tables.trees[0][0].rate = tables.trees[0][0].ceil = units::ByteRate(5);
  ASSERT_TRUE(shaper.Apply(tables).ok());
  EXPECT_EQ(shaper.Read()->classes.at(0).sent, units::ByteCount(100));
  EXPECT_EQ(shaper.Read()->flows.at(0).offered, units::ByteCount(300));
  tables.flows.clear();
  tables.trees[0].clear();
  ASSERT_TRUE(shaper.Apply(tables).ok());
  EXPECT_TRUE(shaper.Read()->classes.empty());
  EXPECT_EQ(shaper.applied(), 3U);
  shaper.Break(absl::UnimplementedError("the kernel lacks it"));
  EXPECT_TRUE(absl::IsUnimplemented(shaper.Apply({})));
  EXPECT_TRUE(absl::IsUnimplemented(shaper.Read().status()));
}

}  // namespace
}  // namespace spoke::netagent
