#include "netagent/iptables/published_rules.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ip::Prefix P(std::string_view text) { return ip::Prefix::Parse(text).value(); }

// The rules that a host has after the published commands, as iptables-save prints it.
constexpr std::string_view kPublished =
    "*mangle\n"
    "[1:84] -A INPUT ! -s 10.0.0.0/8 -m comment --comment "
    "\"iptables-exporter openai traffic=internet-in\"\n"
    "[2:84] -A FORWARD ! -s 10.0.0.0/8 -m comment --comment "
    "\"iptables-exporter openai traffic=internet-in\"\n"
    "[3:84] -A FORWARD ! -d 10.0.0.0/8 -m comment --comment "
    "\"iptables-exporter openai traffic=internet-out\"\n"
    "[4:84] -A OUTPUT ! -d 10.0.0.0/8 -m comment --comment "
    "\"iptables-exporter openai traffic=internet-out\"\n"
    "COMMIT\n";

std::vector<IptablesTable> Apply(std::vector<IptablesTable> tables,
                                 const std::vector<PublishedRule>& added) {
  if (FindTable(tables, "mangle") == nullptr) tables.push_back({.name = "mangle"});
  for (const PublishedRule& rule : added) {
    tables.back().rules.push_back(
        {.chain = rule.chain, .text = rule.Text(), .comment = rule.comment});
  }
  return tables;
}

TEST(PublishedRules, AreTheOnesPublished) {
  const auto tables = ParseIptablesSave(kPublished).value();
  EXPECT_THAT(MissingRules(PublishedRules(P("10.0.0.0/8")), tables), IsEmpty());
  EXPECT_EQ(CountForeignRules(PublishedRules(P("10.0.0.0/8")), tables), 0U);
}

TEST(PublishedRules, ThoseOfAnotherBlockAreOthers) {
  const auto tables = ParseIptablesSave(kPublished).value();
  const auto wanted = PublishedRules(P("10.64.0.0/10"));
  EXPECT_EQ(MissingRules(wanted, tables), wanted);
  EXPECT_EQ(CountForeignRules(wanted, tables), 4U);
}

TEST(PublishedRules, OnlyWhatIsMissingIsAdded) {
  const auto wanted = PublishedRules(P("10.0.0.0/8"));
  auto tables = ParseIptablesSave(kPublished).value();
  tables[0].rules.erase(tables[0].rules.begin() + 1);
  EXPECT_THAT(MissingRules(wanted, tables), ElementsAre(wanted[1]));
  EXPECT_THAT(MissingRules(wanted, Apply(tables, {wanted[1]})), IsEmpty());
}

TEST(PublishedRules, AreMissingFromAnEmptyHost) {
  const auto wanted = PublishedRules(P("10.0.0.0/8"));
  EXPECT_EQ(MissingRules(wanted, {}), wanted);
  EXPECT_THAT(MissingRules(wanted, Apply({}, wanted)), IsEmpty());
}

TEST(PublishedRules, ARuleThatMatchesMoreThanCanBeReadIsNotOne) {
  const auto wanted = PublishedRules(P("10.0.0.0/8"));
  auto tables = ParseIptablesSave(kPublished).value();
  tables[0].rules[0].abridged = true;
  EXPECT_THAT(MissingRules(wanted, tables), ElementsAre(wanted[0]));
  EXPECT_EQ(CountForeignRules(wanted, tables), 1U);
}

TEST(PublishedRules, ArgumentsAreTheTextWithoutQuotes) {
  const PublishedRule rule = PublishedRules(P("10.0.0.0/8"))[2];
  EXPECT_EQ(rule.chain, "OUTPUT");
  EXPECT_THAT(rule.Arguments(), ElementsAre("!", "-d", "10.0.0.0/8", "-m", "comment", "--comment",
                                            "iptables-exporter openai traffic=internet-out"));
}

struct Choice {
  std::string name;
  BackendUse use;
  IptablesBackend want;
};

class ChooseBackendTest : public testing::TestWithParam<Choice> {};

TEST_P(ChooseBackendTest, GoesWhereTheHostsRulesAre) {
  EXPECT_EQ(ChooseBackend(GetParam().use), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ChooseBackendTest,
    testing::Values(
        Choice{"EmptyHost", {}, IptablesBackend::kNft},
        Choice{"LegacyByDefault",
               {.legacy_command = true, .legacy_is_default = true},
               IptablesBackend::kLegacy},
        Choice{"LegacyOnTheSide", {.legacy_command = true}, IptablesBackend::kNft},
        Choice{"RulesInLegacy",
               {.legacy_foreign = 3, .legacy_command = true},
               IptablesBackend::kLegacy},
        Choice{"RulesInLegacyWithoutItsCommand", {.legacy_foreign = 3}, IptablesBackend::kNft},
        Choice{"RulesInNft",
               {.nft_foreign = 1, .legacy_command = true, .legacy_is_default = true},
               IptablesBackend::kNft},
        Choice{"RulesInBoth",
               {.nft_foreign = 1,
                .legacy_foreign = 9,
                .legacy_command = true,
                .legacy_is_default = true},
               IptablesBackend::kLegacy},
        Choice{"RulesInBothNftByDefault",
               {.nft_foreign = 1, .legacy_foreign = 9, .legacy_command = true},
               IptablesBackend::kNft}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent
