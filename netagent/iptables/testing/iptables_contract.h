// The promises of Iptables, as tests. Each implementation's test file instantiates them with a
// factory for a world of its own: a fake, or a back end in a fresh network namespace.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/iptables/iptables.h"

namespace spoke::netagent {

class IptablesWorld {
 public:
  virtual ~IptablesWorld() = default;
  virtual Iptables& iptables() = 0;
  // Adds "-A FORWARD -s 192.0.2.0/24 -m comment --comment theirs -j ACCEPT" to the mangle table, as
  // somebody else does it.
  virtual void AddTheirs() = 0;
  // Sends packets that a rule of INPUT with "! -s 10.0.0.0/8" counts; false where there are none.
  virtual bool SendFromOutside() = 0;
};

struct IptablesWorldFactory {
  std::string name;
  // The factory; null where this machine cannot have such a world.
  std::function<std::unique_ptr<IptablesWorld>()> make;
};

class IptablesContract : public testing::TestWithParam<IptablesWorldFactory> {
 protected:
  void SetUp() override {
    world_ = GetParam().make();
    if (world_ != nullptr) return;
    // A skip must not pass for a success.
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
    GTEST_SKIP() << "cannot make network namespaces";
  }
  Iptables& iptables() { return world_->iptables(); }
  IptablesWorld& world() { return *world_; }
  std::vector<IptablesTable> Mangle() {
    auto read = iptables().Read(ip::Family::kV4, {std::string(kPublishedTable)});
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? *std::move(read) : std::vector<IptablesTable>();
  }
  static std::vector<PublishedRule> Wanted(std::string_view cluster = "10.0.0.0/8") {
    return PublishedRules(ip::Prefix::Parse(cluster).value());
  }

 private:
  std::unique_ptr<IptablesWorld> world_;
};

TEST_P(IptablesContract, WhatIsNotThereIsNotRead) {
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const auto read = iptables().Read(family, {"filter", "mangle"});
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(*read, testing::IsEmpty());
  }
}

TEST_P(IptablesContract, WhatIsAppendedIsReadWordForWord) {
  for (const char* cluster : {"10.0.0.0/8", "10.64.0.0/10", "192.168.7.0/24", "172.16.0.1/32"}) {
    const auto wanted = Wanted(cluster);
    ASSERT_TRUE(iptables().Append(wanted).ok());
    EXPECT_THAT(MissingRules(wanted, Mangle()), testing::IsEmpty()) << cluster;
  }
}

TEST_P(IptablesContract, AppendingNothingMakesNothing) {
  ASSERT_TRUE(iptables().Append({}).ok());
  EXPECT_THAT(Mangle(), testing::IsEmpty());
}

TEST_P(IptablesContract, WhatOthersHaveStaysInFront) {
  world().AddTheirs();
  ASSERT_TRUE(iptables().Append(Wanted()).ok());
  const auto tables = Mangle();
  ASSERT_THAT(tables, testing::SizeIs(1));
  const auto first = std::find_if(tables[0].rules.begin(), tables[0].rules.end(),
                                  [](const IptablesRule& r) { return r.chain == "FORWARD"; });
  ASSERT_NE(first, tables[0].rules.end());
  EXPECT_EQ(first->text, "-s 192.0.2.0/24 -m comment --comment theirs -j ACCEPT");
  EXPECT_FALSE(first->abridged);
  EXPECT_EQ(first->comment, "theirs");
  EXPECT_EQ(CountForeignRules(Wanted(), tables), 1U);
}

TEST_P(IptablesContract, WhatHasBeenCountedStaysCounted) {
  const auto wanted = Wanted();
  ASSERT_TRUE(iptables().Append({wanted[0]}).ok());
  if (!world().SendFromOutside()) return;
  const auto before = Mangle();
  ASSERT_THAT(before, testing::SizeIs(1));
  ASSERT_THAT(before[0].rules, testing::SizeIs(1));
  EXPECT_GT(before[0].rules[0].packets, 0U);
  EXPECT_GT(before[0].rules[0].bytes, before[0].rules[0].packets);
  ASSERT_TRUE(iptables().Append(MissingRules(wanted, before)).ok());
  const auto after = Mangle();
  ASSERT_THAT(after, testing::SizeIs(1));
  ASSERT_THAT(after[0].rules, testing::SizeIs(4));
  const auto counted = std::find_if(after[0].rules.begin(), after[0].rules.end(),
                                    [](const IptablesRule& r) { return r.chain == "INPUT"; });
  ASSERT_NE(counted, after[0].rules.end());
  EXPECT_GE(counted->packets, before[0].rules[0].packets);
  EXPECT_THAT(MissingRules(wanted, after), testing::IsEmpty());
}

TEST_P(IptablesContract, WhatIsErasedIsGoneAndWhatOthersHaveStays) {
  EXPECT_EQ(iptables().Erase(Wanted()).value(), 0U);
  ASSERT_TRUE(iptables().Append(Wanted()).ok());
  world().AddTheirs();
  ASSERT_TRUE(iptables().Append(Wanted("192.168.7.0/24")).ok());
  EXPECT_EQ(iptables().Erase(Wanted()).value(), 4U);
  EXPECT_EQ(iptables().Erase(Wanted()).value(), 0U);
  EXPECT_EQ(MissingRules(Wanted(), Mangle()).size(), 4U);
  EXPECT_THAT(MissingRules(Wanted("192.168.7.0/24"), Mangle()), testing::IsEmpty());
  EXPECT_EQ(CountForeignRules({}, Mangle()), 5U);
}

TEST_P(IptablesContract, ARuleThatIsThereTwiceIsErasedOnce) {
  const auto wanted = Wanted();
  ASSERT_TRUE(iptables().Append({wanted[1], wanted[1]}).ok());
  EXPECT_EQ(iptables().Erase({wanted[1]}).value(), 1U);
  EXPECT_EQ(CountForeignRules({}, Mangle()), 1U);
  EXPECT_EQ(iptables().Erase({wanted[1]}).value(), 1U);
  EXPECT_EQ(CountForeignRules({}, Mangle()), 0U);
}

}  // namespace spoke::netagent
