#include "lib/nft/encode.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/netlink/message.h"

namespace spoke::nft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TableKey kTable{Family::kInet, "spoke"};

struct Sent {
  uint16_t type = 0;  // The type of the batch, or NFT_MSG_*.
  uint16_t flags = 0;
  uint32_t sequence = 0;
  std::vector<uint8_t> payload;
};

std::vector<Sent> Take(const Batch& batch) {
  std::vector<Sent> sent;
  netlink::MessageReader reader(batch.bytes);
  while (const auto message = reader.Next()) {
    sent.push_back({static_cast<uint16_t>(message->type & 0xFFU),
                    message->flags,
                    message->sequence,
                    {message->payload.begin(), message->payload.end()}});
  }
  EXPECT_FALSE(reader.malformed());
  return sent;
}

std::vector<uint16_t> Types(const std::vector<Sent>& sent) {
  std::vector<uint16_t> types;
  for (const Sent& message : sent) types.push_back(message.type);
  return types;
}

// Returns what stands in NFTA_SET_ELEM_LIST_ELEMENTS: the key, and whether it ends an interval.
std::vector<std::pair<Bytes, bool>> ElementsOf(const Sent& message) {
  std::vector<std::pair<Bytes, bool>> elements;
  netlink::AttributeReader reader(message.payload, sizeof(nfgenmsg));
  while (const auto attribute = reader.Next()) {
    if (attribute->type != NFTA_SET_ELEM_LIST_ELEMENTS) continue;
    netlink::AttributeReader list(attribute->payload);
    while (const auto element = list.Next()) {
      auto& [key, is_end] = elements.emplace_back();
      netlink::AttributeReader parts(element->payload);
      while (const auto part = parts.Next()) {
        if (part->type == NFTA_SET_ELEM_FLAGS) is_end = true;
        if (part->type != NFTA_SET_ELEM_KEY) continue;
        netlink::AttributeReader data(part->payload);
        const auto value = data.Next();
        key.assign(value->payload.begin(), value->payload.end());
      }
    }
  }
  return elements;
}

TEST(Encode, ABatchBeginsAndEndsAndAsksForOneAnswer) {
  Transaction transaction;
  transaction.Add(kTable, AddTable{});
  transaction.Add(kTable, AddCounter{"drop/unknown-source", {}});
  const auto batch = Encode(transaction, 100);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const std::vector<Sent> sent = Take(*batch);
  EXPECT_THAT(Types(sent), ElementsAre(NFNL_MSG_BATCH_BEGIN, NFT_MSG_NEWTABLE, NFT_MSG_NEWOBJ,
                                       NFNL_MSG_BATCH_END));
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(sent[i].sequence, 100 + i);
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ((sent[i].flags & NLM_F_ACK) != 0, i == 2) << i;
  }
  EXPECT_EQ(batch->first_sequence + batch->steps.size(), 102U);
}

TEST(Encode, AnEmptyTransactionHasNoSteps) {
  const auto batch = Encode({}, 1);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->steps.empty());
}

TEST(Encode, ATableIsDeletedWhetherItIsThereOrNot) {
  Transaction transaction;
  transaction.Add(kTable, DeleteTable{});
  const auto batch = Encode(transaction, 1);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(Types(Take(*batch)), ElementsAre(NFNL_MSG_BATCH_BEGIN, NFT_MSG_NEWTABLE,
                                               NFT_MSG_DELTABLE, NFNL_MSG_BATCH_END));
  EXPECT_THAT(batch->steps, ElementsAre(0, 0));
}

TEST(Encode, AnIntervalEndsBeforeTheKeyBehindItAndTheLastOneHasNoEnd) {
  Transaction transaction;
  transaction.Add(kTable, AddElements{"class4",
                                      {{.key = {10, 0, 0, 0}, .last = {10, 0, 255, 255}},
                                       {.key = {10, 1, 0, 0}, .last = {10, 1, 0, 0}},
                                       {.key = {224, 0, 0, 0}, .last = {255, 255, 255, 255}}}});
  const auto batch = Encode(transaction, 1);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const std::vector<Sent> sent = Take(*batch);
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_THAT(ElementsOf(sent[1]),
              ElementsAre(std::pair(Bytes{10, 0, 0, 0}, false), std::pair(Bytes{10, 1, 0, 0}, true),
                          std::pair(Bytes{10, 1, 0, 0}, false), std::pair(Bytes{10, 1, 0, 1}, true),
                          std::pair(Bytes{224, 0, 0, 0}, false)));
}

TEST(Encode, ManyElementsTakeSeveralMessagesOfOneStep) {
  AddElements change{.set = "pods4", .elements = {}};
  for (uint32_t i = 0; i < 10'000; ++i) {
    change.elements.push_back({.key = HostOrder(i), .seed = {.packets = i, .bytes = i}});
  }
  Transaction transaction;
  transaction.Add(kTable, AddTable{});
  transaction.Add(kTable, std::move(change));
  const auto batch = Encode(transaction, 1);
  ASSERT_TRUE(batch.ok()) << batch.status();
  size_t elements = 0;
  for (const Sent& message : Take(*batch)) {
    // An attribute's length has 16 bits.
    EXPECT_LT(message.payload.size(), 64U << 10);
    if (message.type == NFT_MSG_NEWSETELEM) elements += ElementsOf(message).size();
  }
  EXPECT_EQ(elements, 10'000U);
  EXPECT_GT(batch->steps.size(), 10U);
  EXPECT_EQ(std::count(batch->steps.begin(), batch->steps.end(), 1U),
            static_cast<std::ptrdiff_t>(batch->steps.size()) - 1);
}

TEST(Encode, WhatCannotBeIsRefusedWithTheStepsName) {
  Transaction transaction;
  transaction.Add(kTable, AddTable{});
  transaction.Add(
      kTable,
      AddRule{{.chain = "forward", .expressions = {Verdict{}}, .comment = std::string(128, 'x')}});
  const absl::Status status = Encode(transaction, 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("step 2 of 2, add rule inet spoke forward"), HasSubstr("comment")));
}

TEST(Encode, AnIntervalWithoutItsEndIsRefusedWhereItIsKnown) {
  Transaction transaction;
  transaction.Add(kTable, AddSet{{.name = "class4", .key = {Field::kIpv4}, .intervals = true}});
  transaction.Add(kTable, AddElements{"class4", {{.key = {10, 0, 0, 0}}}});
  EXPECT_EQ(Encode(transaction, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace spoke::nft
