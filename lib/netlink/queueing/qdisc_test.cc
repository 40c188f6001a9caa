#include "lib/netlink/queueing/qdisc.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "gtest/gtest.h"
#include "lib/netlink/message.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

TEST(ParseQdisc, ReadsQdiscsAsTheKernelSentThem) {
  const Qdisc slow = ParseQdisc(FromHex(kTokenBucket)).value();
  EXPECT_EQ(slow.kind, "tbf");
  EXPECT_EQ(slow.handle, 0x5350'0000U);
  EXPECT_EQ(slow.parent, TC_H_ROOT);
  EXPECT_EQ(slow.token_bucket, (TokenBucket{1'250'000, 16384, 62'500}));
  const Qdisc fast = ParseQdisc(FromHex(kFastTokenBucket)).value();
  EXPECT_EQ(fast.token_bucket->rate, 12'500'000'000U);
  EXPECT_EQ(fast.token_bucket->limit, 16U << 20U);
  const Qdisc none = ParseQdisc(FromHex(kNoQueue)).value();
  EXPECT_EQ(none.kind, "noqueue");
  EXPECT_EQ(none.handle, 0U);
  EXPECT_EQ(none.token_bucket, std::nullopt);
  EXPECT_EQ(none.fifo_limit, std::nullopt);
  const Qdisc tree = ParseQdisc(FromHex(kHtb)).value();
  EXPECT_EQ(tree.kind, "htb");
  EXPECT_EQ(tree.handle, 0x05B0'0000U);
  const Qdisc queue = ParseQdisc(FromHex(kByteFifo)).value();
  EXPECT_EQ(queue.parent, 0x05B0'0010U);
  EXPECT_EQ(queue.fifo_limit, 625'000U);
}

TEST(ParseQdisc, SurvivesDamage) {
  for (const auto recorded : {kTokenBucket, kFastTokenBucket, kNoQueue, kHtb, kByteFifo}) {
    ExpectSurvivesDamage(recorded, &ParseQdisc);
  }
}

TEST(AddTokenBucket, HasTheRateInBothWidthsOnlyWhereItMust) {
  for (const uint64_t rate : {uint64_t{1}, uint64_t{1'250'000}, uint64_t{0xFFFFFFFE},
                              uint64_t{0xFFFFFFFF}, uint64_t{12'500'000'000}}) {
    const Request request = AddTokenBucket(7, 0x5350'0000, {rate, 16384, 62'500});
    const auto message = MessageReader(request.bytes()).Next();
    EXPECT_EQ(message->type, RTM_NEWQDISC);
    const Qdisc qdisc = ParseQdisc(message->payload).value();
    EXPECT_EQ(qdisc.link, 7);
    EXPECT_EQ(qdisc.token_bucket->rate, rate);
    EXPECT_EQ(qdisc.token_bucket->limit, 62'500U);
  }
}

TEST(SetByteFifo, IsReadAsMade) {
  const Request request = SetByteFifo(7, 0x05B0'0010, 625'000);
  const auto message = MessageReader(request.bytes()).Next();
  EXPECT_EQ(message->type, RTM_NEWQDISC);
  EXPECT_EQ(message->flags & (NLM_F_CREATE | NLM_F_REPLACE | NLM_F_EXCL),
            NLM_F_CREATE | NLM_F_REPLACE);
  EXPECT_EQ(
      ParseQdisc(message->payload).value(),
      (Qdisc{
          .link = 7, .handle = 0, .parent = 0x05B0'0010, .kind = "bfifo", .fifo_limit = 625'000}));
}

}  // namespace
}  // namespace spoke::netlink
