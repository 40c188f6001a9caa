#include "netagent/nftables/nft_watch.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr uint32_t kOwnPort = 7;
constexpr uint32_t kOtherPort = 8;

using Bytes = std::vector<uint8_t>;

template <typename T>
void Append(const T& value, Bytes& bytes) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(value));
}

// Returns a message whose first attribute is the text `table`.
Bytes Message(uint16_t kind, uint32_t port, std::string_view table) {
  Bytes bytes;
  const size_t attribute = sizeof(nlattr) + table.size() + 1;
  const size_t length = sizeof(nlmsghdr) + sizeof(nfgenmsg) + NLA_ALIGN(attribute);
  Append(nlmsghdr{.nlmsg_len = static_cast<uint32_t>(length),
                  .nlmsg_type = static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8U | kind),
                  .nlmsg_flags = 0,
                  .nlmsg_seq = 0,
                  .nlmsg_pid = port},
         bytes);
  Append(nfgenmsg{}, bytes);
  Append(nlattr{.nla_len = static_cast<uint16_t>(attribute), .nla_type = NFTA_TABLE_NAME}, bytes);
  bytes.insert(bytes.end(), table.begin(), table.end());
  bytes.resize(length);
  return bytes;
}

Bytes operator+(Bytes one, const Bytes& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

TEST(NftWatchTest, HearsWhatOthersDoToOurTables) {
  for (const char* table : {"spoke", "spoke-names"}) {
    EXPECT_TRUE(OthersChangedOurTables(Message(NFT_MSG_DELTABLE, kOtherPort, table), kOwnPort));
    EXPECT_TRUE(OthersChangedOurTables(Message(NFT_MSG_NEWRULE, kOtherPort, table), kOwnPort));
  }
}

TEST(NftWatchTest, WhatWeDoOurselvesAndToOthersTablesIsNothing) {
  EXPECT_FALSE(OthersChangedOurTables(Message(NFT_MSG_NEWRULE, kOwnPort, "spoke"), kOwnPort));
  EXPECT_FALSE(OthersChangedOurTables(Message(NFT_MSG_NEWRULE, kOtherPort, "spok"), kOwnPort));
  EXPECT_FALSE(OthersChangedOurTables(Message(NFT_MSG_NEWGEN, kOtherPort, "spoke"), kOwnPort));
  EXPECT_FALSE(OthersChangedOurTables({}, kOwnPort));
}

TEST(NftWatchTest, OneMessageOfSeveralIsEnough) {
  const Bytes other = Message(NFT_MSG_NEWRULE, kOtherPort, "filter");
  const Bytes ours = Message(NFT_MSG_DELRULE, kOtherPort, "spoke");
  EXPECT_TRUE(OthersChangedOurTables(other + ours, kOwnPort));
  EXPECT_TRUE(OthersChangedOurTables(ours + other, kOwnPort));
}

TEST(NftWatchTest, WhatCannotBeReadMayBeAChangeOfOurs) {
  const Bytes other = Message(NFT_MSG_NEWRULE, kOtherPort, "filter");
  for (size_t length = 1; length < other.size(); ++length) {
    EXPECT_TRUE(OthersChangedOurTables(std::span(other).first(length), kOwnPort)) << length;
  }
  Bytes nameless = other;
  nameless[sizeof(nlmsghdr) + sizeof(nfgenmsg) + 2] = 99;  // These are the attribute's type.
  EXPECT_TRUE(OthersChangedOurTables(nameless, kOwnPort));
}

}  // namespace
}  // namespace spoke::netagent
