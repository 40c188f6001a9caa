// Records, pools and quarantine agree, whatever is put in and taken out.
#include "ipam-server/ledger/ledger.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kCooldown = absl::Seconds(30);
const NodeKey kNode1{"node1", "vm-1"};
const NodeKey kNode2{"node2", "vm-2"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
ip::Prefix One(std::string_view text) { return ip::Prefix::Host(A(text)); }

PoolSpec Pool(std::string name, std::string_view cidr) {
  return {.name = std::move(name), .cidr = ip::Prefix::Parse(cidr).value()};
}

// A record as the store has it.
NodeRecord RecordWith(const NodeKey& key, const std::vector<std::string>& addresses) {
  NodeRecord record{.key = key};
  for (const std::string& address : addresses) {
    record.configurations.emplace(A(address),
                                  Configuration(One(address), "default", "n" + address, kNow));
  }
  record.wanted["spoke-9"] = {.pool = "default", .since = kNow};
  return record;
}

AddressPool::State StateOf(const Ledger& ledger, const ip::Address& address) {
  return ledger.pools().Covering(address)->pool.StateOf(address);
}

class LedgerTest : public testing::Test {
 protected:
  void TearDown() override { CheckInvariants(ledger_); }

  Ledger ledger_{{Pool("default", "10.1.0.0/24")}, TargetPolicy(), kCooldown};
};

TEST_F(LedgerTest, ARecordTakesThePlaceOfTheOneWithItsKey) {
  ASSERT_TRUE(ledger_.Upsert(RecordWith(kNode1, {"10.1.0.4", "10.1.0.5"})).ok());
  EXPECT_EQ(CountAddresses(ledger_).attaching, 3U);
  ASSERT_TRUE(ledger_.Upsert(RecordWith(kNode1, {"10.1.0.5", "10.1.0.6"})).ok());
  EXPECT_EQ(CountAddresses(ledger_).attaching, 3U);
  EXPECT_EQ(HolderOf(ledger_, A("10.1.0.4")), nullptr);
  EXPECT_EQ(HolderOf(ledger_, A("10.1.0.5")), ledger_.Find(kNode1));
}

TEST_F(LedgerTest, ARecordThatDoesNotFitChangesNothing) {
  ASSERT_TRUE(ledger_.Upsert(RecordWith(kNode1, {"10.1.0.4"})).ok());
  ASSERT_TRUE(ledger_.Upsert(RecordWith(kNode2, {"10.1.0.8"})).ok());
  const NodeRecord before = *ledger_.Find(kNode2);
  for (const char* address : {"10.1.0.4", "10.2.0.4"}) {
    EXPECT_EQ(ledger_.Upsert(RecordWith(kNode2, {"10.1.0.7", address})).status().code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(*ledger_.Find(kNode2), before);
    EXPECT_EQ(HolderOf(ledger_, A("10.1.0.7")), nullptr);
  }
}

TEST_F(LedgerTest, WhatIsTakenOutHoldsNothingAndComesBackUnderAnotherKey) {
  NodeRecord record = RecordWith(kNode1, {"10.1.0.4", "10.1.0.5"});
  record.instance = "vm/1";
  ASSERT_TRUE(ledger_.Upsert(record).ok());
  NodeRecord taken = ledger_.Unload(kNode1);
  EXPECT_EQ(taken, record);
  EXPECT_EQ(CountAddresses(ledger_), AddressCounts());
  EXPECT_EQ(ledger_.pools()[0].free(), ledger_.pools()[0].pool.usable() - 2) << "until it is time";
  ledger_.EndCooldowns(kNow);
  EXPECT_EQ(ledger_.pools()[0].free(), ledger_.pools()[0].pool.usable());
  EXPECT_EQ(ledger_.NodeOn("vm/1"), nullptr);
  taken.key = kNode2;
  ASSERT_TRUE(ledger_.Upsert(std::move(taken)).ok());
  EXPECT_EQ(HolderOf(ledger_, A("10.1.0.4"))->key, kNode2);
  EXPECT_EQ(ledger_.NodeOn("vm/1")->key, kNode2);
}

TEST_F(LedgerTest, ABlockStaysInQuarantineUntilItsLastAddressIsOut) {
  PoolSpec blocks = Pool("blocks", "10.2.0.0/24");
  blocks.block_length = 28;
  ASSERT_TRUE(ledger_.SetPools({Pool("default", "10.1.0.0/24"), blocks}).ok());
  ledger_.SetQuarantine(A("10.2.0.17"), Quarantine{.reason = "one", .since = kNow});
  ledger_.SetQuarantine(A("10.2.0.18"), Quarantine{.reason = "two", .since = kNow});
  ledger_.SetQuarantine(A("10.2.0.18"), std::nullopt);
  EXPECT_EQ(StateOf(ledger_, A("10.2.0.18")), AddressPool::State::kQuarantined);
  ledger_.SetQuarantine(A("10.2.0.17"), std::nullopt);
  ledger_.EndCooldowns(kNow);
  EXPECT_EQ(StateOf(ledger_, A("10.2.0.18")), AddressPool::State::kFree);
}

TEST_F(LedgerTest, AnyOrderOfStepsKeepsTheInvariants) {
  testing_support::Random random;
  absl::Time now = kNow;
  for (int step = 0; step < testing_support::kRandomCases; ++step) {
    const NodeKey key{"node" + std::to_string(random.Between(0, 3)), "vm"};
    const ip::Address any = ip::Advance(A("10.1.0.0"), random.Between(0, 255));
    now += absl::Seconds(static_cast<int64_t>(random.Between(0, 10)));
    NodeRecord* record = ledger_.Find(key);
    if (record == nullptr) record = ledger_.Upsert({.key = key}).value();
    Configuration* held = record->Holding(any);
    switch (random.Between(0, 7)) {
      case 0:
        ASSERT_TRUE(ledger_.Upsert(ledger_.Unload(key)).ok());
        break;
      case 1:
        ledger_.Unload(key);
        break;
      case 2:
        if (HolderOf(ledger_, any) == nullptr && ledger_.pools().Offering(any) != nullptr) {
          ledger_.Hold(*record, ip::Prefix::Host(any), AddressState::kAttached, now);
        }
        break;
      case 3:
        if (held != nullptr) ledger_.Release(*record, any, now);
        break;
      case 4:
        if (held != nullptr) ledger_.SetState(*held, AddressState::kDetaching, now);
        break;
      case 5:
        if (held != nullptr) ledger_.SetSlot(*held, any, {.use = Use::kCooldown, .since = now});
        break;
      case 6: {
        std::optional<Quarantine> quarantine;
        if (random.OneIn(2)) quarantine = {.reason = "test", .since = now, .until = now};
        ledger_.SetQuarantine(any, quarantine);
        break;
      }
      default: {
        std::optional<WantedEntry> wanted;
        if (random.OneIn(2)) wanted = {.pool = "default", .since = now};
        ledger_.SetWanted(*record, "spoke-" + std::to_string(random.Between(1, 9)), wanted);
        ledger_.Take(*record, 0, now);
        ledger_.EndCooldowns(now);
      }
    }
    if (step % 16 == 0) CheckInvariants(ledger_);
  }
}

}  // namespace
}  // namespace spoke::ipam
