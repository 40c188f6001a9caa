#include "netagent/classes/traffic_class.h"

#include <algorithm>
#include <iterator>
#include <random>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/node_api/traffic_classes.h"
#include "lib/policy/testing/blocks.h"
#include "tests/support/random_seed.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }

Policy WithNetwork(policy::ClusterNetwork network) {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main", .bytes = {}, .value = std::move(network)};
  return policy;
}

void AddGroup(Policy& policy, const std::string& name,
              std::initializer_list<std::string_view> cidrs) {
  const std::string key = "DestinationGroup/" + name;
  policy.entries[key] = {
      .key = key, .bytes = {}, .value = policy::DestinationGroup{.cidrs = policy::Blocks(cidrs)}};
}

ClassMap Compiled(const Policy& policy) {
  auto map = ClassMap::Compile(policy, {});
  EXPECT_TRUE(map.ok()) << map.status();
  return map.value_or(ClassMap());
}

Policy Example() {
  Policy policy = WithNetwork(
      {.cluster = policy::Blocks({"10.0.0.0/8", "fd00::/16"}),
       .hub = policy::Blocks({"10.200.0.0/16", "fd00:200::/32"}),
       .peer_spoke = policy::Blocks({"10.201.0.0/16", "10.202.0.0/15", "fd00:201::/32"}),
       .platform = policy::Blocks({"168.63.129.16/32"}),
       .storage = policy::Blocks({"20.60.0.0/16"}),
       .services = policy::Blocks({"10.96.0.0/12"})});
  AddGroup(policy, "mirror", {"151.101.0.0/16", "2a04:4e42::/32"});
  AddGroup(policy, "mirror-one", {"151.101.7.0/24"});
  AddGroup(policy, "everything-else", {"128.0.0.0/1"});
  return policy;
}

struct Case {
  const char* address;
  const char* name;
};

class ClassOfTest : public testing::TestWithParam<Case> {};

TEST_P(ClassOfTest, IsThatOfTheSmallestBlock) {
  const ClassMap map = Compiled(Example());
  EXPECT_EQ(map.NameOf(map.ClassOf(A(GetParam().address))), GetParam().name) << GetParam().address;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ClassOfTest,
    testing::Values(Case{"127.0.0.1", "loopback"}, Case{"::1", "loopback"},
                    Case{"0.0.0.0", "platform"}, Case{"169.254.169.254", "platform"},
                    Case{"224.0.0.251", "platform"}, Case{"255.255.255.255", "platform"},
                    Case{"fe80::1", "platform"}, Case{"ff02::1", "platform"},
                    Case{"168.63.129.16", "platform"}, Case{"9.255.255.255", "internet"},
                    Case{"10.0.0.0", "cluster"}, Case{"10.96.0.1", "cluster"},
                    Case{"10.199.255.255", "cluster"}, Case{"10.200.0.0", "hub"},
                    Case{"10.200.255.255", "hub"}, Case{"10.201.0.0", "peer-spoke"},
                    Case{"10.203.255.255", "peer-spoke"}, Case{"10.204.0.0", "cluster"},
                    Case{"10.255.255.255", "cluster"}, Case{"11.0.0.0", "internet"},
                    Case{"20.60.3.4", "storage"}, Case{"151.101.0.1", "group:mirror"},
                    Case{"151.101.7.9", "group:mirror-one"}, Case{"151.101.8.0", "group:mirror"},
                    Case{"151.102.0.0", "group:everything-else"}, Case{"8.8.8.8", "internet"},
                    Case{"fd00::7", "cluster"}, Case{"fd00:200::", "hub"},
                    Case{"fd00:201:ffff::", "peer-spoke"}, Case{"fd00:202::", "cluster"},
                    Case{"2a04:4e42::5", "group:mirror"}, Case{"2001:db8::1", "internet"}));

TEST(ClassMapTest, IsThereWithoutAPolicy) {
  const ClassMap map = Compiled({});
  EXPECT_EQ(map.ClassOf(A("10.0.0.1")), kInternet);
  EXPECT_EQ(map.ClassOf(A("127.1.2.3")), kLoopback);
  EXPECT_EQ(map.NameOf(99), "other");
  EXPECT_FALSE(map.Touches(ip::Prefix::Parse("10.0.0.0/8").value(), kCluster));
}

TEST(ClassMapTest, AGroupWinsOnlyOverTheInternet) {
  Policy policy = WithNetwork({.cluster = policy::Blocks({"10.0.0.0/8"})});
  AddGroup(policy, "odd", {"10.5.0.0/16", "0.0.0.0/0"});
  const ClassMap map = Compiled(policy);
  EXPECT_EQ(map.ClassOf(A("10.5.0.1")), kCluster);
  EXPECT_EQ(map.NameOf(map.ClassOf(A("1.1.1.1"))), "group:odd");
  EXPECT_EQ(map.ClassOf(A("127.0.0.1")), kLoopback);
}

TEST(ClassMapTest, SaysWhichBlocksAreTouched) {
  const ClassMap map = Compiled(Example());
  EXPECT_TRUE(map.Touches(ip::Prefix::Parse("10.0.0.0/8").value(), kPeerSpoke));
  EXPECT_FALSE(map.Touches(ip::Prefix::Parse("10.0.0.0/9").value(), kPeerSpoke));
  EXPECT_EQ(map.services(), std::vector{ip::Prefix::Parse("10.96.0.0/12").value()});
}

TEST(ClassMapTest, NamesBothClassesOfABlockThatHasTwo) {
  const auto map = ClassMap::Compile(WithNetwork({.cluster = policy::Blocks({"10.0.0.0/8"}),
                                                  .hub = policy::Blocks({"10.0.0.0/8"})}),
                                     {});
  EXPECT_EQ(map.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(map.status().message(), HasSubstr("10.0.0.0/8"));
  EXPECT_THAT(map.status().message(), HasSubstr("ClusterNetwork/main cluster"));
  EXPECT_THAT(map.status().message(), HasSubstr("ClusterNetwork/main hub"));

  Policy groups;
  AddGroup(groups, "a", {"1.0.0.0/8"});
  AddGroup(groups, "b", {"1.0.0.0/8"});
  EXPECT_THAT(ClassMap::Compile(groups, {}).status().message(),
              testing::AllOf(HasSubstr("DestinationGroup/a"), HasSubstr("DestinationGroup/b")));

  EXPECT_THAT(ClassMap::Compile(WithNetwork({.cluster = policy::Blocks({"127.0.0.0/8"})}), {})
                  .status()
                  .message(),
              HasSubstr("built-in loopback"));
}

TEST(ClassMapTest, ABlockTwiceInOneClassIsNoMistake) {
  const ClassMap map =
      Compiled(WithNetwork({.cluster = policy::Blocks({"10.0.0.0/8", "10.0.0.0/8"}),
                            .services = policy::Blocks({"10.0.0.0/8"})}));
  EXPECT_EQ(map.ClassOf(A("10.1.1.1")), kCluster);
}

TEST(ClassMapTest, GroupsKeepTheNumbersThatTheyHad) {
  Policy policy;
  AddGroup(policy, "a", {"1.0.0.0/8"});
  AddGroup(policy, "b", {"2.0.0.0/8"});
  const auto map = ClassMap::Compile(policy, {{"b", 16}, {"gone", 17}});
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->groups(), (std::map<std::string, ClassNumber>{{"a", 18}, {"b", 16}}));
}

TEST(ClassMapTest, RefusesMoreGroupsThanItHasNumbersFor) {
  Policy policy;
  for (size_t i = 0; i < kMaxGroups; ++i) {
    AddGroup(policy, fmt::format("g{:02}", i), {fmt::format("1.0.{}.0/24", i)});
  }
  EXPECT_TRUE(ClassMap::Compile(policy, {}).ok());
  EXPECT_FALSE(ClassMap::Compile(policy, {{"gone", 20}}).ok());
  Policy long_name;
  AddGroup(long_name, std::string(201, 'x'), {"1.0.0.0/8"});
  EXPECT_FALSE(ClassMap::Compile(long_name, {}).ok());
}

// The law: ranges are sorted and without gaps, cover everything, and say of every address what the
// longest matching block says; the order of blocks does not matter.
class RandomMapTest : public testing::Test {
 protected:
  std::vector<ip::Prefix> Blocks(int count) {
    std::vector<ip::Prefix> blocks;
    for (int i = 0; i < count; ++i) {
      const int length = static_cast<int>(random_() % 9);
      const auto bits = static_cast<uint32_t>(random_() % 256U);
      const auto v4 = ip::Prefix::Of(ip::Address::V4(0x0A000000U | bits), 24 + length);
      const auto v6 =
          ip::Prefix::Of(ip::Address::V6(~uint64_t{0}, ~uint64_t{255} | bits), 120 + length);
      blocks.push_back((random_() % 2 == 0 ? v4 : v6).value());
    }
    return blocks;
  }
  std::mt19937_64 random_{testing_support::RandomSeed()};
};

void ExpectWhole(const ClassMap& map, ip::Family family) {
  const auto& ranges = map.ranges(family);
  ASSERT_FALSE(ranges.empty());
  for (size_t i = 1; i < ranges.size(); ++i) {
    EXPECT_EQ(ip::Advance(ranges[i - 1].last, 1), ranges[i].first);
    EXPECT_LT(ranges[i - 1].last, ranges[i].first);
    EXPECT_NE(ranges[i - 1].number, ranges[i].number);
  }
  EXPECT_EQ(ip::Advance(ranges.back().last, 1), ranges.front().first);
}

TEST_F(RandomMapTest, EveryAddressIsInTheClassOfTheLongestBlock) {
  for (int round = 0; round < 200; ++round) {
    policy::ClusterNetwork network{.cluster = Blocks(4), .hub = Blocks(4), .peer_spoke = Blocks(4)};
    const auto map = ClassMap::Compile(WithNetwork(network), {});
    if (!map.ok()) continue;  // One block is in two classes.
    ExpectWhole(*map, ip::Family::kV4);
    ExpectWhole(*map, ip::Family::kV6);
    for (uint32_t low = 0; low < 256; ++low) {
      for (const ip::Address& address : {ip::Address::V4(0x0A000000U | low),
                                         ip::Address::V6(~uint64_t{0}, ~uint64_t{255} | low)}) {
        int longest = -1;
        // The IPv6 address is of ff00::/8.
        ClassNumber want = address.is_v4() ? kInternet : kPlatform;
        const auto look = [&](const std::vector<ip::Prefix>& blocks, ClassNumber number) {
          for (const ip::Prefix& block : blocks) {
            if (!block.Contains(address) || block.length() <= longest) continue;
            longest = block.length();
            want = number;
          }
        };
        look(network.cluster, kCluster);
        look(network.hub, kHub);
        look(network.peer_spoke, kPeerSpoke);
        ASSERT_EQ(map->ClassOf(address), want) << address.ToString();
      }
    }
    std::shuffle(network.cluster.begin(), network.cluster.end(), random_);
    std::shuffle(network.hub.begin(), network.hub.end(), random_);
    EXPECT_EQ(Compiled(WithNetwork(network)), *map);
  }
}

TEST(ClassMapTest, TheServerKnowsTheNamesOfAllClasses) {
  const ClassMap map = Compiled(Policy());
  for (ClassNumber number = kLoopback; number <= kPlatformDenied; ++number) {
    EXPECT_THAT(node_api::kTrafficClasses, testing::Contains(map.NameOf(number)));
  }
}

}  // namespace
}  // namespace spoke::netagent
