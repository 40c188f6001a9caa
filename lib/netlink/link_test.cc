#include "lib/netlink/link.h"

#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>

#include <map>

#include "lib/netlink/message.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

// Returns the attributes of one level, by type.
std::map<uint16_t, Attribute> Read(std::span<const uint8_t> bytes, size_t fixed_size = 0) {
  AttributeReader reader(bytes, fixed_size);
  std::map<uint16_t, Attribute> attributes;
  while (const auto attribute = reader.Next()) attributes[attribute->type] = *attribute;
  EXPECT_FALSE(reader.malformed());
  return attributes;
}

Message Only(const Request& request) { return MessageReader(request.bytes()).Next().value(); }

TEST(ParseLink, ReadsAVethAsTheKernelSentIt) {
  const auto link = ParseLink(FromHex(kVethLink));
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_EQ(*link, (Link{.index = 77,
                         .name = "spk00000000000a",
                         .kind = "veth",
                         .mac = {{0x0a, 0x11, 0x22, 0x33, 0x44, 0x55}},
                         .mtu = 1400,
                         .up = true,
                         .tx_queues = 1,
                         .rx_queues = 1,
                         .peer_index = 78}));
}

TEST(ParseLink, SurvivesDamage) { ExpectSurvivesDamage(kVethLink, &ParseLink); }

TEST(ParseLink, ADeviceWithALongHardwareAddressHasNoMac) {
  Request request("try", RTM_NEWLINK, 0, ifinfomsg{});
  request.PutAddress(IFLA_ADDRESS, ip::Address::V6(1, 2));
  const auto link = ParseLink(Only(request).payload);
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_EQ(link->mac, ip::MacAddress{});
}

TEST(CreateVeth, BearsTheOuterEndUpAndThePeerDownInItsNamespace) {
  const VethEnd pod{"eth0", 501, {{0x0e, 0, 0, 0, 0, 1}}};
  const VethEnd host{"spk000000000001", 502, {{0x0a, 0, 0, 0, 0, 1}}};
  const Request request = CreateVeth(pod, host, 9, 1450);
  const Message message = Only(request);
  EXPECT_EQ(message.type, RTM_NEWLINK);
  EXPECT_EQ(message.flags, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
  const auto outer_fixed = ReadStruct<ifinfomsg>(message.payload);
  EXPECT_EQ(outer_fixed->ifi_index, 501);
  EXPECT_EQ(outer_fixed->ifi_flags, unsigned{IFF_UP});

  auto outer = Read(message.payload, sizeof(ifinfomsg));
  EXPECT_EQ(outer[IFLA_IFNAME].Text(), "eth0");
  EXPECT_EQ(outer[IFLA_ADDRESS].Mac(), pod.mac);
  EXPECT_EQ(outer[IFLA_MTU].U32(), 1450U);
  EXPECT_EQ(outer[IFLA_NUM_TX_QUEUES].U32(), 1U);
  EXPECT_EQ(outer[IFLA_NUM_RX_QUEUES].U32(), 1U);
  EXPECT_EQ(outer.count(IFLA_NET_NS_FD), 0U);
  auto info = Read(outer[IFLA_LINKINFO].payload);
  EXPECT_EQ(info[IFLA_INFO_KIND].Text(), "veth");
  auto data = Read(info[IFLA_INFO_DATA].payload);
  const auto peer_fixed = ReadStruct<ifinfomsg>(data[VETH_INFO_PEER].payload);
  EXPECT_EQ(peer_fixed->ifi_index, 502);
  EXPECT_EQ(peer_fixed->ifi_flags, 0U);
  auto peer = Read(data[VETH_INFO_PEER].payload, sizeof(ifinfomsg));
  EXPECT_EQ(peer[IFLA_IFNAME].Text(), "spk000000000001");
  EXPECT_EQ(peer[IFLA_ADDRESS].Mac(), host.mac);
  EXPECT_EQ(peer[IFLA_MTU].U32(), 1450U);
  EXPECT_EQ(peer[IFLA_NUM_TX_QUEUES].U32(), 1U);
  EXPECT_EQ(peer[IFLA_NUM_RX_QUEUES].U32(), 1U);
  EXPECT_EQ(peer[IFLA_NET_NS_FD].U32(), 9U);
}

TEST(ConfigureLink, NamesOnlyTheFamiliesThatHaveSettings) {
  const Request both =
      ConfigureLink(7, {.ipv4 = {{IPV4_DEVCONF_FORWARDING, 1}}, .address_generation = uint8_t{1}});
  auto families = Read(Read(Only(both).payload, sizeof(ifinfomsg))[IFLA_AF_SPEC].payload);
  ASSERT_EQ(families.size(), 2U);
  auto settings = Read(Read(families[AF_INET].payload)[IFLA_INET_CONF].payload);
  EXPECT_EQ(settings[IPV4_DEVCONF_FORWARDING].U32(), 1U);
  EXPECT_EQ(Read(families[AF_INET6].payload)[IFLA_INET6_ADDR_GEN_MODE].U8(), 1);

  const Request one = ConfigureLink(
      7, {.ipv4 = {{IPV4_DEVCONF_FORWARDING, 1}}, .address_generation = std::nullopt});
  families = Read(Read(Only(one).payload, sizeof(ifinfomsg))[IFLA_AF_SPEC].payload);
  EXPECT_EQ(families.count(AF_INET6), 0U);
}

TEST(SetLinkUp, ChangesNoOtherFlag) {
  const Request request = SetLinkUp(7, false);
  const auto down = ReadStruct<ifinfomsg>(Only(request).payload);
  EXPECT_EQ(down->ifi_index, 7);
  EXPECT_EQ(down->ifi_flags, 0U);
  EXPECT_EQ(down->ifi_change, unsigned{IFF_UP});
}

TEST(CreateVxlan, NamesThePortInNetworkOrderAndIsReadBack) {
  const Request request = CreateVxlan({.name = "tunnel", .port = 0x12B5, .mtu = 1464});
  const Message message = Only(request);
  EXPECT_EQ(message.flags, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
  EXPECT_EQ(ReadStruct<ifinfomsg>(message.payload)->ifi_flags, 0U) << "down";
  const auto link = ParseLink(message.payload);
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_EQ(*link, (Link{.name = "tunnel", .kind = "vxlan", .mtu = 1464, .udp_port = 0x12B5}));
  const auto info = Read(Read(message.payload, sizeof(ifinfomsg)).at(IFLA_LINKINFO).payload);
  const auto data = Read(info.at(IFLA_INFO_DATA).payload);
  EXPECT_EQ(data.at(IFLA_VXLAN_PORT).payload[0], 0x12);
  EXPECT_TRUE(data.contains(IFLA_VXLAN_GPE) && data.contains(IFLA_VXLAN_COLLECT_METADATA));
}

}  // namespace
}  // namespace spoke::netlink
