// The kernel's table of legacy iptables, built here as iptables builds it.
#include "lib/node_checks/facts/legacy_filter.h"

#include <arpa/inet.h>
#include <linux/netfilter_ipv4/ip_tables.h>

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

using nft::Fate;
using testing::ElementsAre;
using testing::SizeIs;

class Table {
 public:
  // Returns the entry's offset.
  uint32_t Add(int verdict, const char* device = "", const char* match = "") {
    ipt_entry entry{};
    std::strncpy(entry.ip.iniface, device, IFNAMSIZ - 1);
    std::memset(entry.ip.iniface_mask, 0xFF, std::strlen(device));
    xt_entry_match matching{};
    std::strncpy(matching.u.user.name, match, sizeof(matching.u.user.name) - 1);
    matching.u.match_size = sizeof(matching);
    const size_t matches = *match == 0 ? 0 : sizeof(matching);
    xt_standard_target target{};
    target.target.u.target_size = sizeof(target);
    target.verdict = verdict;
    return Append(entry, matches == 0 ? nullptr : &matching, &target, sizeof(target));
  }
  uint32_t AddHead(const char* chain) {
    xt_error_target target{};
    target.target.u.target_size = sizeof(target);
    std::strncpy(target.target.u.user.name, XT_ERROR_TARGET, sizeof(target.target.u.user.name) - 1);
    std::strncpy(target.errorname, chain, sizeof(target.errorname) - 1);
    return Append({}, nullptr, &target, sizeof(target));
  }
  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  uint32_t Append(ipt_entry entry, const xt_entry_match* match, const void* target,
                  size_t target_size) {
    const uint32_t offset = size();
    const size_t matches = match == nullptr ? 0 : sizeof(*match);
    entry.target_offset = static_cast<uint16_t>(sizeof(entry) + matches);
    entry.next_offset = static_cast<uint16_t>(entry.target_offset + target_size);
    Put(&entry, sizeof(entry));
    if (match != nullptr) Put(match, matches);
    Put(target, target_size);
    return offset;
  }
  void Put(const void* from, size_t count) {
    const auto* begin = static_cast<const uint8_t*>(from);
    bytes_.insert(bytes_.end(), begin, begin + count);
  }

  std::vector<uint8_t> bytes_;
};

constexpr int kAccept = -NF_ACCEPT - 1;
constexpr int kDrop = -NF_DROP - 1;

TEST(LegacyFilter, TheChainForwardIsReadWithWhereItLeads) {
  Table table;
  table.Add(kAccept);  // This is INPUT's policy.
  const uint32_t head = table.size();
  const uint32_t to_chain = table.Add(0);
  table.Add(kAccept, "docker0", "conntrack");
  table.Add(kAccept, "spk", "comment");
  const uint32_t policy = table.Add(kDrop);
  table.Add(kAccept);  // This is OUTPUT's policy.
  table.AddHead("MINE");
  const uint32_t mine = table.Add(XT_RETURN);
  table.AddHead("ERROR");
  // The jump is set, now that it is known where to.
  const int verdict = static_cast<int>(mine);
  std::memcpy(
      table.bytes().data() + to_chain + sizeof(ipt_entry) + offsetof(xt_standard_target, verdict),
      &verdict, sizeof(verdict));
  const auto chains = ParseLegacyFilter(table.bytes(), {head, policy});
  ASSERT_TRUE(chains.ok()) << chains.status();
  ASSERT_THAT(*chains, SizeIs(2));
  const nft::ChainGist& forward = chains->front();
  EXPECT_EQ(forward.name, "FORWARD");
  EXPECT_TRUE(forward.at_forward && forward.drops);
  ASSERT_THAT(forward.rules, SizeIs(3));
  EXPECT_EQ(forward.rules[0].fate, Fate::kJump);
  EXPECT_EQ(forward.rules[0].target, "MINE");
  EXPECT_FALSE(forward.rules[0].conditional);
  EXPECT_EQ(forward.rules[1].fate, Fate::kAccept);
  EXPECT_TRUE(forward.rules[1].on_state);
  // The mask covers the name and no more: "spk+".
  EXPECT_THAT(forward.rules[2].devices, ElementsAre("spk*"));
  EXPECT_FALSE(forward.rules[2].on_state);
  EXPECT_EQ((*chains)[1].name, "MINE");
  EXPECT_EQ((*chains)[1].rules[0].fate, Fate::kReturn);
}

TEST(LegacyFilter, WhatCannotBeIsRefused) {
  Table table;
  const uint32_t policy = table.Add(kDrop);
  EXPECT_TRUE(ParseLegacyFilter(table.bytes(), {policy, policy}).ok());
  EXPECT_FALSE(ParseLegacyFilter({}, {0, 0}).ok());
  EXPECT_FALSE(ParseLegacyFilter(table.bytes(), {policy, 7}).ok());
  for (size_t size = 1; size < table.bytes().size(); ++size) {
    EXPECT_FALSE(ParseLegacyFilter(std::span(table.bytes()).first(size), {0, 0}).ok()) << size;
  }
  Table lost;
  lost.Add(7);  // It is a jump to where no chain begins.
  const uint32_t end = lost.Add(kDrop);
  EXPECT_FALSE(ParseLegacyFilter(lost.bytes(), {0, end}).ok());
}

// Nobody has made the table: then looking must not make it.
TEST(LegacyFilter, WithoutTheTableThereAreNoChains) {
  const auto chains = ReadLegacyFilter("/nonexistent");
  ASSERT_TRUE(chains.ok()) << chains.status();
  EXPECT_THAT(*chains, SizeIs(0));
}

}  // namespace
}  // namespace spoke::node_checks
