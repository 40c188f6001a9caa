#include <linux/if_link.h>
#include <linux/ip.h>

#include "lib/netlink/link.h"
#include "lib/netlink/message.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

TEST(ParseLinkState, ReadsAVethAsTheKernelSentIt) {
  const std::vector<uint8_t> payload = FromHex(kVethLink);
  const auto state = ParseLinkState(payload);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->link, ParseLink(payload).value());
  EXPECT_EQ(state->group, 0U);
  EXPECT_EQ(state->qdisc, "noqueue");
  EXPECT_EQ(state->peer_netns, std::nullopt);
  ASSERT_GT(state->ipv4.size(), size_t{IPV4_DEVCONF_ARP_ACCEPT});
  EXPECT_EQ(state->ipv4[IPV4_DEVCONF_FORWARDING], 0U);
  EXPECT_EQ(state->ipv4[IPV4_DEVCONF_ACCEPT_REDIRECTS], 1U);
  EXPECT_EQ(state->address_generation, IN6_ADDR_GEN_MODE_EUI64);
}

TEST(ParseLinkState, SurvivesDamage) { ExpectSurvivesDamage(kVethLink, ParseLinkState); }

TEST(LinkRequests, SayWhatTheyAreFor) {
  EXPECT_EQ(SetLinkMac(7, {}).what(), "set the MAC of link 7");
  const Request request = SetLinkMtu(7, 1400);
  const Message message = MessageReader(request.bytes()).Next().value();
  AttributeReader reader(message.payload, 16);
  const auto attribute = reader.Next();
  ASSERT_TRUE(attribute.has_value());
  EXPECT_EQ(attribute->type, IFLA_MTU);
  EXPECT_EQ(attribute->U32(), 1400U);
}

}  // namespace
}  // namespace spoke::netlink
