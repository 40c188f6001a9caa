#include "netagent/fastpath/slot_table.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/bpf/maps.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ip::Address A(uint32_t number) { return ip::Address::V4(0x0A000000 + number); }
ip::Address B(uint32_t number) { return ip::Address::V6(0xFD00'0000'0000'0000, number); }

spoke_slot Pod(uint64_t id, uint32_t link, uint32_t address) {
  spoke_slot pod{};
  pod.id = id;
  pod.link = link;
  pod.v4 = ToLayout(A(address));
  pod.has_v4 = 1;
  pod.v6 = ToLayout(B(address));
  pod.has_v6 = 1;
  return pod;
}

TEST(SlotTable, FindsAPodByAllThatItHas) {
  SlotTable table;
  EXPECT_EQ(table.FirstFree(), 0U);
  table.Put(0, Pod(7, 100, 1));
  EXPECT_EQ(table.FirstFree(), 1U);
  EXPECT_EQ(table.SlotOf(7), 0U);
  EXPECT_THAT(table.SlotsOn(100), ElementsAre(0U));
  EXPECT_TRUE(table.HasAddress(A(1)));
  EXPECT_TRUE(table.HasAddress(B(1)));
  EXPECT_THAT(AddressesOf(table.at(0)), ElementsAre(A(1), B(1)));
}

TEST(SlotTable, OneThatHasEndedIsFoundByItsIdAlone) {
  SlotTable table;
  table.Put(0, Pod(7, 100, 1));
  spoke_slot ended = table.at(0);
  ended.ended = 1;
  table.Put(0, ended);
  EXPECT_EQ(table.SlotOf(7), 0U);
  EXPECT_THAT(table.SlotsOn(100), IsEmpty());
  EXPECT_FALSE(table.HasAddress(A(1)));
  EXPECT_EQ(table.FirstFree(), 1U);
}

TEST(SlotTable, WhatAKilledAgentHasLeftTwiceIsThereUntilBothAreGone) {
  SlotTable table;
  table.Put(0, Pod(7, 100, 1));
  table.Put(1, Pod(8, 100, 1));
  EXPECT_THAT(table.SlotsOn(100), ElementsAre(0U, 1U));
  table.Erase(0);
  EXPECT_TRUE(table.HasAddress(A(1)));
  EXPECT_THAT(table.SlotsOn(100), ElementsAre(1U));
  table.Erase(1);
  EXPECT_FALSE(table.HasAddress(A(1)));
  EXPECT_EQ(table.FirstFree(), 0U);
}

// The law: it answers as going through all slots does.
TEST(SlotTable, AnswersAsAllSlotsDoWhateverHappens) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SlotTable table;
    uint64_t last_id = 0;
    for (int step = 0; step < 300; ++step) {
      const auto slot = static_cast<uint32_t>(random() % 12);
      if (random() % 3 == 0) {
        table.Erase(slot);
      } else {
        spoke_slot pod = Pod(++last_id, random() % 5, random() % 5);
        pod.ended = random() % 3 == 0 ? 1 : 0;
        if (random() % 4 == 0) pod.has_v6 = 0;
        table.Put(slot, pod);
      }
      uint32_t free = 0;
      while (table.all().contains(free)) ++free;
      ASSERT_EQ(table.FirstFree(), free);
      for (const auto& [used, pod] : table.all()) ASSERT_EQ(table.SlotOf(pod.id), used);
      for (uint32_t number = 0; number < 5; ++number) {
        std::vector<uint32_t> on;
        for (const auto& [used, pod] : table.all()) {
          if (pod.ended == 0 && pod.link == number) on.push_back(used);
        }
        ASSERT_EQ(table.SlotsOn(number), on);
        for (const ip::Address& address : {A(number), B(number)}) {
          const bool has =
              std::any_of(table.all().begin(), table.all().end(), [&](const auto& entry) {
                const std::vector<ip::Address> own = AddressesOf(entry.second);
                return entry.second.ended == 0 &&
                       std::find(own.begin(), own.end(), address) != own.end();
              });
          ASSERT_EQ(table.HasAddress(address), has);
        }
      }
    }
  }
}

}  // namespace
}  // namespace spoke::netagent
