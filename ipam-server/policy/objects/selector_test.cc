#include "ipam-server/policy/objects/selector.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/objects/testing/fake_spec.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'000);

// Names others and keeps out of blocks as it is told.
struct RelatedSpec : public FakeSpec {
  std::vector<Reference> References() const override { return references; }
  std::vector<Avoidance> Avoidances() const override { return avoidances; }

  std::vector<Reference> references;
  std::vector<Avoidance> avoidances;
};

std::shared_ptr<RelatedSpec> Naming(const std::string& name) {
  auto spec = std::make_shared<RelatedSpec>();
  spec->references.push_back({{"Fake", name}, "spec.names", 7});
  return spec;
}

std::shared_ptr<RelatedSpec> Avoiding(const std::string& cidr, std::vector<std::string> shares) {
  auto spec = std::make_shared<RelatedSpec>();
  spec->avoidances.push_back({.block = *ip::Prefix::Parse(cidr),
                              .space = "s",
                              .shares = std::move(shares),
                              .why = "go away",
                              .path = "spec.to",
                              .line = 9});
  return spec;
}

std::shared_ptr<FakeSpec> Claiming(const std::string& share, const std::string& cidr) {
  auto spec = std::make_shared<FakeSpec>();
  spec->claims.push_back(BlockClaim(share, cidr, 3));
  return spec;
}

ObjectSet Applied(std::vector<SourcedObject> objects) {
  const auto plan = PlanApply({}, Files(std::move(objects)), {}, kNow);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->next : ObjectSet();
}

TEST(References, ToWhatIsNotThereAreRefused) {
  const auto plan = PlanApply({}, Files({FromFile("a", Naming("b"))}), {}, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:7: spec.names: there is no Fake \"b\": apply it before, or with this one");
}

TEST(References, ToWhatComesAlongOrIsThereAreTaken) {
  EXPECT_TRUE(
      PlanApply({}, Files({FromFile("a", Naming("b")), FromFile("b", MakeSpec("{}"))}), {}, kNow)
          .ok());
  const ObjectSet set = Applied({FromFile("b", MakeSpec("{}"))});
  EXPECT_TRUE(PlanApply(set, Files({FromFile("a", Naming("b"))}), {}, kNow).ok());
}

TEST(References, KeepWhatTheyNameFromBeingDeletedAlone) {
  const ObjectSet set = Applied({FromFile("a", Naming("b")), FromFile("b", MakeSpec("{}"))});
  const std::vector<ObjectKey> b = {{"Fake", "b"}};
  const auto plan = PlanDelete(set, b, {}, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "Fake \"b\": Fake \"a\" names it (spec.names): change or delete that first");
  const std::vector<ObjectKey> both = {{"Fake", "b"}, {"Fake", "a"}};
  EXPECT_TRUE(PlanDelete(set, both, {}, kNow).ok());
}

struct Swallowed {
  const char* name;
  const char* claimed;
  const char* block;
  std::vector<std::string> shares;
  bool want;
};
std::ostream& operator<<(std::ostream& out, const Swallowed& c) { return out << c.name; }

class SwallowedTest : public testing::TestWithParam<Swallowed> {};

TEST_P(SwallowedTest, OnlyABlockInsideAClaimedOneIsRefused) {
  const Swallowed& c = GetParam();
  const ParsedFiles files = Files({FromFile("claims", Claiming("platform", c.claimed)),
                                   FromFile("avoids", Avoiding(c.block, c.shares))});
  EXPECT_EQ(PlanApply({}, files, {}, kNow).ok(), !c.want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SwallowedTest,
    testing::Values(Swallowed{"Inside", "10.0.0.0/8", "10.1.0.0/16", {"platform"}, true},
                    Swallowed{"Equal", "10.0.0.0/8", "10.0.0.0/8", {"platform"}, true},
                    Swallowed{"AnyShare", "10.0.0.0/8", "10.0.0.1/32", {}, true},
                    Swallowed{
                        "OfSeveralShares", "10.0.0.0/8", "10.0.0.1/32", {"x", "platform"}, true},
                    Swallowed{"OtherShare", "10.0.0.0/8", "10.1.0.0/16", {"hub"}, false},
                    Swallowed{"Around", "10.0.0.0/8", "0.0.0.0/0", {"platform"}, false},
                    Swallowed{"Beside", "10.0.0.0/8", "11.0.0.0/8", {"platform"}, false},
                    Swallowed{"OtherFamily", "0.0.0.0/0", "::/0", {"platform"}, false},
                    Swallowed{"V6", "fd00::/8", "fd00::1/128", {"platform"}, true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Swallowed, SaysWhereAndWhy) {
  const ParsedFiles files = Files({FromFile("claims", Claiming("platform", "10.0.0.0/8")),
                                   FromFile("avoids", Avoiding("10.1.0.0/16", {}))});
  const auto plan = PlanApply({}, files, {}, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:9: spec.to: 10.1.0.0/16 lies in 10.0.0.0/8, the block of Fake \"claims\" (f:3): go "
            "away");
}

TEST(Swallowed, ByAClaimThatComesLaterIsLaidToTheObjectThatWasThere) {
  const ObjectSet set = Applied({FromFile("avoids", Avoiding("10.1.0.0/16", {}))});
  const auto plan =
      PlanApply(set, Files({FromFile("claims", Claiming("platform", "10.0.0.0/8"))}), {}, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "Fake \"avoids\": spec.to: 10.1.0.0/16 lies in 10.0.0.0/8, the block of Fake "
            "\"claims\" (f:3): go away");
}

TEST(ProtectedAddresses, AreNotInABlockThatNodesDrop) {
  auto spec = Claiming(std::string(kDroppedShare), "10.32.0.0/11");
  spec->claims[0].space = kNetworkSpace;
  const PolicyWorld world{
      .protected_addresses = {{*ip::Address::Parse("10.33.0.4"), "the server"}}};
  const auto plan = PlanApply({}, Files({FromFile("a", spec)}), world, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:3: spec.block: 10.32.0.0/11 holds 10.33.0.4, the server: nodes drop all traffic "
            "with it, and would lose what they need to work; take that address out of the block");
  spec->claims[0].share = "hub";
  EXPECT_TRUE(PlanApply({}, Files({FromFile("a", spec)}), world, kNow).ok());
}

TEST(ProtectedAddresses, DoNotKeepOtherObjectsFromBeingChanged) {
  auto spec = Claiming(std::string(kDroppedShare), "10.32.0.0/11");
  spec->claims[0].space = kNetworkSpace;
  const ObjectSet set = Applied({FromFile("a", spec)});
  const PolicyWorld world{
      .protected_addresses = {{*ip::Address::Parse("10.33.0.4"), "the server"}}};
  EXPECT_TRUE(PlanApply(set, Files({FromFile("b", MakeSpec("{}"))}), world, kNow).ok());
}

TEST(Selectors, WithoutProblemsHaveNone) {
  const auto spec = Claiming("a", "10.0.0.0/8");
  const std::vector<Selector> selectors = {{.key = {"Fake", "a"}, .spec = spec.get()}};
  EXPECT_THAT(FindClashes(selectors), IsEmpty());
  EXPECT_THAT(FindMissing(selectors, {}), IsEmpty());
  EXPECT_THAT(FindSwallowed(selectors), IsEmpty());
  EXPECT_THAT(FindCutProtectedAddresses(selectors, {}), IsEmpty());
}

}  // namespace
}  // namespace spoke::ipam
