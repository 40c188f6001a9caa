
#include "gtest/gtest.h"
#include "lib/nft/ruleset.h"

namespace spoke::nft {
namespace {

TEST(Validity, AKeyOfSeveralPartsIsPaddedAndAKeyOfOneIsNot) {
  EXPECT_EQ(BytesOf(std::vector<Field>{Field::kPort}), 2U);
  EXPECT_EQ(BytesOf(std::vector<Field>{Field::kPort, Field::kIpv4}), 8U);
  EXPECT_EQ(BytesOf(std::vector<Field>{Field::kInterfaceIndex, Field::kIpv6}), 20U);
}

struct SetCase {
  std::string name;
  Set set;
  bool fine = false;
};

class CheckSetTest : public testing::TestWithParam<SetCase> {};

TEST_P(CheckSetTest, RefusesWhatContradictsItself) {
  const absl::Status status = CheckSet(GetParam().set);
  EXPECT_EQ(status.code(),
            GetParam().fine ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument)
      << status;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CheckSetTest,
    testing::Values(
        SetCase{"Plain", {.name = "s", .key = {Field::kIpv4}}, true},
        SetCase{"WithoutKey", {.name = "s"}},
        SetCase{"KeyTooLong", {.name = "s", .key = std::vector<Field>(5, Field::kIpv6)}},
        SetCase{"Intervals", {.name = "s", .key = {Field::kIpv6}, .intervals = true}, true},
        SetCase{"IntervalsOfMarks", {.name = "s", .key = {Field::kMark}, .intervals = true}},
        SetCase{"IntervalsOfTwoParts",
                {.name = "s", .key = {Field::kIpv4, Field::kPort}, .intervals = true}},
        SetCase{"IntervalsWithSize",
                {.name = "s", .key = {Field::kIpv4}, .intervals = true, .size = 4}},
        SetCase{"ValuesAndVerdicts",
                {.name = "s", .key = {Field::kIpv4}, .value = Field::kMark, .verdicts = true}},
        SetCase{"DynamicWithoutSize", {.name = "s", .key = {Field::kIpv4}, .dynamic = true}},
        SetCase{"Dynamic", {.name = "s", .key = {Field::kIpv4}, .dynamic = true, .size = 9}, true}),
    [](const auto& test) { return test.param.name; });

TEST(Validity, ElementsFitTheirSets) {
  const Set plain{.name = "s", .key = {Field::kIpv4}};
  const Set map{.name = "m", .key = {Field::kIpv4}, .value = Field::kMark};
  const Set ranges{.name = "r", .key = {Field::kIpv4}, .intervals = true};
  const Bytes ten{10, 0, 0, 0};
  const Bytes nine{9, 0, 0, 0};
  EXPECT_TRUE(CheckFits({.key = ten}, plain).ok());
  EXPECT_FALSE(CheckFits({.key = {10, 0}}, plain).ok());
  EXPECT_FALSE(CheckFits({.key = ten, .last = ten}, plain).ok());
  EXPECT_FALSE(CheckFits({.key = ten, .value = HostOrder(1)}, plain).ok());
  EXPECT_FALSE(CheckFits({.key = ten, .verdict = Verdict{}}, plain).ok());
  EXPECT_TRUE(CheckFits({.key = ten, .value = HostOrder(1)}, map).ok());
  EXPECT_FALSE(CheckFits({.key = ten, .value = {1, 2}}, map).ok());
  EXPECT_TRUE(CheckFits({.key = ten, .last = ten}, ranges).ok());
  EXPECT_FALSE(CheckFits({.key = ten}, ranges).ok());
  EXPECT_TRUE(CheckElement({.key = nine, .last = ten}).ok());
  EXPECT_FALSE(CheckElement({.key = ten, .last = nine}).ok());
  EXPECT_FALSE(CheckElement({}).ok());
}

TEST(Validity, RulesAreNeitherTooLongNorCutShortInSilence) {
  EXPECT_TRUE(CheckRule({.chain = "c", .expressions = {Verdict{}}}).ok());
  EXPECT_FALSE(CheckRule({.chain = ""}).ok());
  EXPECT_FALSE(
      CheckRule({.chain = "c", .expressions = std::vector<Expression>(129, CountHere{})}).ok());
  EXPECT_FALSE(CheckRule({.chain = "c", .expressions = {Compare{.value = {}}}}).ok());
  EXPECT_FALSE(
      CheckRule({.chain = "c", .expressions = {MaskBits{.mask = {1, 2}, .toggle = {0}}}}).ok());
  EXPECT_FALSE(CheckRule({.chain = "c", .expressions = {LoadImmediate{.value = Bytes(65)}}}).ok());
}

TEST(Validity, NamesAreWhatTheKernelCanHold) {
  EXPECT_TRUE(CheckName("ns/default/cluster/sent").ok());
  EXPECT_FALSE(CheckName("").ok());
  EXPECT_FALSE(CheckName(std::string(256, 'x')).ok());
  EXPECT_FALSE(CheckName(std::string("a\0b", 3)).ok());
}

}  // namespace
}  // namespace spoke::nft
