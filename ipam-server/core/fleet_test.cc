#include "ipam-server/core/fleet.h"

#include <random>

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
const NodeKey kNode1{"node1", "vm-1"};
const NodeKey kNode2{"node2", "vm-2"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

PoolSpec Pool(std::string name, std::string_view cidr) {
  return {.name = std::move(name), .cidr = ip::Prefix::Parse(cidr).value()};
}

FleetPolicy Policy() {
  return {.target = {.min = 4, .batch = 4, .spare = 0.5, .max = 64}, .cooldown = absl::Seconds(30)};
}

Hello HelloOf(const NodeKey& key, std::string boot = "boot-1") {
  return {.key = key, .boot_id = std::move(boot)};
}

Lending LendingOf(const ip::Address& address, uint64_t generation, std::string container = "c1") {
  return {.address = address,
          .generation = generation,
          .since = kNow,
          .lessee = {.container_id = std::move(container), .ifname = "eth0"}};
}

std::vector<ip::Address> AddressesOf(const Fleet& fleet, const NodeKey& key) {
  std::vector<ip::Address> addresses;
  for (const auto& [address, held] : fleet.Find(key)->addresses) addresses.push_back(address);
  return addresses;
}

// A node that has said hello and whose addresses the cloud has attached.
Fleet WithAttachedNode(const std::vector<PoolSpec>& pools) {
  Fleet fleet(pools, Policy());
  fleet.OnHello(HelloOf(kNode1), kNow);
  fleet.OnAttached(kNode1, AddressesOf(fleet, kNode1), kNow);
  return fleet;
}

TEST(Fleet, ANewNodeGetsItsTargetInOneStep) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  const Effects effects = fleet.OnHello(HelloOf(kNode1), kNow);
  EXPECT_EQ(effects.changed, std::set{kNode1});
  EXPECT_EQ(effects.attach, std::set{kNode1});
  EXPECT_TRUE(effects.desired.empty());  // Nothing is attached yet.
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)), (AddressCounts{.attaching = 4}));

  const Effects attached = fleet.OnAttached(kNode1, AddressesOf(fleet, kNode1), kNow);
  EXPECT_EQ(attached.desired, std::set{kNode1});
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)), (AddressCounts{.idle = 4}));
  EXPECT_TRUE(fleet.OnAttached(kNode1, AddressesOf(fleet, kNode1), kNow).changed.empty());
}

TEST(Fleet, BothFamiliesAreProvidedWhereBothHavePools) {
  const Fleet fleet = WithAttachedNode({Pool("four", "10.1.0.0/24"), Pool("six", "fd00::/64")});
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1), ip::Family::kV4).idle, 4U);
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1), ip::Family::kV6).idle, 4U);
  EXPECT_EQ(fleet.TargetOf(*fleet.Find(kNode1)), 8U);
}

TEST(Fleet, LendingsRaiseTheTargetAndReleasesCool) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const Effects lent =
      fleet.OnReport(kNode1,
                     {.sequence = 1,
                      .lent = {LendingOf(A("10.1.0.4"), 1), LendingOf(A("10.1.0.5"), 2),
                               LendingOf(A("10.1.0.6"), 3)}},
                     kNow);
  EXPECT_EQ(lent.attach, std::set{kNode1});
  EXPECT_EQ(CountAddresses(*fleet.Find(kNode1)),
            (AddressCounts{.attaching = 4, .idle = 1, .lent = 3}));

  fleet.OnReport(kNode1, {.sequence = 2, .released = {{A("10.1.0.5"), 2}}}, kNow);
  EXPECT_EQ(fleet.Find(kNode1)->addresses.at(A("10.1.0.5")).use, Use::kCooling);
  EXPECT_FALSE(fleet.Find(kNode1)->addresses.at(A("10.1.0.5")).lessee.has_value());
  fleet.OnReport(kNode1, {.sequence = 3, .cooled = {A("10.1.0.5")}}, kNow);
  EXPECT_EQ(fleet.Find(kNode1)->addresses.at(A("10.1.0.5")).use, Use::kIdle);
}

TEST(Fleet, AStaleReportChangesNothing) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  fleet.OnReport(kNode1, {.lent = {LendingOf(A("10.1.0.4"), 7, "new")}}, kNow);
  const NodeRecord before = *fleet.Find(kNode1);
  const LendingReport stale{
      .lent = {LendingOf(A("10.1.0.4"), 6, "old"), LendingOf(A("10.9.9.9"), 9)},
      .released = {{A("10.1.0.4"), 6}, {A("10.1.0.5"), 1}},
      .cooled = {A("10.1.0.4"), A("10.9.9.9")}};
  EXPECT_TRUE(fleet.OnReport(kNode1, stale, kNow + absl::Seconds(1)).changed.empty());
  EXPECT_EQ(*fleet.Find(kNode1), before);
  EXPECT_TRUE(fleet.OnReport({"node1", "vm-other"}, stale, kNow).changed.empty());
}

TEST(Fleet, ARebootEndsLendingsAndLetsThemCool) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  fleet.OnReport(kNode1, {.lent = {LendingOf(A("10.1.0.4"), 1)}}, kNow);
  fleet.OnHello(HelloOf(kNode1, "boot-2"), kNow);
  const HeldAddress& held = fleet.Find(kNode1)->addresses.at(A("10.1.0.4"));
  EXPECT_EQ(held.use, Use::kCooling);
  EXPECT_EQ(held.generation, 0U);  // So that the first lending of the new boot is not stale.
}

TEST(Fleet, AReconnectKeepsWhatTheAgentStillLends) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  fleet.OnReport(kNode1,
                 {.lent = {LendingOf(A("10.1.0.4"), 1), LendingOf(A("10.1.0.5"), 2, "c2"),
                           LendingOf(A("10.1.0.6"), 3, "c3")}},
                 kNow);
  Hello hello = HelloOf(kNode1);
  hello.lent = {LendingOf(A("10.1.0.4"), 1)};
  hello.cooling = {A("10.1.0.5")};
  const uint64_t epoch = fleet.Find(kNode1)->session_epoch;
  fleet.OnHello(hello, kNow);
  const auto& addresses = fleet.Find(kNode1)->addresses;
  EXPECT_EQ(addresses.at(A("10.1.0.4")).use, Use::kLent);
  EXPECT_EQ(addresses.at(A("10.1.0.5")).use, Use::kCooling);
  EXPECT_EQ(addresses.at(A("10.1.0.6")).use, Use::kIdle);
  EXPECT_EQ(fleet.Find(kNode1)->session_epoch, epoch + 1);
}

TEST(Fleet, AnUnknownButFreeLendingIsAdoptedAndAnothersIsReported) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  Hello hello = HelloOf(kNode2);
  hello.lent = {LendingOf(A("10.1.0.200"), 5), LendingOf(A("10.1.0.4"), 6),
                LendingOf(A("192.0.2.1"), 7)};
  const Effects effects = fleet.OnHello(hello, kNow);
  ASSERT_EQ(effects.findings.size(), 3U);
  EXPECT_EQ(effects.findings[0].kind, Finding::Kind::kAdopted);
  EXPECT_EQ(effects.findings[1].kind, Finding::Kind::kHeldElsewhere);
  EXPECT_EQ(effects.findings[2].kind, Finding::Kind::kForeign);
  EXPECT_EQ(fleet.HolderOf(A("10.1.0.200"))->key, kNode2);
  EXPECT_EQ(fleet.HolderOf(A("10.1.0.4"))->key, kNode1);
  EXPECT_EQ(fleet.Find(kNode2)->addresses.at(A("10.1.0.200")).use, Use::kLent);
}

TEST(Fleet, AnExhaustedPoolIsNamedWithItsCounts) {
  Fleet fleet({Pool("tiny", "10.1.0.0/29")}, Policy());
  fleet.OnHello(HelloOf(kNode1), kNow);
  EXPECT_EQ(fleet.ShortageOf(*fleet.Find(kNode1)),
            "has 3 of 4 addresses: pool tiny (10.1.0.0/29): 3 usable, 3 attached, 0 free");
}

TEST(Fleet, ANewVmUnderAnOldNameIsAnotherNode) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  fleet.OnHello(HelloOf({"node1", "vm-new"}), kNow);
  EXPECT_EQ(fleet.nodes().size(), 2U);
  EXPECT_NE(AddressesOf(fleet, kNode1), AddressesOf(fleet, {"node1", "vm-new"}));
}

TEST(Fleet, LoadRefusesADoubledOrOrphanedAddress) {
  const Fleet source = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  NodeRecord record = *source.Find(kNode1);

  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  ASSERT_TRUE(fleet.Load(record).ok());
  record.key = kNode2;
  EXPECT_EQ(fleet.Load(record).code(), absl::StatusCode::kFailedPrecondition);

  Fleet other({Pool("default", "10.2.0.0/24")}, Policy());
  const absl::Status orphaned = other.Load(record);
  EXPECT_EQ(orphaned.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(orphaned.message()).find("restore the pool \"default\""),
            std::string::npos);
}

TEST(Fleet, NoAddressIsEverHeldTwiceWhateverComes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Fleet fleet({Pool("default", "10.1.0.0/26")}, Policy());
  for (int step = 0; step < 3000; ++step) {
    const NodeKey key{"node" + std::to_string(random() % 5), "vm" + std::to_string(random() % 2)};
    const ip::Address any = ip::Advance(A("10.1.0.0"), random() % 64);
    if (random() % 3 == 0) {
      Hello hello = HelloOf(key, "boot" + std::to_string(random() % 2));
      if (random() % 2 == 0) hello.lent = {LendingOf(any, random() % 9)};
      fleet.OnHello(hello, kNow);
    } else if (random() % 2 == 0) {
      fleet.OnReport(key,
                     {.lent = {LendingOf(any, random() % 9)},
                      .released = {{any, random() % 9}},
                      .cooled = {any}},
                     kNow);
    } else {
      fleet.OnAttached(key, {any}, kNow);
    }
    std::set<ip::Address> seen;
    for (const auto& [node, record] : fleet.nodes()) {
      for (const auto& [address, held] : record.addresses) {
        ASSERT_TRUE(seen.insert(address).second) << address.ToString();
        ASSERT_EQ(held.lessee.has_value(), held.use == Use::kLent);
        ASSERT_EQ(fleet.HolderOf(address), &record);
      }
    }
    ASSERT_EQ(fleet.pools().front().held(), seen.size());
  }
}

}  // namespace
}  // namespace spoke::ipam
