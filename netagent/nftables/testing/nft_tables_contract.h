// The promises of nft::Tables, as tests. Each implementation's test file instantiates them with a
// factory for a world of its own: a fake, or a fresh namespace of the real kernel.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/nft/tables.h"

namespace spoke::netagent {

class NftTablesWorld {
 public:
  virtual ~NftTablesWorld() = default;
  virtual nft::Tables& tables() = 0;
};

struct NftTablesWorldFactory {
  std::string name;
  // The factory; null where this machine cannot have such a world (no right to make namespaces).
  std::function<std::unique_ptr<NftTablesWorld>()> make;
};

class NftTablesContract : public testing::TestWithParam<NftTablesWorldFactory> {
 protected:
  void SetUp() override {
    world_ = GetParam().make();
    if (world_ == nullptr) {
      // A skip must not pass for a success.
      ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
      GTEST_SKIP() << "cannot make network namespaces";
    }
    Add(nft::AddTable{});
    ASSERT_TRUE(Commit().ok());
  }

  // Collects steps for kTable, and applies them.
  void Add(nft::Change change) { steps_.Add(kTable, std::move(change)); }
  void Add(const nft::TableKey& table, nft::Change change) { steps_.Add(table, std::move(change)); }
  absl::Status Commit() { return tables().Apply(std::exchange(steps_, {})); }

  nft::Tables& tables() { return world_->tables(); }
  NftTablesWorld& world() { return *world_; }

  struct Seen {
    nft::Bytes key;
    nft::Bytes last = {};
    nft::Bytes value = {};
    uint64_t packets = 0;
    uint64_t bytes = 0;
    bool operator==(const Seen&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Seen& seen) {
      return out << testing::PrintToString(
                 std::tuple(seen.key, seen.last, seen.value, seen.packets, seen.bytes));
    }
  };
  // Returns the elements, by key.
  std::vector<Seen> Elements(const std::string& set) {
    const auto read = tables().ReadSet(kTable, set);
    EXPECT_TRUE(read.ok()) << read.status();
    std::vector<Seen> seen;
    if (!read.ok()) return seen;
    for (const nft::ElementReading& reading : *read) {
      const nft::Element& element = reading.element;
      seen.push_back({element.key, element.last, element.value, reading.packets, reading.bytes});
    }
    std::sort(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) { return a.key < b.key; });
    return seen;
  }

  // Returns "name packets/bytes", sorted.
  std::vector<std::string> Counters() {
    const auto read = tables().ReadCounters(kTable);
    EXPECT_TRUE(read.ok()) << read.status();
    std::vector<std::string> counters;
    if (!read.ok()) return counters;
    for (const nft::CounterReading& reading : *read) {
      counters.push_back(reading.name + " " + std::to_string(reading.packets) + "/" +
                         std::to_string(reading.bytes));
    }
    std::sort(counters.begin(), counters.end());
    return counters;
  }

  // Returns comments and counts, in order.
  std::vector<std::string> RulesOf(const std::string& chain) {
    const auto read = tables().ReadRules(kTable);
    EXPECT_TRUE(read.ok()) << read.status();
    std::vector<std::string> rules;
    if (!read.ok()) return rules;
    for (const nft::RuleReading& reading : *read) {
      if (reading.chain != chain) continue;
      rules.push_back(reading.comment + " " + std::to_string(reading.packets) + "/" +
                      std::to_string(reading.bytes));
    }
    return rules;
  }

  static nft::Set PodSet() {
    return {
        .name = "pods4", .key = {nft::Field::kInterfaceIndex, nft::Field::kIpv4}, .counts = true};
  }
  static nft::Set ClassMap() {
    return {.name = "class4",
            .key = {nft::Field::kIpv4},
            .value = nft::Field::kMark,
            .intervals = true};
  }
  static nft::Bytes PodKey(uint32_t index, uint8_t host) {
    return nft::Join({nft::HostOrder(index), {10, 0, 0, host}});
  }
  static nft::Element Range(nft::Bytes first, nft::Bytes last, uint32_t number) {
    return {.key = std::move(first), .last = std::move(last), .value = nft::HostOrder(number)};
  }
  static nft::Chain FilterChain(const std::string& name, int32_t priority = -150) {
    return {.name = name, .base = nft::BaseHook{.hook = nft::Hook::kForward, .priority = priority}};
  }
  static nft::Rule Jump(const std::string& from, const std::string& to) {
    return {.chain = from, .expressions = {nft::Verdict{nft::VerdictKind::kJump, to}}};
  }

  const nft::TableKey kTable{nft::Family::kInet, "spoke"};

 private:
  std::unique_ptr<NftTablesWorld> world_;
  nft::Transaction steps_;
};

// This is a macro, so that a failure names the line of the test.
#define EXPECT_CODE(expression, wanted)                                     \
  do {                                                                      \
    const absl::Status code_status = (expression);                          \
    EXPECT_EQ(code_status.code(), absl::StatusCode::wanted) << code_status; \
  } while (false)

TEST_P(NftTablesContract, NothingIsDoneForNothing) {
  const auto before = tables().Generation();
  EXPECT_CODE(Commit(), kOk);
  const auto after = tables().Generation();
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(*before, *after);
}

TEST_P(NftTablesContract, TheGenerationRisesWithEachTransaction) {
  const auto before = tables().Generation();
  Add(nft::AddTable{});
  Add(nft::AddCounter{"drop/x", {}});
  EXPECT_CODE(Commit(), kOk);
  const auto after = tables().Generation();
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_GT(*after, *before);
}

TEST_P(NftTablesContract, WhatIsAddedAgainKeepsWhatItHasCounted) {
  const nft::Element element{.key = PodKey(7, 1), .seed = {.packets = 3, .bytes = 900}};
  for (int round = 0; round < 2; ++round) {
    Add(nft::AddTable{});
    Add(nft::AddSet{PodSet()});
    Add(nft::AddElements{"pods4", {element, {.key = PodKey(8, 2)}}});
    Add(nft::AddCounter{"ns/a/cluster/sent", {.packets = 5, .bytes = 50}});
    ASSERT_TRUE(Commit().ok());
  }
  // Neither another seed nor none changes what is there.
  Add(nft::AddElements{"pods4", {{.key = PodKey(7, 1)}, {.key = PodKey(8, 2), .seed = {1, 1}}}});
  Add(nft::AddCounter{"ns/a/cluster/sent", {}});
  EXPECT_CODE(Commit(), kOk);
  EXPECT_THAT(Elements("pods4"),
              testing::ElementsAre(Seen{PodKey(7, 1), {}, {}, 3, 900}, Seen{PodKey(8, 2)}));
  EXPECT_THAT(Counters(), testing::ElementsAre("ns/a/cluster/sent 5/50"));
}

TEST_P(NftTablesContract, CountsSurviveAChangeOfAllRules) {
  Add(nft::AddSet{PodSet()});
  Add(nft::AddElements{"pods4", {{.key = PodKey(7, 1), .seed = {3, 900}}}});
  Add(nft::AddCounter{"drop/x", {1, 60}});
  Add(nft::AddChain{FilterChain("forward")});
  const nft::Rule old{.chain = "forward",
                      .expressions = {nft::CountHere{9, 99}, nft::CountIn{"drop/x"}},
                      .comment = "old"};
  Add(nft::AddRule{old});
  ASSERT_TRUE(Commit().ok());
  ASSERT_THAT(RulesOf("forward"), testing::ElementsAre("old 9/99"));

  Add(nft::AddTable{});
  Add(nft::AddSet{PodSet()});
  Add(nft::AddCounter{"drop/x", {}});
  Add(nft::AddChain{FilterChain("forward")});
  Add(nft::FlushChain{"forward"});
  Add(nft::AddRule{{.chain = "forward",
                    .expressions = {nft::LoadMeta{nft::MetaKey::kInterface, 0},
                                    nft::LoadPayload{nft::Header::kNetwork, 12, 4, 1},
                                    nft::LookUp{.set = "pods4"}, nft::CountHere{}},
                    .comment = "new"}});
  Add(nft::AddRule{{.chain = "forward",
                    .expressions = {nft::CountIn{"drop/x"}, nft::Verdict{nft::VerdictKind::kDrop}},
                    .comment = "drop"}});
  ASSERT_TRUE(Commit().ok());
  EXPECT_THAT(Elements("pods4"), testing::ElementsAre(Seen{PodKey(7, 1), {}, {}, 3, 900}));
  EXPECT_THAT(Counters(), testing::ElementsAre("drop/x 1/60"));
  EXPECT_THAT(RulesOf("forward"), testing::ElementsAre("new 0/0", "drop 0/0"));
}

TEST_P(NftTablesContract, ACounterIsReplacedInOneTransaction) {
  Add(nft::AddCounter{"ns/a/hub/sent", {2, 20}});
  ASSERT_TRUE(Commit().ok());
  Add(nft::DeleteCounter{"ns/a/hub/sent"});
  Add(nft::AddCounter{"ns/a/hub/sent", {5, 70}});
  EXPECT_CODE(Commit(), kOk);
  EXPECT_THAT(Counters(), testing::ElementsAre("ns/a/hub/sent 5/70"));
}

TEST_P(NftTablesContract, ARefusedTransactionChangesNothingAndNamesItsStep) {
  Add(nft::AddSet{PodSet()});
  Add(nft::AddElements{"pods4", {{.key = PodKey(7, 1)}}});
  ASSERT_TRUE(Commit().ok());
  Add(nft::AddElements{"pods4", {{.key = PodKey(8, 2)}}});
  Add(nft::DeleteElements{"pods4", {{.key = PodKey(7, 1)}}});
  Add(nft::AddCounter{"drop/x", {}});
  Add(nft::AddRule{{.chain = "nowhere", .expressions = {nft::Verdict{}}}});
  const absl::Status status = Commit();
  EXPECT_CODE(status, kNotFound);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("step 4 of 4, add rule inet spoke nowhere"));
  EXPECT_THAT(Elements("pods4"), testing::ElementsAre(Seen{PodKey(7, 1)}));
  EXPECT_THAT(Counters(), testing::IsEmpty());
}

TEST_P(NftTablesContract, IntervalsComeBackSortedAsTheyWentIn) {
  Add(nft::AddSet{ClassMap()});
  // The elements are the whole space, in no order, neighbours adjoining.
  Add(nft::AddElements{
      "class4",
      {Range({10, 1, 0, 0}, {10, 1, 255, 255}, 3), Range({0, 0, 0, 0}, {9, 255, 255, 255}, 7),
       Range({10, 2, 0, 0}, {255, 255, 255, 255}, 7), Range({10, 0, 0, 0}, {10, 0, 255, 255}, 4)}});
  ASSERT_TRUE(Commit().ok());
  const std::vector<Seen> want = {{{0, 0, 0, 0}, {9, 255, 255, 255}, nft::HostOrder(7)},
                                  {{10, 0, 0, 0}, {10, 0, 255, 255}, nft::HostOrder(4)},
                                  {{10, 1, 0, 0}, {10, 1, 255, 255}, nft::HostOrder(3)},
                                  {{10, 2, 0, 0}, {255, 255, 255, 255}, nft::HostOrder(7)}};
  EXPECT_EQ(Elements("class4"), want);
  // The same once more changes nothing.
  Add(nft::AddElements{"class4", {Range({10, 1, 0, 0}, {10, 1, 255, 255}, 3)}});
  EXPECT_CODE(Commit(), kOk);
  EXPECT_EQ(Elements("class4"), want);
}

TEST_P(NftTablesContract, AnIntervalGoesWithoutItsNeighbours) {
  Add(nft::AddSet{ClassMap()});
  Add(nft::AddElements{
      "class4",
      {Range({10, 0, 0, 0}, {10, 0, 255, 255}, 4), Range({10, 1, 0, 0}, {10, 1, 255, 255}, 3),
       Range({10, 2, 0, 0}, {10, 2, 255, 255}, 5)}});
  ASSERT_TRUE(Commit().ok());
  Add(nft::DeleteElements{"class4", {Range({10, 1, 0, 0}, {10, 1, 255, 255}, 3)}});
  EXPECT_CODE(Commit(), kOk);
  EXPECT_THAT(Elements("class4"),
              testing::ElementsAre(Seen{{10, 0, 0, 0}, {10, 0, 255, 255}, nft::HostOrder(4)},
                                   Seen{{10, 2, 0, 0}, {10, 2, 255, 255}, nft::HostOrder(5)}));
}

TEST_P(NftTablesContract, AMapIsReplacedInOneTransaction) {
  Add(nft::AddSet{ClassMap()});
  Add(nft::AddElements{"class4",
                       {Range({0, 0, 0, 0}, {127, 255, 255, 255}, 1),
                        Range({128, 0, 0, 0}, {255, 255, 255, 255}, 2)}});
  ASSERT_TRUE(Commit().ok());
  Add(nft::FlushSet{"class4"});
  Add(nft::AddElements{
      "class4",
      {Range({0, 0, 0, 0}, {127, 255, 255, 255}, 5), Range({128, 0, 0, 0}, {191, 255, 255, 255}, 6),
       Range({192, 0, 0, 0}, {255, 255, 255, 255}, 2)}});
  EXPECT_CODE(Commit(), kOk);
  EXPECT_THAT(Elements("class4"),
              testing::ElementsAre(Seen{{0, 0, 0, 0}, {127, 255, 255, 255}, nft::HostOrder(5)},
                                   Seen{{128, 0, 0, 0}, {191, 255, 255, 255}, nft::HostOrder(6)},
                                   Seen{{192, 0, 0, 0}, {255, 255, 255, 255}, nft::HostOrder(2)}));
}

TEST_P(NftTablesContract, WhatIsThereWithAnotherValueOrOverlapsIsRefused) {
  Add(nft::AddSet{ClassMap()});
  Add(nft::AddElements{"class4", {Range({10, 0, 0, 0}, {10, 0, 255, 255}, 4)}});
  ASSERT_TRUE(Commit().ok());
  const std::vector<Seen> want = {{{10, 0, 0, 0}, {10, 0, 255, 255}, nft::HostOrder(4)}};
  for (const nft::Element& element :
       {Range({10, 0, 0, 0}, {10, 0, 255, 255}, 5), Range({10, 0, 128, 0}, {10, 1, 255, 255}, 4),
        Range({10, 0, 4, 0}, {10, 0, 7, 255}, 4)}) {
    Add(nft::AddElements{"class4", {element}});
    EXPECT_CODE(Commit(), kAlreadyExists);
    EXPECT_EQ(Elements("class4"), want);
  }
}

TEST_P(NftTablesContract, AnElementThatIsNotThereCannotBeDeleted) {
  Add(nft::AddSet{PodSet()});
  Add(nft::AddElements{"pods4", {{.key = PodKey(7, 1)}}});
  ASSERT_TRUE(Commit().ok());
  Add(nft::DeleteElements{"pods4", {{.key = PodKey(7, 1)}, {.key = PodKey(8, 1)}}});
  EXPECT_CODE(Commit(), kNotFound);
  EXPECT_EQ(Elements("pods4").size(), 1U);
}

TEST_P(NftTablesContract, AVerdictMapLeadsToChainsThatAreThere) {
  Add(nft::AddSet{{.name = "by_link", .key = {nft::Field::kInterfaceIndex}, .verdicts = true}});
  Add(nft::AddChain{{.name = "pod"}});
  Add(nft::AddChain{FilterChain("forward")});
  const nft::Verdict jump{nft::VerdictKind::kJump, "pod"};
  Add(nft::AddElements{
      "by_link",
      {{.key = nft::HostOrder(1), .verdict = jump},
       {.key = nft::HostOrder(2), .verdict = nft::Verdict{nft::VerdictKind::kDrop}}}});
  Add(nft::AddRule{{.chain = "forward",
                    .expressions = {nft::LoadMeta{nft::MetaKey::kInterface, 0},
                                    nft::LookUp{.set = "by_link", .verdict = true}}}});
  ASSERT_TRUE(Commit().ok());
  auto read = tables().ReadSet(kTable, "by_link");
  ASSERT_TRUE(read.ok()) << read.status();
  std::sort(read->begin(), read->end(),
            [](const auto& a, const auto& b) { return a.element.key < b.element.key; });
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].element.verdict, jump);
  EXPECT_EQ((*read)[1].element.verdict, nft::Verdict{nft::VerdictKind::kDrop});

  Add(nft::DeleteChain{"pod"});
  EXPECT_CODE(Commit(), kFailedPrecondition);
  Add(nft::AddElements{
      "by_link",
      {{.key = nft::HostOrder(3), .verdict = nft::Verdict{nft::VerdictKind::kJump, "nowhere"}}}});
  EXPECT_CODE(Commit(), kNotFound);
}

TEST_P(NftTablesContract, OneRuleIsDeletedByItsHandle) {
  Add(nft::AddChain{{.name = "pod"}});
  for (const char* comment : {"a", "b", "c"}) {
    Add(nft::AddRule{{.chain = "pod", .expressions = {nft::CountHere{}}, .comment = comment}});
  }
  ASSERT_TRUE(Commit().ok());
  auto rules = tables().ReadRules(kTable);
  ASSERT_TRUE(rules.ok() && rules->size() == 3) << rules.status();
  const uint64_t handle = (*rules)[1].handle;
  Add(nft::DeleteRule{"pod", handle});
  EXPECT_CODE(Commit(), kOk);
  rules = tables().ReadRules(kTable);
  ASSERT_TRUE(rules.ok() && rules->size() == 2) << rules.status();
  EXPECT_EQ((*rules)[0].comment, "a");
  EXPECT_EQ((*rules)[1].comment, "c");
  Add(nft::DeleteRule{"pod", handle});
  EXPECT_CODE(Commit(), kNotFound);
  Add(nft::DeleteRule{"pod", 0});
  EXPECT_CODE(Commit(), kInvalidArgument);
}

TEST_P(NftTablesContract, WhatARuleUsesCannotBeDeletedBeforeTheRule) {
  Add(nft::AddSet{PodSet()});
  Add(nft::AddCounter{"drop/x", {}});
  Add(nft::AddChain{{.name = "pod"}});
  Add(nft::AddChain{FilterChain("forward")});
  Add(nft::AddRule{{.chain = "forward",
                    .expressions = {nft::LoadMeta{nft::MetaKey::kInterface, 0},
                                    nft::LoadPayload{nft::Header::kNetwork, 12, 4, 1},
                                    nft::LookUp{.set = "pods4"}, nft::CountIn{"drop/x"}}}});
  Add(nft::AddRule{Jump("forward", "pod")});
  ASSERT_TRUE(Commit().ok());
  const std::vector<nft::Change> deletions = {nft::DeleteSet{"pods4"}, nft::DeleteCounter{"drop/x"},
                                              nft::DeleteChain{"pod"}};
  for (const nft::Change& deletion : deletions) {
    Add(deletion);
    EXPECT_CODE(Commit(), kFailedPrecondition);
  }
  Add(nft::FlushChain{"forward"});
  for (const nft::Change& deletion : deletions) Add(deletion);
  EXPECT_CODE(Commit(), kOk);
  EXPECT_CODE(tables().ReadSet(kTable, "pods4").status(), kNotFound);
}

TEST_P(NftTablesContract, AFullSetTakesNoMore) {
  nft::Set set = PodSet();
  set.size = 2;
  Add(nft::AddSet{set});
  Add(nft::AddElements{"pods4", {{.key = PodKey(1, 1)}, {.key = PodKey(2, 2)}}});
  ASSERT_TRUE(Commit().ok());
  // An element that is there already is not one more.
  Add(nft::AddElements{"pods4", {{.key = PodKey(2, 2)}}});
  EXPECT_CODE(Commit(), kOk);
  Add(nft::AddElements{"pods4", {{.key = PodKey(3, 3)}}});
  EXPECT_CODE(Commit(), kResourceExhausted);
  EXPECT_EQ(Elements("pods4").size(), 2U);
}

TEST_P(NftTablesContract, ADynamicSetIsFilledByHandAsWell) {
  const nft::Set set{.name = "sent4",
                     .key = {nft::Field::kIpv4, nft::Field::kMark},
                     .dynamic = true,
                     .counts = true,
                     .size = 65'536};
  Add(nft::AddSet{set});
  Add(nft::AddChain{FilterChain("forward")});
  Add(nft::AddRule{
      {.chain = "forward",
       .expressions = {nft::LoadPayload{nft::Header::kNetwork, 12, 4, 0},
                       nft::LoadMeta{nft::MetaKey::kMark, 1}, nft::PutInSet{.set = "sent4"}}}});
  const nft::Bytes key = nft::Join({{10, 0, 0, 1}, nft::HostOrder(3)});
  Add(nft::AddElements{"sent4", {{.key = key, .seed = {4, 400}}}});
  ASSERT_TRUE(Commit().ok());
  EXPECT_THAT(Elements("sent4"), testing::ElementsAre(Seen{key, {}, {}, 4, 400}));
  Add(nft::AddSet{set});
  Add(nft::DeleteElements{"sent4", {{.key = key}}});
  EXPECT_CODE(Commit(), kOk);
  EXPECT_THAT(Elements("sent4"), testing::IsEmpty());
}

TEST_P(NftTablesContract, AnotherDescriptionIsRefused) {
  Add(nft::AddSet{PodSet()});
  Add(nft::AddChain{FilterChain("forward")});
  ASSERT_TRUE(Commit().ok());
  nft::Set other = PodSet();
  other.key = {nft::Field::kIpv4};
  Add(nft::AddSet{other});
  EXPECT_CODE(Commit(), kAlreadyExists);
  // Kernels differ in what they say to another priority.
  Add(nft::AddChain{FilterChain("forward", 0)});
  EXPECT_THAT(Commit().code(),
              testing::AnyOf(absl::StatusCode::kAlreadyExists, absl::StatusCode::kUnimplemented));
}

TEST_P(NftTablesContract, WhatIsNotThereIsNamed) {
  const nft::TableKey other{nft::Family::kInet, "other"};
  EXPECT_CODE(tables().ReadSet(other, "pods4").status(), kNotFound);
  EXPECT_CODE(tables().ReadSet(kTable, "pods4").status(), kNotFound);
  EXPECT_CODE(tables().ReadCounters(other).status(), kNotFound);
  EXPECT_CODE(tables().ReadRules(other).status(), kNotFound);
  const std::vector<nft::Change> changes = {nft::FlushChain{"x"},
                                            nft::DeleteChain{"x"},
                                            nft::AddRule{Jump("x", "y")},
                                            nft::DeleteSet{"x"},
                                            nft::FlushSet{"x"},
                                            nft::AddElements{"x", {{.key = {1, 2, 3, 4}}}},
                                            nft::DeleteElements{"x", {{.key = {1, 2, 3, 4}}}},
                                            nft::DeleteCounter{"x"}};
  for (const nft::Change& change : changes) {
    Add(change);
    EXPECT_CODE(Commit(), kNotFound);
    Add(other, change);
    EXPECT_CODE(Commit(), kNotFound);
  }
  Add(nft::AddChain{{.name = "from"}});
  Add(nft::AddRule{{.chain = "from", .expressions = {nft::LookUp{.set = "x"}}}});
  EXPECT_CODE(Commit(), kNotFound);
  Add(nft::AddChain{{.name = "from"}});
  Add(nft::AddRule{{.chain = "from", .expressions = {nft::CountIn{"x"}}}});
  EXPECT_CODE(Commit(), kNotFound);
  Add(nft::AddChain{{.name = "from"}});
  Add(nft::AddRule{Jump("from", "x")});
  EXPECT_CODE(Commit(), kNotFound);
}

TEST_P(NftTablesContract, ATableGoesWithAllInItAndMayBeGoneAlready) {
  Add(nft::AddSet{PodSet()});
  Add(nft::AddChain{FilterChain("forward")});
  Add(nft::AddCounter{"drop/x", {}});
  Add(nft::AddRule{{.chain = "forward", .expressions = {nft::CountIn{"drop/x"}}}});
  ASSERT_TRUE(Commit().ok());
  for (int round = 0; round < 2; ++round) {
    Add(nft::DeleteTable{});
    EXPECT_CODE(Commit(), kOk);
    EXPECT_CODE(tables().ReadCounters(kTable).status(), kNotFound);
  }
  // It is empty when it comes back, also in the same transaction.
  Add(nft::AddTable{});
  Add(nft::AddCounter{"drop/x", {1, 1}});
  Add(nft::DeleteTable{});
  Add(nft::AddTable{});
  EXPECT_CODE(Commit(), kOk);
  EXPECT_THAT(Counters(), testing::IsEmpty());
}

TEST_P(NftTablesContract, AWholePolicyAndAllPodsFitOneTransaction) {
  Add(nft::AddSet{ClassMap()});
  Add(nft::AddSet{PodSet()});
  nft::AddElements ranges{"class4", {}};
  for (uint32_t i = 0; i < 2'000; ++i) {
    const uint32_t first = 0x0A00'0000U + i * 256;
    ranges.elements.push_back(Range(nft::NetworkOrder(ip::Address::V4(first)),
                                    nft::NetworkOrder(ip::Address::V4(first + 255)), i % 7));
  }
  Add(ranges);
  nft::AddElements pods{"pods4", {}};
  for (uint32_t i = 0; i < 4'000; ++i) {
    pods.elements.push_back({.key = nft::Join({nft::HostOrder(i), {10, 0, 0, 1}}),
                             .seed = {.packets = i, .bytes = uint64_t{i} << 32U}});
  }
  Add(pods);
  ASSERT_TRUE(Commit().ok());
  const std::vector<Seen> read = Elements("class4");
  ASSERT_EQ(read.size(), 2'000U);
  for (uint32_t i = 0; i < 2'000; ++i) {
    ASSERT_EQ(read[i].key, ranges.elements[i].key);
    ASSERT_EQ(read[i].last, ranges.elements[i].last);
    ASSERT_EQ(read[i].value, ranges.elements[i].value);
  }
  const std::vector<Seen> counted = Elements("pods4");
  ASSERT_EQ(counted.size(), 4'000U);
  uint64_t packets = 0;
  uint64_t bytes = 0;
  for (const Seen& seen : counted) {
    packets += seen.packets;
    bytes += seen.bytes;
  }
  EXPECT_EQ(packets, 3'999U * 4'000U / 2U);
  EXPECT_EQ(bytes, packets << 32U);
}

}  // namespace spoke::netagent
