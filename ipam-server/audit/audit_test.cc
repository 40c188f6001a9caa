#include "ipam-server/audit/audit.h"

#include <algorithm>
#include <functional>
#include <set>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
const absl::Time kLongAgo = kNow - absl::Hours(1);
const absl::Time kJustNow = kNow - absl::Seconds(10);
const AuditPolicy kPolicy{.grace = absl::Minutes(2)};

ip::Address Address(uint64_t number) {
  return ip::Address::V4(0x0A000000 + static_cast<uint32_t>(number));
}

ip::MacAddress Mac(uint64_t number) {
  return {.octets = {2, 0, 0, 0, 0, static_cast<uint8_t>(number)}};
}

// What the store, the cloud and the agents say, and how the repairs change it.
struct World {
  AuditInput input;

  StoredNode& store(size_t i) { return input.store[i]; }
  CloudNic& nic(size_t i) { return (*input.cloud)[i]; }
  AgentInventory& agent(size_t i) { return input.agents[i]; }

  size_t IndexOf(const AuditNode& node) {
    for (size_t i = 0; i < input.store.size(); ++i) {
      if (input.store[i].node == node) return i;
    }
    ADD_FAILURE() << "no node " << node.name;
    return 0;
  }

  StoredAddress* Stored(size_t node, const ip::Address& address) {
    for (StoredAddress& held : store(node).addresses) {
      if (held.address == address) return &held;
    }
    return nullptr;
  }
  AuditAssignment* Assigned(size_t node, const ip::Address& address) {
    for (AuditAssignment& assignment : agent(node).in_use) {
      if (assignment.address == address) return &assignment;
    }
    return nullptr;
  }
  void Unstore(size_t node, const ip::Address& address) {
    std::erase_if(store(node).addresses,
                  [&](const StoredAddress& held) { return held.address == address; });
  }
  void Unassign(size_t node, const ip::Address& address) {
    std::erase_if(agent(node).in_use,
                  [&](const AuditAssignment& assignment) { return assignment.address == address; });
  }

  void Repair(const AuditDifference& difference) {
    if (difference.repair == AuditRepair::kNone) return;
    const size_t i = IndexOf(difference.node);
    const ip::Address address = difference.address.value_or(ip::Address());
    StoredAddress* held = Stored(i, address);
    switch (difference.repair) {
      case AuditRepair::kNone:
        return;
      case AuditRepair::kReattach:
        ASSERT_NE(held, nullptr);
        nic(i).configurations[address] = held->configuration;
        held->state = AuditState::kAttached;
        return Resend(i);
      case AuditRepair::kDetach:
        ASSERT_EQ(Assigned(i, address), nullptr) << "a pod would lose its address";
        ASSERT_TRUE(held == nullptr || held->state == AuditState::kDetaching);
        nic(i).configurations.erase(address);
        Unstore(i, address);
        return Resend(i);
      case AuditRepair::kResendDesired:
        return Resend(i);
      case AuditRepair::kTakeAssignment: {
        const AuditAssignment* assignment = Assigned(i, address);
        ASSERT_NE(assignment, nullptr);
        if (held == nullptr) {
          held = &store(i).addresses.emplace_back();
          *held = {
              .address = address, .configuration = nic(i).configurations[address], .pool = "p"};
        }
        held->use = AuditUse::kInUse;
        held->generation = assignment->generation;
        held->container_id = assignment->container_id;
        held->ifname = assignment->ifname;
        return Resend(i);
      }
      case AuditRepair::kEndAssignment:
        ASSERT_NE(held, nullptr);
        held->use = AuditUse::kCooldown;
        return;
    }
  }

  void Resend(size_t i) {
    if (!agent(i).held) return;
    agent(i).held->clear();
    for (const StoredAddress& held : store(i).addresses) {
      if (held.state == AuditState::kAttached) agent(i).held->push_back(held.address);
    }
  }
};

constexpr size_t kNodes = 3;

// Everything agrees, or is on its way. Each node has at least one address that is available, one
// that is assigned and one in cooldown.
World ConsistentWorld(testing_support::Random& random) {
  World world;
  world.input.cloud.emplace();
  world.input.pools["p"] = {*ip::Prefix::Parse("10.0.0.0/24")};
  for (size_t i = 0; i < kNodes; ++i) {
    const AuditNode node{fmt::format("n{}", i), fmt::format("vm{}", i)};
    StoredNode stored{.node = node, .nic_mac = Mac(i)};
    CloudNic nic{.node = node, .nic_mac = Mac(i)};
    AgentInventory agent{.node = node, .held = std::vector<ip::Address>{}};
    if (random.OneIn(3)) agent.held.reset();
    const uint64_t count = 3 + random.Between(0, 3);
    for (uint64_t j = 0; j < count; ++j) {
      const ip::Address address = Address(i * 50 + j + 1);
      StoredAddress held{.address = address,
                         .use = static_cast<AuditUse>(j < 3 ? j : random.Between(0, 2)),
                         .configuration = fmt::format("spoke-{}", j),
                         .pool = "p",
                         .since = kLongAgo,
                         .generation = random.Between(1, 9)};
      if (held.use == AuditUse::kInUse) {
        held.container_id = fmt::format("c{}", j);
        held.ifname = "eth0";
        agent.in_use.push_back({address, held.generation, held.container_id, "eth0", kLongAgo});
      }
      nic.configurations[address] = held.configuration;
      if (agent.held) agent.held->push_back(address);
      stored.addresses.push_back(held);
    }
    if (random.OneIn(2)) {  // The address is on its way, at any point of it.
      const ip::Address address = Address(i * 50 + 40);
      stored.addresses.push_back({.address = address,
                                  .state = static_cast<AuditState>(random.Between(0, 2)),
                                  .use = static_cast<AuditUse>(random.Between(0, 2)),
                                  .configuration = "spoke-40",
                                  .pool = "p",
                                  .since = kJustNow});
      if (random.OneIn(2)) nic.configurations[address] = "spoke-40";
      if (agent.held && random.OneIn(2)) agent.held->push_back(address);
      if (random.OneIn(2)) agent.in_use.push_back({address, 7, "new", "eth0", kJustNow});
    }
    if (random.OneIn(2)) {  // It was just freed: the list and the agent are a little behind.
      const ip::Address address = Address(i * 50 + 41);
      world.input.freed[address] = kJustNow;
      nic.configurations[address] = "spoke-41";
      if (agent.held) agent.held->push_back(address);
    }
    world.input.store.push_back(std::move(stored));
    world.input.cloud->push_back(std::move(nic));
    world.input.agents.push_back(std::move(agent));
  }
  (*world.input.cloud)[0].configurations[*ip::Address::Parse("172.16.0.4")] = "primary";
  return world;
}

// One thing that is wrong: what it does to node 0 (node 1 is the other one), and what must be
// found.
struct Corruption {
  const char* name;
  AuditKind kind;
  AuditRepair repair;
  std::function<ip::Address(World&)> inject;
  bool of_node = false;  // It is found for the node as a whole.
};

const ip::Address kAvailable = Address(1);
const ip::Address kInUse = Address(2);
const ip::Address kCooldown = Address(3);
const ip::Address kUnused = Address(30);
const ip::Address kOutside = ip::Address::V4(0x0B000001);

void Assign(World& world, size_t node, const ip::Address& address, uint64_t generation = 100) {
  world.agent(node).in_use.push_back({address, generation, "other", "eth0", kLongAgo});
}

std::vector<Corruption> CloudCorruptions() {
  return {
      {"LostByTheNic", AuditKind::kNotOnNic, AuditRepair::kReattach,
       [](World& w) { return w.nic(0).configurations.erase(kAvailable), kAvailable; }},
      {"AssignedAndLostByTheNic", AuditKind::kNotOnNic, AuditRepair::kReattach,
       [](World& w) { return w.nic(0).configurations.erase(kInUse), kInUse; }},
      {"LeftOnTheNic", AuditKind::kOnNicUnknown, AuditRepair::kDetach,
       [](World& w) { return w.nic(0).configurations[kUnused] = "spoke-9", kUnused; }},
      {"LeftOnTheNicOfASilentAgent", AuditKind::kOnNicUnknown, AuditRepair::kNone,
       [](World& w) {
         w.input.agents.erase(w.input.agents.begin());
         return w.nic(0).configurations[kUnused] = "spoke-9", kUnused;
       }},
      {"PutThereBySomebodyElse", AuditKind::kOnNicUnknown, AuditRepair::kNone,
       [](World& w) { return w.nic(0).configurations[kUnused] = "theirs", kUnused; }},
      {"Moved", AuditKind::kWrongNic, AuditRepair::kNone,
       [](World& w) {
         w.nic(0).configurations.erase(kAvailable);
         return w.nic(1).configurations[kAvailable] = "spoke-9", kAvailable;
       }},
      {"OnTwoNics", AuditKind::kOnTwoNics, AuditRepair::kNone,
       [](World& w) { return w.nic(1).configurations[kAvailable] = "spoke-9", kAvailable; }},
      {"RenamedConfiguration", AuditKind::kWrongConfiguration, AuditRepair::kNone,
       [](World& w) { return w.nic(0).configurations[kAvailable] = "spoke-9", kAvailable; }},
      {"NicGone", AuditKind::kNicNotListed, AuditRepair::kNone,
       [](World& w) { return w.input.cloud->erase(w.input.cloud->begin()), kAvailable; }, true},
      {"NicReplaced", AuditKind::kNicReplaced, AuditRepair::kNone,
       [](World& w) { return w.nic(0).nic_mac = Mac(99), kAvailable; }, true},
      {"NeverAttached", AuditKind::kStuckAttaching, AuditRepair::kReattach,
       [](World& w) {
         w.Stored(0, kAvailable)->state = AuditState::kAttaching;
         return w.nic(0).configurations.erase(kAvailable), kAvailable;
       }},
      {"AttachedUnnoticed", AuditKind::kStuckAttaching, AuditRepair::kReattach,
       [](World& w) {
         return w.Stored(0, kAvailable)->state = AuditState::kAttaching, kAvailable;
       }},
      {"NeverDetached", AuditKind::kStuckDetaching, AuditRepair::kDetach,
       [](World& w) {
         return w.Stored(0, kAvailable)->state = AuditState::kDetaching, kAvailable;
       }},
      {"AssignedWhileDetaching", AuditKind::kInUseWhileDetaching, AuditRepair::kNone,
       [](World& w) { return w.Stored(0, kInUse)->state = AuditState::kDetaching, kInUse; }},
  };
}

std::vector<Corruption> StoreCorruptions() {
  return {
      {"HeldTwice", AuditKind::kHeldTwice, AuditRepair::kNone,
       [](World& w) {
         return w.store(1).addresses.push_back(*w.Stored(0, kAvailable)), kAvailable;
       }},
      {"VmGone", AuditKind::kGoneHolds, AuditRepair::kNone,
       [](World& w) {
         w.store(0).gone = true;
         return w.input.cloud->erase(w.input.cloud->begin()), kAvailable;
       }},
      {"PoolUnknown", AuditKind::kPoolForeign, AuditRepair::kNone,
       [](World& w) { return w.Stored(0, kAvailable)->pool = "other", kAvailable; }},
      {"PoolShrank", AuditKind::kPoolForeign, AuditRepair::kNone,
       [](World& w) {
         return w.input.pools["p"] = {*ip::Prefix::Parse("10.0.0.2/31"),
                                      *ip::Prefix::Parse("10.0.0.4/30"),
                                      *ip::Prefix::Parse("10.0.0.8/29"),
                                      *ip::Prefix::Parse("10.0.0.16/28"),
                                      *ip::Prefix::Parse("10.0.0.32/27"),
                                      *ip::Prefix::Parse("10.0.0.64/26"),
                                      *ip::Prefix::Parse("10.0.0.128/25")},
                kAvailable;
       }},
      {"RecordLost", AuditKind::kOnNicUnknown, AuditRepair::kDetach,
       [](World& w) { return w.Unstore(0, kAvailable), kAvailable; }},
      {"RecordLostWhileAssigned", AuditKind::kInUseUnknown, AuditRepair::kTakeAssignment,
       [](World& w) { return w.Unstore(0, kInUse), kInUse; }},
      {"RecordLostAndRetired", AuditKind::kInUseUnknown, AuditRepair::kNone,
       [](World& w) {
         w.store(0).retired = true;
         return w.Unstore(0, kInUse), kInUse;
       }},
      {"AssignmentNotRecorded", AuditKind::kInUseNotRecorded, AuditRepair::kTakeAssignment,
       [](World& w) { return w.Stored(0, kInUse)->use = AuditUse::kAvailable, kInUse; }},
      {"OtherAssignmentRecorded", AuditKind::kInUseNotRecorded, AuditRepair::kTakeAssignment,
       [](World& w) { return w.Assigned(0, kInUse)->generation += 1, kInUse; }},
      {"OtherPodRecorded", AuditKind::kInUseNotRecorded, AuditRepair::kTakeAssignment,
       [](World& w) { return w.Stored(0, kInUse)->container_id = "x", kInUse; }},
      {"LaterAssignmentRecorded", AuditKind::kInUseOlder, AuditRepair::kNone,
       [](World& w) { return w.Stored(0, kInUse)->generation += 1, kInUse; }},
      {"EndNotRecorded", AuditKind::kRecordedNotInUse, AuditRepair::kEndAssignment,
       [](World& w) { return w.Unassign(0, kInUse), kInUse; }},
  };
}

std::vector<Corruption> AgentCorruptions() {
  return {
      {"AssignedFromNowhere", AuditKind::kInUseUnknown, AuditRepair::kTakeAssignment,
       [](World& w) { return Assign(w, 0, kUnused), kUnused; }},
      {"AssignedFromNoPool", AuditKind::kInUseForeign, AuditRepair::kNone,
       [](World& w) { return Assign(w, 0, kOutside), kOutside; }},
      {"AssignedWhatAnotherNodeHolds", AuditKind::kInUseElsewhere, AuditRepair::kNone,
       [](World& w) { return Assign(w, 1, kAvailable), kAvailable; }},
      {"AssignedWhatAnotherNicHas", AuditKind::kInUseElsewhere, AuditRepair::kNone,
       [](World& w) {
         w.nic(1).configurations[kUnused] = "spoke-9";
         return Assign(w, 0, kUnused), kUnused;
       }},
      {"AssignedTwice", AuditKind::kInUseTwice, AuditRepair::kNone,
       [](World& w) { return Assign(w, 1, kInUse), kInUse; }},
      {"AssignedWhileCooldown", AuditKind::kInUseNotRecorded, AuditRepair::kTakeAssignment,
       [](World& w) { return Assign(w, 0, kCooldown), kCooldown; }},
      {"DoesNotKnow", AuditKind::kAgentMisses, AuditRepair::kResendDesired,
       [](World& w) {
         w.agent(0).held.emplace();
         for (const StoredAddress& held : w.store(0).addresses) {
           if (held.address != kAvailable) w.agent(0).held->push_back(held.address);
         }
         return kAvailable;
       }},
      {"TakesForAttached", AuditKind::kAgentExtra, AuditRepair::kResendDesired,
       [](World& w) {
         w.Resend(0);
         if (!w.agent(0).held) {
           w.agent(0).held.emplace();
           w.Resend(0);
         }
         return w.agent(0).held->push_back(kUnused), kUnused;
       }},
      {"UnknownNode", AuditKind::kAgentUnknown, AuditRepair::kNone,
       [](World& w) {
         return w.input.agents.push_back({.node = {"stranger", "vm"}}), kAvailable;
       },
       true},
  };
}

std::vector<Corruption> Corruptions() {
  std::vector<Corruption> all = CloudCorruptions();
  for (Corruption& more : StoreCorruptions()) all.push_back(std::move(more));
  for (Corruption& more : AgentCorruptions()) all.push_back(std::move(more));
  return all;
}

std::string Describe(const std::vector<AuditDifference>& differences) {
  std::string text;
  for (const AuditDifference& difference : differences) {
    text += fmt::format("{} {} {} [{}]: {}\n", NameOf(difference.kind), difference.node.name,
                        difference.address ? difference.address->ToString() : "-",
                        NameOf(difference.repair), difference.cause);
  }
  return text;
}

TEST(Audit, AConsistentWorldIsClean) {
  testing_support::Random random;
  for (int i = 0; i < testing_support::kRandomCases / 10; ++i) {
    const World world = ConsistentWorld(random);
    const auto differences = Audit(world.input, kPolicy, kNow);
    ASSERT_THAT(differences, IsEmpty()) << Describe(differences);
  }
}

TEST(Audit, FindsAndNamesEveryCorruptionAndItsRepairMendsIt) {
  testing_support::Random random;
  const std::vector<Corruption> corruptions = Corruptions();
  std::set<AuditKind> kinds;
  for (int i = 0; i < testing_support::kRandomCases / 10; ++i) {
    const Corruption& corruption = corruptions[static_cast<size_t>(i) % corruptions.size()];
    World world = ConsistentWorld(random);
    const ip::Address address = corruption.inject(world);
    const auto differences = Audit(world.input, kPolicy, kNow);
    const auto found =
        std::find_if(differences.begin(), differences.end(), [&](const auto& difference) {
          return difference.kind == corruption.kind && difference.repair == corruption.repair &&
                 difference.address.has_value() != corruption.of_node &&
                 (corruption.of_node || difference.address == address);
        });
    ASSERT_NE(found, differences.end()) << corruption.name << ":\n" << Describe(differences);
    ASSERT_FALSE(found->cause.empty());
    kinds.insert(corruption.kind);
    for (const auto& difference : differences) {
      if (corruption.of_node || corruption.kind == AuditKind::kGoneHolds) continue;
      ASSERT_EQ(difference.address, address) << corruption.name << ":\n" << Describe(differences);
    }

    for (const auto& difference : differences) world.Repair(difference);
    if (::testing::Test::HasFatalFailure()) FAIL() << corruption.name;
    const auto left = Audit(world.input, kPolicy, kNow);
    for (const auto& difference : left) {
      ASSERT_EQ(difference.repair, AuditRepair::kNone) << corruption.name << ":\n"
                                                       << Describe(differences) << "and then\n"
                                                       << Describe(left);
    }
    if (corruption.repair != AuditRepair::kNone && differences.size() == 1) {
      ASSERT_THAT(left, IsEmpty()) << corruption.name << ":\n" << Describe(left);
    }
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kLastAuditKind) + 1) << "a kind without a test";
}

TEST(Audit, NothingIsTakenOffANicWhileItsAgentAssignsIt) {
  testing_support::Random random;
  const std::vector<Corruption> corruptions = Corruptions();
  for (int i = 0; i < testing_support::kRandomCases / 10; ++i) {
    World world = ConsistentWorld(random);
    std::set<ip::Address> in_use;
    for (int j = 0; j < 3; ++j) {  // Several at once, whatever comes of it.
      const Corruption& chosen = corruptions[random.Between(0, corruptions.size() - 1)];
      const bool whole = world.input.cloud->size() == kNodes &&
                         world.input.agents.size() == kNodes &&
                         world.Stored(0, kAvailable) != nullptr &&
                         world.Stored(0, kInUse) != nullptr && world.Assigned(0, kInUse) != nullptr;
      if (whole) chosen.inject(world);
    }
    for (const AgentInventory& agent : world.input.agents) {
      for (const AuditAssignment& assignment : agent.in_use) in_use.insert(assignment.address);
    }
    for (const auto& difference : Audit(world.input, kPolicy, kNow)) {
      if (difference.repair != AuditRepair::kDetach) continue;
      ASSERT_FALSE(in_use.contains(*difference.address)) << Describe({difference});
    }
  }
}

TEST(Audit, WhatTheCloudHasChosenAndIsInCooldownIsNotStuck) {
  testing_support::Random random;
  World world = ConsistentWorld(random);
  StoredAddress chosen{.address = kUnused,
                       .state = AuditState::kAttaching,
                       .configuration = "spoke-9",
                       .pool = "p",
                       .since = kLongAgo,
                       .chosen = true};
  world.input.store[0].addresses.push_back(chosen);
  world.nic(0).configurations[kUnused] = "spoke-9";
  world.input.freed[kUnused] = kLongAgo;
  EXPECT_THAT(Audit(world.input, kPolicy, kNow), IsEmpty());
  world.input.freed.erase(kUnused);
  const auto found = Audit(world.input, kPolicy, kNow);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, AuditKind::kStuckAttaching);
}

// Somebody has taken the address off the NIC of the first node, under a pod, and the cloud has
// given it to the second, where the server withholds it.
TEST(Audit, WhatTheCloudHasGivenToAnotherNodeMeanwhileIsNotHeldTwice) {
  testing_support::Random random;
  World world = ConsistentWorld(random);
  world.input.store[1].addresses.push_back({.address = kInUse,
                                            .state = AuditState::kAttaching,
                                            .configuration = "spoke-9",
                                            .pool = "p",
                                            .since = kLongAgo,
                                            .chosen = true});
  world.nic(1).configurations[kInUse] = "spoke-9";
  world.nic(0).configurations.erase(kInUse);
  const auto found = Audit(world.input, kPolicy, kNow);
  ASSERT_EQ(found.size(), 1U) << Describe(found);
  EXPECT_EQ(found[0].kind, AuditKind::kWrongNic);
  EXPECT_EQ(found[0].node, world.store(0).node);
  EXPECT_THAT(found[0].cause, HasSubstr("delete the pod"));
}

// Nobody wanted it of any pool: the scale set's model has brought it, or somebody else.
TEST(Audit, WhatWasGivenOfNoPoolIsInOneWhereAnyContainsIt) {
  testing_support::Random random;
  World world = ConsistentWorld(random);
  world.input.store[0].addresses.push_back({.address = kUnused,
                                            .state = AuditState::kAttaching,
                                            .configuration = "spoke-9",
                                            .since = kJustNow,
                                            .chosen = true});
  world.nic(0).configurations[kUnused] = "spoke-9";
  EXPECT_THAT(Audit(world.input, kPolicy, kNow), IsEmpty());
}

TEST(Audit, AnAgentThatIsNotToldOfWhatIsOffItsNicMissesNothing) {
  testing_support::Random random;
  World world = ConsistentWorld(random);
  world.nic(0).configurations.erase(kAvailable);
  std::erase(*world.agent(0).held, kAvailable);
  const auto found = Audit(world.input, kPolicy, kNow);
  ASSERT_EQ(found.size(), 1U) << Describe(found);
  EXPECT_EQ(found[0].kind, AuditKind::kNotOnNic);
}

TEST(Audit, ACloudThatCouldNotBeListedIsNotOneWithoutAddresses) {
  testing_support::Random random;
  World world = ConsistentWorld(random);
  world.input.cloud.reset();
  EXPECT_THAT(Audit(world.input, kPolicy, kNow), IsEmpty());
}

TEST(Audit, SilentAgentsAreNotAgentsWithoutPods) {
  testing_support::Random random;
  World world = ConsistentWorld(random);
  world.input.agents.clear();
  EXPECT_THAT(Audit(world.input, kPolicy, kNow), IsEmpty());
}

TEST(Audit, TheGraceEnds) {
  testing_support::Random random;
  World world = ConsistentWorld(random);
  world.nic(0).configurations.erase(kAvailable);
  world.Stored(0, kAvailable)->since = kNow - absl::Seconds(119);
  EXPECT_THAT(Audit(world.input, kPolicy, kNow), IsEmpty());
  world.Stored(0, kAvailable)->since = kNow - absl::Seconds(120);
  EXPECT_EQ(Audit(world.input, kPolicy, kNow).size(), 1U);
}

TEST(Audit, TheCauseSaysWhoSaysWhat) {
  testing_support::Random random;
  World world = ConsistentWorld(random);
  world.nic(0).configurations[kAvailable] = "spoke-77";
  const auto differences = Audit(world.input, kPolicy, kNow);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_THAT(differences[0].cause, HasSubstr("the NIC has it as spoke-77, the store as spoke-0"));
  EXPECT_EQ(NameOf(differences[0].kind), "wrong_configuration");
  EXPECT_EQ(NameOf(AuditRepair::kTakeAssignment), "take_assignment");
}

TEST(Audit, EveryKindHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(kLastAuditKind); ++i) {
    words.insert(NameOf(static_cast<AuditKind>(i)));
  }
  EXPECT_EQ(words.size(), static_cast<size_t>(kLastAuditKind) + 1);
}

TEST(AuditMemory, KnowsSinceWhenAndForgetsWhatIsGone) {
  AuditMemory memory;
  const auto seen_at = [&](absl::Time now) {
    std::vector<AuditDifference> differences{{.node = {"n1", "vm1"}, .address = kAvailable}};
    memory.Remember(differences, now, /*whole=*/true);
    return differences[0].first_seen;
  };
  EXPECT_EQ(seen_at(kNow), kNow);
  EXPECT_EQ(seen_at(kNow + absl::Minutes(5)), kNow);
  std::vector<AuditDifference> none;
  memory.Remember(none, kNow + absl::Minutes(6), /*whole=*/false);
  EXPECT_EQ(seen_at(kNow + absl::Minutes(6)), kNow) << "not all was compared";
  memory.Remember(none, kNow + absl::Minutes(6), /*whole=*/true);
  EXPECT_EQ(seen_at(kNow + absl::Minutes(7)), kNow + absl::Minutes(7));
}

}  // namespace
}  // namespace spoke::ipam
