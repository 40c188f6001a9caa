#include "lib/netlink/queueing/htb.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <cerrno>

#include "gtest/gtest.h"
#include "lib/netlink/message.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

constexpr uint32_t kTree = 0x05B0'0000;

HtbClassReading RoundTrip(const HtbClass& htb) {
  const Request request = SetHtbClass(htb);
  const auto message = MessageReader(request.bytes()).Next();
  EXPECT_EQ(message->type, RTM_NEWTCLASS);
  return ParseHtbClass(message->payload).value();
}

TEST(ParseHtbClass, ReadsClassesAsTheKernelSentThem) {
  const HtbClassReading leaf = ParseHtbClass(FromHex(kHtbLeaf)).value();
  EXPECT_EQ(leaf.htb, (HtbClass{.link = 77,
                                .id = kTree + 0x10,
                                .parent = kTree + 1,
                                .rate = 12'500'000,
                                .ceil = 25'000'000,
                                .burst = 125'000,
                                .quantum = 100'000}));
  EXPECT_EQ(TC_H_MIN(leaf.queue), 0U);
  EXPECT_NE(leaf.queue, 0U);
  EXPECT_EQ(leaf.sent_bytes, 0U);
  const HtbClassReading top = ParseHtbClass(FromHex(kHtbTop)).value();
  EXPECT_EQ(top.htb.parent, kTree);
  EXPECT_EQ(top.htb.rate, 12'500'000'000U);
  EXPECT_EQ(top.htb.ceil, 12'500'000'000U);
  EXPECT_EQ(top.queue, 0U);
}

TEST(ParseHtbClass, ReadsWhatWasCounted) {
  tcmsg fixed{};
  fixed.tcm_handle = kTree + 2;
  fixed.tcm_parent = TC_H_ROOT;
  Request request("", RTM_NEWTCLASS, 0, fixed);
  struct {
    uint64_t bytes = 0x1'0000'0001;
    uint32_t packets = 7;
    uint32_t padding = 0;
  } basic;
  struct {
    uint32_t length = 3, backlog = 3'000, drops = 11, requeues = 0, overlimits = 13;
  } queue;
  tc_htb_opt options{};
  options.rate.rate = 1;
  request.PutText(TCA_KIND, "htb")
      .BeginNest(TCA_OPTIONS)
      .PutValue(TCA_HTB_PARMS, options)
      .EndNest()
      .BeginNest(TCA_STATS2)
      .PutValue(1, basic)
      .PutValue(3, queue)
      .EndNest();
  const auto message = MessageReader(request.bytes()).Next();
  const HtbClassReading reading = ParseHtbClass(message->payload).value();
  EXPECT_EQ(reading.sent_bytes, 0x1'0000'0001U);
  EXPECT_EQ(reading.sent_packets, 7U);
  EXPECT_EQ(reading.dropped_packets, 11U);
  EXPECT_EQ(reading.overlimits, 13U);
  EXPECT_EQ(reading.backlog_bytes, 3'000U);
}

TEST(ParseHtbClass, LeavesOtherKindsWithoutAnId) {
  tcmsg fixed{};
  fixed.tcm_handle = kTree + 2;
  Request request("", RTM_NEWTCLASS, 0, fixed);
  request.PutText(TCA_KIND, "fq_codel");
  const auto message = MessageReader(request.bytes()).Next();
  EXPECT_EQ(ParseHtbClass(message->payload).value().htb.id, 0U);
}

TEST(ParseHtbClass, SurvivesDamage) {
  for (const auto recorded : {kHtbLeaf, kHtbTop}) ExpectSurvivesDamage(recorded, &ParseHtbClass);
}

TEST(SetHtbClass, ReadsAsTheKernelWillKeepIt) {
  for (const uint64_t rate : {uint64_t{1}, uint64_t{125'000}, uint64_t{0xFFFFFFFE},
                              uint64_t{0xFFFFFFFF}, uint64_t{125'000'000'000}}) {
    const HtbClass htb{.link = 7,
                       .id = kTree + 0x20,
                       .parent = kTree,
                       .rate = rate,
                       .ceil = rate + 1,
                       .burst = 65'536,
                       .quantum = 70'000};
    EXPECT_EQ(RoundTrip(htb).htb, AsKept(htb)) << rate;
  }
}

TEST(SetHtbClass, IsWhatTcMakes) {
  const Request request = SetHtbClass({.link = 77,
                                       .id = kTree + 0x10,
                                       .parent = kTree + 1,
                                       .rate = 12'500'000,
                                       .ceil = 25'000'000,
                                       .burst = 125'000,
                                       .quantum = 100'000});
  const auto message = MessageReader(request.bytes()).Next();
  EXPECT_EQ(ParseHtbClass(message->payload)->htb, ParseHtbClass(FromHex(kHtbLeaf))->htb);
  // The parameters byte by byte: behind tcmsg, kind and two headers of attributes.
  const std::vector<uint8_t> recorded = FromHex(kHtbLeaf);
  constexpr size_t kAt = sizeof(tcmsg) + 8 + 4 + 4;
  const std::vector<uint8_t> made(message->payload.begin(), message->payload.end());
  ASSERT_GE(made.size(), kAt + sizeof(tc_htb_opt));
  const auto parameters = ReadStruct<tc_htb_opt>(std::span(made).subspan(kAt));
  const auto theirs = ReadStruct<tc_htb_opt>(std::span(recorded).subspan(kAt));
  EXPECT_EQ(parameters->rate.linklayer, theirs->rate.linklayer);
  EXPECT_EQ(parameters->buffer, theirs->buffer);
  EXPECT_EQ(parameters->cbuffer, theirs->cbuffer);
  EXPECT_EQ(parameters->quantum, theirs->quantum);
}

TEST(DeleteHtbClass, OfOneThatIsGoneIsDone) {
  EXPECT_TRUE(DeleteHtbClass(7, kTree + 2).Tolerates(ENOENT));
}

}  // namespace
}  // namespace spoke::netlink
