#include "netagent/exporters/iptables_series.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/exporters/label_text.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Returns one series a line, as a scrape has it.
std::vector<std::string> Lines(const std::vector<telemetry::Samples>& all) {
  std::vector<std::string> lines;
  for (const telemetry::Samples& samples : all) {
    for (const telemetry::Sample& sample : samples.series) {
      std::string line = samples.metric;
      for (const std::string& label : sample.labels) line += "|" + label;
      lines.push_back(line + " " + std::to_string(static_cast<uint64_t>(sample.value)));
    }
  }
  return lines;
}

struct Comment {
  std::string text;
  std::optional<std::string> want;
};

class CountedAsTest : public testing::TestWithParam<Comment> {};

TEST_P(CountedAsTest, ReadsTheGrammarOfTheExporter) {
  EXPECT_EQ(CountedAs(GetParam().text), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CountedAsTest,
    testing::Values(Comment{"iptables-exporter openai traffic=internet-in",
                            "openai traffic=internet-in"},
                    Comment{"cali:abc iptables-exporter ssh traffic", "ssh traffic"},
                    Comment{"iptables-exporter a iptables-exporter b", "b"},
                    Comment{"iptables-exporter ", std::nullopt},
                    Comment{"iptables-exporter", std::nullopt},
                    Comment{"iptables-exporters x", std::nullopt}, Comment{"", std::nullopt},
                    Comment{"iptables-exporter a\nb", std::nullopt}));

TEST(CommentSeries, RulesOfOneNameAddUpAndChainsAreLowerCase) {
  const auto v4 = ParseIptablesSave(
                      "*mangle\n:FORWARD ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n"
                      "[2:200] -A FORWARD ! -s 10.0.0.0/8 -m comment --comment "
                      "\"iptables-exporter openai traffic=internet-in\"\n"
                      "[3:300] -A FORWARD ! -d 10.0.0.0/8 -m comment --comment "
                      "\"iptables-exporter openai traffic=internet-out\"\n"
                      "[5:500] -A FORWARD -i eth1 -m comment --comment "
                      "\"iptables-exporter openai traffic=internet-in\"\n"
                      "[7:700] -A FORWARD -m comment --comment other -j ACCEPT\n"
                      "COMMIT\n")
                      .value();
  const auto v6 = ParseIptablesSave(
                      "*filter\n:INPUT ACCEPT [0:0]\n"
                      "[1:80] -A INPUT -m comment --comment \"iptables-exporter ssh\"\n"
                      "COMMIT\n")
                      .value();
  EXPECT_THAT(Lines(CommentSeries(v4, v6)),
              ElementsAre("iptables_bytes_total|4|mangle|forward|openai traffic=internet-in 700",
                          "iptables_bytes_total|4|mangle|forward|openai traffic=internet-out 300",
                          "iptables_bytes_total|6|filter|input|ssh 80",
                          "iptables_packets_total|4|mangle|forward|openai traffic=internet-in 7",
                          "iptables_packets_total|4|mangle|forward|openai traffic=internet-out 3",
                          "iptables_packets_total|6|filter|input|ssh 1",
                          "iptables_rules|4|mangle|forward 4", "iptables_rules|4|mangle|input 0",
                          "iptables_rules|6|filter|input 1"));
}

TEST(RuleSeries, OnlyCommentedRulesAndTheNegationStays) {
  const auto v4 = ParseIptablesSave(
                      "*mangle\n:FORWARD DROP [9:900]\n:OWN - [0:0]\n"
                      "[2:200] -A FORWARD ! -s 10.0.0.0/8 -m comment --comment \"a b\"\n"
                      "[3:300] -A FORWARD -j OWN\n"
                      "COMMIT\n")
                      .value();
  EXPECT_THAT(
      Lines(RuleSeries(v4)),
      ElementsAre(
          "iptables_rule_bytes_total|mangle|FORWARD|! -s 10.0.0.0/8 -m comment --comment \"a b\" "
          "200",
          "iptables_rule_packets_total|mangle|FORWARD|! -s 10.0.0.0/8 -m comment --comment \"a "
          "b\" 2",
          "iptables_default_bytes_total|mangle|FORWARD|DROP 900",
          "iptables_default_packets_total|mangle|FORWARD|DROP 9"));
}

TEST(CommentSeries, ManyNamesShareOneSeriesAndTheSumStays) {
  std::vector<IptablesTable> v4 = {{.name = "filter", .chains = {{"INPUT", "ACCEPT"}}}};
  for (int i = 0; i < 3000; ++i) {
    v4[0].rules.push_back(
        {.chain = "INPUT", .comment = "iptables-exporter r" + std::to_string(i), .bytes = 1});
  }
  const auto series = CommentSeries(v4, {});
  EXPECT_THAT(series[0].series, SizeIs(kMaxRuleSeries + 1));
  double sum = 0;
  for (const telemetry::Sample& sample : series[0].series) sum += sample.value;
  EXPECT_EQ(sum, 3000);
}

TEST(LabelText, KeepsTextAndReplacesWhatIsNone) {
  EXPECT_EQ(LabelText("web-0"), "web-0");
  EXPECT_EQ(LabelText("h\xC3\xA4user \xF0\x9F\x90\xA2"), "h\xC3\xA4user \xF0\x9F\x90\xA2");
  EXPECT_EQ(LabelText("a\nb\x7F"), "a?b?");
  EXPECT_EQ(LabelText("\xC3"), "?");
  EXPECT_EQ(LabelText("\xED\xA0\x80"), "???");
  EXPECT_EQ(LabelText("\xC0\xAF"), "??");
  EXPECT_THAT(LabelText(std::string(1000, 'x')), SizeIs(kMaxLabelBytes));
  EXPECT_EQ(LabelText(std::string(kMaxLabelBytes - 1, 'x') + "\xC3\xA4"),
            std::string(kMaxLabelBytes - 1, 'x'));
}

}  // namespace
}  // namespace spoke::netagent
