#include "lib/netlink/queueing/filter.h"

#include <linux/rtnetlink.h>

#include "gtest/gtest.h"
#include "lib/netlink/message.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

// A filter of priority 8320 on link 7, as Linux 6.18 shows it, put there by tc(8).
constexpr std::string_view kFilter =
    "000000000700000001000000f2ffffff00038020080001006270660008000b00000000004000020018000700"
    "70726f6772616d732e6270662e6f3a5b74635d0008000b000f0300000c000a008e94ab597721a08808000800"
    "010000000800090008000000";

TEST(ParseBpfFilter, ReadsWhatTheKernelSent) {
  const BpfFilter filter = ParseBpfFilter(FromHex(kFilter)).value();
  EXPECT_EQ(filter, (BpfFilter{.link = 7,
                               .priority = 8320,
                               .name = "programs.bpf.o:[tc]",
                               .program_id = 783,
                               .direct = true}));
  const BpfFilter redirecting = ParseBpfFilter(FromHex(kRedirectingFilter)).value();
  EXPECT_EQ(redirecting.link, 78);
  EXPECT_EQ(redirecting.priority, 8331);
  EXPECT_FALSE(redirecting.direct);
  EXPECT_EQ(redirecting.redirect_to, 77);
}

TEST(ParseBpfFilter, ReadsWhatOneWasMadeOf) {
  const Request request =
      SetBpfFilter({.link = 7, .priority = 8320, .name = "spoke_from_pod", .direct = true},
                   HookOf(Direction::kIngress), 5);
  const auto message = MessageReader(request.bytes()).Next();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->type, RTM_NEWTFILTER);
  const BpfFilter filter = ParseBpfFilter(message->payload).value();
  EXPECT_EQ(filter.link, 7);
  EXPECT_EQ(filter.priority, 8320);
  EXPECT_EQ(filter.name, "spoke_from_pod");
  EXPECT_TRUE(filter.direct);
}

TEST(ParseBpfFilter, LeavesOtherKindsWithoutAName) {
  const Request request = AddClsact(7);
  const auto message = MessageReader(request.bytes()).Next();
  const BpfFilter other = ParseBpfFilter(message->payload).value();
  EXPECT_EQ(other.name, "");
  EXPECT_EQ(other.program_id, 0U);
}

TEST(ParseBpfFilter, SurvivesDamage) {
  ExpectSurvivesDamage(kFilter, &ParseBpfFilter);
  ExpectSurvivesDamage(kRedirectingFilter, &ParseBpfFilter);
}

TEST(SetBpfFilter, LeadsToAnotherDevice) {
  const BpfFilter divert{
      .link = 7, .priority = 8331, .name = "spoke_divert", .program_id = 0, .redirect_to = 77};
  const Request request = SetBpfFilter(divert, HookOf(Direction::kEgress), 5);
  const auto message = MessageReader(request.bytes()).Next();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(ParseBpfFilter(message->payload).value(), divert);
}

TEST(SetBpfFilter, TellsTheClassAtAQueue) {
  const Request request =
      SetBpfFilter({.link = 7, .priority = 1, .name = "spoke_classify"}, 0x05B0'0000, 5);
  const auto message = MessageReader(request.bytes()).Next();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(ReadStruct<tcmsg>(message->payload)->tcm_parent, 0x05B0'0000U);
  const BpfFilter filter = ParseBpfFilter(message->payload).value();
  EXPECT_FALSE(filter.direct);
  EXPECT_EQ(filter.redirect_to, std::nullopt);
}

}  // namespace
}  // namespace spoke::netlink
