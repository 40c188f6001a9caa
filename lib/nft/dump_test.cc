#include "lib/nft/dump.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <array>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::nft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A message as the kernel writes it.
class Written {
 public:
  Written(const Written&) = delete;
  Written() {
    header_ = mnl_nlmsg_put_header(buffer_.data());
    mnl_nlmsg_put_extra_header(header_, sizeof(nfgenmsg));
  }

  Written& Begin(uint16_t type) {
    nests_.push_back(mnl_attr_nest_start(header_, type));
    return *this;
  }
  Written& End() {
    mnl_attr_nest_end(header_, nests_.back());
    nests_.pop_back();
    return *this;
  }
  Written& Put(uint16_t type, const Bytes& bytes) {
    mnl_attr_put(header_, type, bytes.size(), bytes.data());
    return *this;
  }
  Written& Put(uint16_t type, const char* text) {
    mnl_attr_put_strz(header_, type, text);
    return *this;
  }
  Written& PutNumber(uint16_t type, uint32_t number) {
    mnl_attr_put_u32(header_, type, htonl(number));
    return *this;
  }
  Written& PutWide(uint16_t type, uint64_t number) {
    return Put(type, Bytes{0, 0, 0, 0, static_cast<uint8_t>(number >> 24U),
                           static_cast<uint8_t>(number >> 16U), static_cast<uint8_t>(number >> 8U),
                           static_cast<uint8_t>(number)});
  }
  Written& Data(uint16_t type, const Bytes& bytes) {
    return Begin(type).Put(NFTA_DATA_VALUE, bytes).End();
  }
  Written& Counter(uint16_t type, uint64_t packets, uint64_t bytes) {
    return Begin(type)
        .Put(NFTA_EXPR_NAME, "counter")
        .Begin(NFTA_EXPR_DATA)
        .PutWide(NFTA_COUNTER_BYTES, bytes)
        .PutWide(NFTA_COUNTER_PACKETS, packets)
        .End()
        .End();
  }

  std::span<const uint8_t> payload() const {
    return {static_cast<const uint8_t*>(mnl_nlmsg_get_payload(header_)),
            mnl_nlmsg_get_payload_len(header_)};
  }

 private:
  alignas(nlmsghdr) std::array<char, 4096> buffer_{};
  nlmsghdr* header_;
  std::vector<nlattr*> nests_;
};

TEST(ElementDump, ReadsKeysValuesVerdictsAndCounts) {
  Written message;
  message.Put(NFTA_SET_ELEM_LIST_TABLE, "spoke").Begin(NFTA_SET_ELEM_LIST_ELEMENTS);
  message.Begin(NFTA_LIST_ELEM).Data(NFTA_SET_ELEM_KEY, {10, 0, 0, 1});
  message.Data(NFTA_SET_ELEM_DATA, {3, 0, 0, 0}).Counter(NFTA_SET_ELEM_EXPR, 2, 300).End();
  message.Begin(NFTA_LIST_ELEM).Data(NFTA_SET_ELEM_KEY, {10, 0, 0, 2});
  message.Begin(NFTA_SET_ELEM_DATA).Begin(NFTA_DATA_VERDICT);
  message.PutNumber(NFTA_VERDICT_CODE, static_cast<uint32_t>(NFT_JUMP));
  message.Put(NFTA_VERDICT_CHAIN, "from_pod").End().End().End();
  message.End();

  std::vector<ElementReading> elements;
  std::vector<Bytes> ends;
  ASSERT_TRUE(AppendElements(message.payload(), elements, ends).ok());
  ASSERT_EQ(elements.size(), 2U);
  EXPECT_THAT(elements[0].element.key, ElementsAre(10, 0, 0, 1));
  EXPECT_THAT(elements[0].element.value, ElementsAre(3, 0, 0, 0));
  EXPECT_EQ(elements[0].packets, 2U);
  EXPECT_EQ(elements[0].bytes, 300U);
  EXPECT_EQ(elements[1].element.verdict, (Verdict{VerdictKind::kJump, "from_pod"}));
  EXPECT_THAT(ends, IsEmpty());
}

TEST(ElementDump, ReadsTheCounterAmongSeveralExpressions) {
  Written message;
  message.Begin(NFTA_SET_ELEM_LIST_ELEMENTS).Begin(NFTA_LIST_ELEM);
  message.Data(NFTA_SET_ELEM_KEY, {1}).Begin(NFTA_SET_ELEM_EXPRESSIONS);
  message.Begin(NFTA_LIST_ELEM).Put(NFTA_EXPR_NAME, "limit").End();
  message.Counter(NFTA_LIST_ELEM, 7, 8).End().End().End();

  std::vector<ElementReading> elements;
  std::vector<Bytes> ends;
  ASSERT_TRUE(AppendElements(message.payload(), elements, ends).ok());
  ASSERT_EQ(elements.size(), 1U);
  EXPECT_EQ(elements[0].packets, 7U);
  EXPECT_EQ(elements[0].bytes, 8U);
}

TEST(ElementDump, WhatIsCutShortIsNoElement) {
  Written message;
  message.Begin(NFTA_SET_ELEM_LIST_ELEMENTS).Begin(NFTA_LIST_ELEM);
  message.Data(NFTA_SET_ELEM_KEY, {10, 0, 0, 1}).Counter(NFTA_SET_ELEM_EXPR, 2, 300).End().End();
  std::vector<ElementReading> elements;
  std::vector<Bytes> ends;
  for (size_t size = 1; size < message.payload().size(); ++size) {
    EXPECT_EQ(AppendElements(message.payload().first(size), elements, ends).ok(),
              size == sizeof(nfgenmsg))
        << size;
  }
}

ElementReading Start(uint8_t key) { return {.element = {.key = {10, key}}}; }

TEST(Intervals, EndWhereTheKernelSaysOrWhereTheNextBegins) {
  // 10.9 begins last and has no end; 10.5 ends where 10.7 begins, and nothing says so.
  std::vector<ElementReading> elements = {Start(9), Start(7), Start(1), Start(5)};
  CloseIntervals(elements, {{10, 8}, {10, 4}});
  ASSERT_EQ(elements.size(), 4U);
  EXPECT_THAT(elements[0].element.key, ElementsAre(10, 1));
  EXPECT_THAT(elements[0].element.last, ElementsAre(10, 3));
  EXPECT_THAT(elements[1].element.last, ElementsAre(10, 6));
  EXPECT_THAT(elements[2].element.last, ElementsAre(10, 7));
  EXPECT_THAT(elements[3].element.last, ElementsAre(255, 255));
}

TEST(Intervals, AnEndAtAByteBoundaryBorrows) {
  std::vector<ElementReading> elements = {{.element = {.key = {10, 0, 0, 0}}}};
  CloseIntervals(elements, {{10, 1, 0, 0}});
  EXPECT_THAT(elements[0].element.last, ElementsAre(10, 0, 255, 255));
}

TEST(RepeatedElements, TheSecondOneGoes) {
  std::vector<ElementReading> elements = {Start(1), Start(2), Start(1), Start(3)};
  elements[0].bytes = 5;
  elements[2].bytes = 6;
  DropRepeated(elements);
  ASSERT_EQ(elements.size(), 3U);
  EXPECT_EQ(elements[0].bytes, 5U);
  EXPECT_THAT(elements[1].element.key, ElementsAre(10, 2));
  EXPECT_THAT(elements[2].element.key, ElementsAre(10, 3));
}

void WriteCounter(uint32_t type, Written& message) {
  message.Put(NFTA_OBJ_TABLE, "spoke").Put(NFTA_OBJ_NAME, "drop/x").PutNumber(NFTA_OBJ_TYPE, type);
  message.Begin(NFTA_OBJ_DATA).PutWide(NFTA_COUNTER_BYTES, 90).PutWide(NFTA_COUNTER_PACKETS, 4);
  message.End();
}

TEST(CounterDump, ReadsACounterOfTheTableAndNothingElse) {
  Written counter;
  WriteCounter(NFT_OBJECT_COUNTER, counter);
  const auto read = ParseCounter(counter.payload(), "spoke");
  ASSERT_TRUE(read.ok() && read->has_value());
  EXPECT_EQ((*read)->name, "drop/x");
  EXPECT_EQ((*read)->packets, 4U);
  EXPECT_EQ((*read)->bytes, 90U);
  EXPECT_EQ(ParseCounter(counter.payload(), "other")->has_value(), false);
  Written quota;
  WriteCounter(NFT_OBJECT_QUOTA, quota);
  EXPECT_EQ(ParseCounter(quota.payload(), "spoke")->has_value(), false);
  EXPECT_EQ(ParseCounter(counter.payload().first(3), "spoke").status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(RuleDump, ReadsHandleCommentAndTheFirstCounter) {
  Written message;
  message.Put(NFTA_RULE_TABLE, "spoke").Put(NFTA_RULE_CHAIN, "forward");
  message.PutWide(NFTA_RULE_HANDLE, 12).Begin(NFTA_RULE_EXPRESSIONS);
  message.Begin(NFTA_LIST_ELEM).Put(NFTA_EXPR_NAME, "payload").End();
  message.Counter(NFTA_LIST_ELEM, 1, 2).Counter(NFTA_LIST_ELEM, 3, 4).End();
  // A type that is none of ours, then the comment.
  message.Put(NFTA_RULE_USERDATA, Bytes{9, 1, 0, 0, 3, 'h', 'i', 0});
  const auto read = ParseRule(message.payload(), "spoke");
  ASSERT_TRUE(read.ok() && read->has_value());
  EXPECT_EQ((*read)->chain, "forward");
  EXPECT_EQ((*read)->handle, 12U);
  EXPECT_EQ((*read)->comment, "hi");
  EXPECT_EQ((*read)->packets, 1U);
  EXPECT_EQ((*read)->bytes, 2U);
  EXPECT_EQ(ParseRule(message.payload(), "other")->has_value(), false);
}

TEST(NumberDump, ReadsFlagsAndGeneration) {
  Written set;
  set.PutNumber(NFTA_SET_FLAGS, NFT_SET_INTERVAL);
  EXPECT_EQ(*ParseSetFlags(set.payload()), static_cast<uint32_t>(NFT_SET_INTERVAL));
  EXPECT_EQ(*ParseSetFlags(Written().payload()), 0U);
  Written generation;
  generation.PutNumber(NFTA_GEN_ID, 77);
  EXPECT_EQ(*ParseGeneration(generation.payload()), 77U);
  EXPECT_FALSE(ParseGeneration(Written().payload()).ok());
}

}  // namespace
}  // namespace spoke::nft
