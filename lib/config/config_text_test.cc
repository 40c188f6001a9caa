#include "lib/config/config_text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"

namespace spoke::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Returns what Finish() says, "" for OK.
std::string Mistakes(const ConfigText& config) {
  const absl::Status status = config.Finish();
  if (!status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
  return std::string(base::MessageOf(status));
}

struct Pool {
  std::string cidr;
  uint32_t reserve = 4;
};

struct Settings {
  std::string listen = "unset";
  bool verbose = false;
  uint32_t workers = 2;
  double share = 0.5;
  absl::Duration cooldown = absl::Seconds(30);
  std::string store_path;
  std::vector<std::string> zones = {"default"};
  std::vector<Pool> pools;
};

std::string Read(std::string_view text, Settings* settings) {
  const ConfigText config = ConfigText::Parse(text, "f.yaml");
  const ConfigMap root = config.Root();
  root.String("listen", &settings->listen, Need::kRequired);
  root.Bool("verbose", &settings->verbose, Need::kOptional);
  root.Uint32("workers", &settings->workers, Need::kOptional, {1, 64});
  root.Double("share", &settings->share, Need::kOptional, {0, 1});
  root.Duration("cooldown", &settings->cooldown, Need::kOptional,
                {absl::Seconds(1), absl::Hours(1)});
  root.Map("store", Need::kOptional).String("path", &settings->store_path, Need::kRequired);
  root.StringList("zones", &settings->zones, Need::kOptional);
  for (const ConfigMap& map : root.MapList("pools", Need::kOptional)) {
    Pool& pool = settings->pools.emplace_back();
    map.String("cidr", &pool.cidr, Need::kRequired);
    map.Uint32("reserve", &pool.reserve, Need::kOptional);
  }
  return Mistakes(config);
}

std::string Read(std::string_view text) {
  Settings settings;
  return Read(text, &settings);
}

TEST(ConfigText, ReadsEveryKindOfField) {
  Settings s;
  ASSERT_EQ(Read("# The server.\n"
                 "listen: 127.0.0.1:4443\n"
                 "verbose: true\n"
                 "workers: 8\n"
                 "share: 0.25\n"
                 "cooldown: 1m30s\n"
                 "store:\n"
                 "  path: \"/var/lib/spoke\"\n"
                 "zones: [a, 'b c', 3]\n"
                 "pools:\n"
                 "  - cidr: 10.0.0.0/16\n"
                 "  - {cidr: 10.1.0.0/16, reserve: 0}\n",
                 &s),
            "");
  EXPECT_EQ(s.listen, "127.0.0.1:4443");
  EXPECT_TRUE(s.verbose);
  EXPECT_EQ(s.workers, 8U);
  EXPECT_EQ(s.share, 0.25);
  EXPECT_EQ(s.cooldown, absl::Seconds(90));
  EXPECT_EQ(s.store_path, "/var/lib/spoke");
  EXPECT_THAT(s.zones, ElementsAre("a", "b c", "3"));
  ASSERT_EQ(s.pools.size(), 2U);
  EXPECT_EQ(s.pools[0].reserve, 4U);
  EXPECT_EQ(s.pools[1].cidr, "10.1.0.0/16");
  EXPECT_EQ(s.pools[1].reserve, 0U);
}

TEST(ConfigText, AbsentOptionalKeysKeepTheirDefaults) {
  Settings s;
  ASSERT_EQ(Read("listen: x", &s), "");
  EXPECT_EQ(s.workers, 2U);
  EXPECT_EQ(s.cooldown, absl::Seconds(30));
  EXPECT_THAT(s.zones, ElementsAre("default"));
  EXPECT_THAT(s.pools, IsEmpty());
}

TEST(ConfigText, ReportsEveryMistakeAtOnceInTheOrderOfTheFile) {
  Settings s;
  EXPECT_EQ(Read("verbose: yes\n"
                 "workers: 65\n"
                 "share: much\n"
                 "cooldown: 30\n"
                 "zones: a\n"
                 "pools:\n"
                 "  - cidr: 10.0.0.0/16\n"
                 "    reserv: 3\n"
                 "  - reserve: -1\n"
                 "  - just text\n"
                 "store: []\n"
                 "colour: blue\n",
                 &s),
            "f.yaml:1: listen: is required but missing\n"
            "f.yaml:1: verbose: must be true or false, not \"yes\"\n"
            "f.yaml:2: workers: must be a whole number from 1 to 64, not \"65\"\n"
            "f.yaml:3: share: must be a number from 0 up to 1, not \"much\"\n"
            "f.yaml:4: cooldown: must be a number with a unit (h, m, s, ms, us, ns) such as 30s or "
            "250ms, not \"30\"\n"
            "f.yaml:5: zones: must be a list, not a single value\n"
            "f.yaml:8: pools[0].reserv: unknown key; did you mean \"reserve\"?\n"
            "f.yaml:9: pools[1].cidr: is required but missing\n"
            "f.yaml:9: pools[1].reserve: must be a whole number from 0 to 4294967295, not \"-1\"\n"
            "f.yaml:10: pools[2]: must be a map, not a single value\n"
            "f.yaml:11: store: must be a map, not a list\n"
            "f.yaml:12: colour: unknown key; known here: cooldown, listen, pools, share, store, "
            "verbose, workers, zones");
  EXPECT_EQ(s.workers, 2U);  // A wrong value leaves the default.
  EXPECT_THAT(s.zones, ElementsAre("default"));
}

struct Case {
  std::string name;
  std::string text;
  std::string want;  // A part of the one mistake.
};

class RefusedFieldTest : public testing::TestWithParam<Case> {};

TEST_P(RefusedFieldTest, IsOneMistakeWithItsLine) {
  const std::string got = Read("listen: x\n" + GetParam().text);
  EXPECT_THAT(got, HasSubstr(GetParam().want));
  EXPECT_THAT(got, StartsWith("f.yaml:2: "));
  EXPECT_THAT(got, Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RefusedFieldTest,
    testing::Values(Case{"ListForText", "store: {path: [a]}",
                         "store.path: must be text, not a list"},
                    Case{"MapForText", "store: {path: {a: b}}", "must be text, not a map"},
                    Case{"MapForList", "zones: {a: b}", "must be a list, not a map"},
                    Case{"ListForBool", "verbose: [true]", "verbose: must be text, not a list"},
                    Case{"TextForMap", "store: /var", "must be a map, not a single value"},
                    Case{"NoValue", "workers:", "workers: has no value"},
                    Case{"Null", "workers: null", "workers: has no value"},
                    Case{"NullSection", "store:", "store: has no value: it must be a map"},
                    Case{"NullItem", "zones: [a, ~]", "zones[1]: has no value"},
                    Case{"EmptyText", "store: {path: \"\"}", "store.path: must not be empty text"},
                    Case{"EmptyItem", "zones: ['']", "zones[0]: must not be empty text"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Scalars, RefusedFieldTest,
    testing::Values(
        Case{"BoolInCapitals", "verbose: True", "must be true or false, not \"True\""},
        Case{"BoolInQuotes", "verbose: \"true\"", "must be true or false, without quotes"},
        Case{"NumberInQuotes", "workers: '5'", "whole number from 1 to 64, without quotes"},
        Case{"BelowLimit", "workers: 0", "from 1 to 64, not \"0\""},
        Case{"Fraction", "workers: 1.5", "not \"1.5\""},
        Case{"Hexadecimal", "workers: 0x10", "not \"0x10\""},
        Case{"Octal", "workers: 010", "not \"010\""}, Case{"Plus", "workers: +5", "not \"+5\""},
        Case{"TooLargeForTheType", "workers: 4294967297", "not \"4294967297\""},
        Case{"TrailingText", "workers: 5 apples", "not \"5 apples\""},
        Case{"DoubleAbove", "share: 1.01", "from 0 up to 1"},
        Case{"DoubleInfinite", "share: inf", "not \"inf\""},
        Case{"DoubleNan", "share: nan", "not \"nan\""},
        Case{"DoubleHuge", "share: 1e999", "not \"1e999\""},
        Case{"DurationZeroWithoutUnit", "cooldown: 0", "with a unit"},
        Case{"DurationBelow", "cooldown: 999ms", "must be from 1s to 1h, not \"999ms\""},
        Case{"DurationAbove", "cooldown: 61m", "must be from 1s to 1h"},
        Case{"DurationNegative", "cooldown: -5s", "must be from 1s to 1h"},
        Case{"DurationEndless", "cooldown: inf", "with a unit"},
        Case{"DurationTooLong", "cooldown: 99999999999999999h", "with a unit"},
        Case{"DurationUnknownUnit", "cooldown: 2days", "with a unit"},
        Case{"DurationUnitAlone", "cooldown: s", "with a unit"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Documents, RefusedFieldTest,
    testing::Values(
        Case{"DuplicateKey", "listen: y", "listen: is given twice: line 1 has it already"},
        Case{"DuplicateKeyInside", "store: {path: a, path: b}", "store.path: is given twice"},
        Case{"SecondDocument", "---\nlisten: y", "a second document starts here"},
        Case{"Anchor", "zones: &z [a]", "zones: anchors (&name) are not supported"},
        Case{"Tag", "workers: !!int 5", "tags (\"tag:yaml.org,2002:int\") are not supported"},
        Case{"MergeKey", "<<: {workers: 5}", "\"<<\": unknown key"},
        Case{"ListAsKey", "? [a]\n: b", "a key must be text"},
        Case{"Tab", "\tworkers: 5", "a tab in the indentation: use spaces"},
        Case{"Unclosed", "zones: [a", "not valid YAML"},
        Case{"UnknownSection", "stor: {path: a}", "stor: unknown key; did you mean \"store\"?"},
        Case{"UnknownIsNotDescendedInto", "colour: {a: {b: c}}", "colour: unknown key; known"}),
    [](const auto& test) { return test.param.name; });

TEST(ConfigText, ABrokenFileGivesOneMistakeAndNoMissingKeys) {
  EXPECT_EQ(Read("listen: [a\nverbose: maybe\n").find("f.yaml:"), 0U);
  EXPECT_THAT(Read("listen: [a\nverbose: maybe\n"), Not(HasSubstr("required")));
  EXPECT_EQ(Read(""), "f.yaml:1: the file is empty");
  EXPECT_EQ(Read("# only a comment\n"), "f.yaml:1: the file is empty");
  EXPECT_THAT(Read("~"), HasSubstr("the file is empty"));
  EXPECT_EQ(Read("- a\n"), "f.yaml:1: the file must be a map (key: value), not a list");
  EXPECT_EQ(Read("hello"), "f.yaml:1: the file must be a map (key: value), not a single value");
}

TEST(ConfigText, AnEmptyMapLacksWhatIsRequired) {
  EXPECT_EQ(Read("{}"), "f.yaml:1: listen: is required but missing");
}

TEST(ConfigText, ARequiredSectionIsOneMistakeNotOneForEachOfItsKeys) {
  const ConfigText config = ConfigText::Parse("a: 1", "f");
  std::string unused;
  uint32_t a = 0;
  config.Root().Uint32("a", &a, Need::kRequired);
  const ConfigMap tls = config.Root().Map("tls", Need::kRequired);
  EXPECT_FALSE(tls.present());
  tls.String("key", &unused, Need::kRequired);
  tls.Map("deeper", Need::kRequired).Error("x", "never seen");
  EXPECT_EQ(Mistakes(config), "f:1: tls: is required but missing");
}

TEST(ConfigText, CustomFieldsSayWhatTheirParserSays) {
  const ConfigText config = ConfigText::Parse("mode: fast\nlist:\n  - ok\n  - bad\n  - [x]\n", "f");
  const auto parse = [](std::string_view text) -> absl::Status {
    if (text == "ok") return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("must be ok,\nnot {}", std::string(text)));  // Two lines become one.
  };
  config.Root().Custom("mode", Need::kRequired, parse);
  config.Root().Custom("absent", Need::kOptional, parse);
  config.Root().CustomList("list", Need::kRequired, parse);
  EXPECT_EQ(Mistakes(config),
            "f:1: mode: must be ok, not fast\n"
            "f:4: list[1]: must be ok, not bad\n"
            "f:5: list[2]: must be text, not a list");
}

TEST(ConfigText, TheCallersMistakesStandAtTheirKey) {
  const ConfigText config =
      ConfigText::Parse("pools:\n  - name: a\n    cidr: x\n  - name: b\n", "f");
  for (const ConfigMap& pool : config.Root().MapList("pools", Need::kRequired)) {
    EXPECT_TRUE(pool.Has("name"));
    if (pool.Has("cidr")) {
      pool.Error("cidr", "overlaps pools[1]");
    } else {
      pool.Error("cidr", "is needed here");
      pool.Error("", "has no block");
    }
  }
  EXPECT_EQ(Mistakes(config),
            "f:3: pools[0].cidr: overlaps pools[1]\n"
            "f:4: pools[1].cidr: is needed here\n"
            "f:4: pools[1]: has no block");
}

TEST(ConfigText, MapsWhoseKeysAreDataListThem) {
  const ConfigText config = ConfigText::Parse("teams:\n  red: [a]\n  blue: [b]\n", "f");
  const ConfigMap teams = config.Root().Map("teams", Need::kRequired);
  EXPECT_THAT(teams.Keys(), ElementsAre("red", "blue"));
  for (const std::string& team : teams.Keys()) {
    std::vector<std::string> namespaces;
    teams.StringList(team, &namespaces, Need::kRequired);
    EXPECT_EQ(namespaces.size(), 1U);
  }
  EXPECT_EQ(Mistakes(config), "");
}

TEST(ConfigText, AListIsTakenWholeOrNotAtAll) {
  Settings s;
  EXPECT_NE(Read("listen: x\nzones: [a, {b: c}]\n", &s), "");
  EXPECT_THAT(s.zones, ElementsAre("default"));
  EXPECT_EQ(Read("listen: x\nzones: []\n", &s), "");
  EXPECT_THAT(s.zones, IsEmpty());
}

TEST(ConfigText, ALimitMayStandAlone) {
  const ConfigText config = ConfigText::Parse("a: 0\nb: 9\nc: -2\n", "f");
  uint32_t number = 0;
  double fraction = 0;
  config.Root().Uint32("a", &number, Need::kRequired, {.min = 1});
  config.Root().Uint32("b", &number, Need::kRequired, {.min = 1});
  config.Root().Double("c", &fraction, Need::kRequired, {.max = -1});
  EXPECT_EQ(Mistakes(config), "f:1: a: must be a whole number from 1 to 4294967295, not \"0\"");
  EXPECT_EQ(number, 9U);
  EXPECT_EQ(fraction, -2);
}

TEST(ConfigText, LinesAndPathsPointAtTheMapItself) {
  const ConfigText config = ConfigText::Parse("a:\n  b:\n    - c: 1\n", "f");
  const auto list = config.Root().Map("a", Need::kRequired).MapList("b", Need::kRequired);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].path(), "a.b[0]");
  EXPECT_EQ(list[0].line(), 3);
}

TEST(ConfigText, FinishGivesTheSameTwiceAndSurvivesAMove) {
  ConfigText first = ConfigText::Parse("a: 1", "f");
  const ConfigMap root = first.Root();
  const ConfigText second = std::move(first);
  EXPECT_FALSE(root.Has("b"));
  EXPECT_THAT(Mistakes(second), HasSubstr("a: unknown key"));
  EXPECT_EQ(Mistakes(second), Mistakes(second));
}

TEST(ConfigText, ManyMistakesAreCutAndCounted) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("k{}: 1\n", i);
  const ConfigText config = ConfigText::Parse(text, "f");
  EXPECT_FALSE(config.Root().Has("other"));
  const std::string got = Mistakes(config);
  EXPECT_EQ(std::count(got.begin(), got.end(), '\n'), ConfigText::kMaxMistakes);
  EXPECT_THAT(got, HasSubstr("and 950 more"));
}

TEST(ConfigText, AMessageStaysOneLineWhateverTheValueHolds) {
  const std::string got = Read("listen: x\nworkers: 1 \\x\nstore: {path: x, \"a\\nb\": 1}\n");
  EXPECT_THAT(got, HasSubstr("store.\"a\\x0ab\": unknown key"));
  const std::string longer = Read("listen: x\nworkers: " + std::string(5000, 'a') + "\n");
  EXPECT_LT(longer.size(), 200U);
}

TEST(ConfigTextParseAll, EachDocumentIsReadByItself) {
  const auto all = ConfigText::ParseAll("a: x\nz: 1\n---\nlist:\n  - p\n  - q\n---\n- 1\n", "f");
  ASSERT_EQ(all.size(), 3U);
  std::string text;
  all[0].Root().String("a", &text, Need::kRequired);
  EXPECT_EQ(text, "x");
  ASSERT_EQ(all[0].Mistakes().size(), 1U);
  EXPECT_EQ(all[0].Mistakes()[0].line, 2);
  EXPECT_EQ(all[0].Mistakes()[0].path, "z");
  const ConfigMap second = all[1].Root();
  std::vector<std::string> items;
  second.StringList("list", &items, Need::kRequired);
  EXPECT_EQ(second.LineOf("list"), 4);
  EXPECT_EQ(second.LineOf("list", 1), 6);
  EXPECT_EQ(second.LineOf("list", 7), 4);
  EXPECT_EQ(second.LineOf("absent", 7), 4);
  EXPECT_TRUE(all[1].Mistakes().empty());
  EXPECT_FALSE(all[2].Root().present());
  EXPECT_EQ(all[2].Root().LineOf("a"), 1);
  EXPECT_EQ(base::MessageOf(all[2].Finish()),
            "f:8: the document must be a map (key: value), not a list");
}

TEST(ConfigMapIsEmptyList, OnlyOfAListWithoutItems) {
  const ConfigText text = ConfigText::Parse("none: []\nsome: [1]\nmap: {}\nnothing:\n", "f");
  EXPECT_TRUE(text.Root().IsEmptyList("none"));
  for (const char* key : {"some", "map", "nothing", "absent"}) {
    EXPECT_FALSE(text.Root().IsEmptyList(key)) << key;
  }
}

}  // namespace
}  // namespace spoke::config
