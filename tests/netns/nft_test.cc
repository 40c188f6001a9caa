// Tests of what the expressions that count, look up and forward do with real packets.
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/netns/nft_fixture.h"

namespace spoke::netagent {
namespace {

using nft::Compare;
using nft::Comparison;
using nft::LoadMeta;
using nft::LoadPayload;
using nft::MetaKey;
using nft::Verdict;
using nft::VerdictKind;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ip::Address kFalseV4 = ip::Address::V4(0x0A000163);  // 10.0.1.99
constexpr uint64_t kHeadersV4 = 28;                            // The bytes of IP and UDP.
constexpr uint32_t kCluster = 3;
constexpr uint32_t kInternet = 7;

TEST_F(NftTest, RulesMatchByDevicePrefixAddressMaskAndPort) {
  UdpSocket client(first_->netns(), kFirstV4);
  UdpSocket server(second_->netns(), kSecondV4);
  const std::vector<nft::Expression> from_pod = {LoadMeta{MetaKey::kInterfaceName, 0},
                                                 Compare{.value = {'s', 'p', 'k'}}};
  const auto rule = [&](std::vector<nft::Expression> more, const std::string& comment) {
    std::vector<nft::Expression> all = from_pod;
    all.insert(all.end(), more.begin(), more.end());
    all.emplace_back(nft::CountHere{});
    Rule(all, comment);
  };
  rule({SourceV4(4), Compare{.from = 4, .value = nft::NetworkOrder(kFirstV4)}}, "source");
  rule({SourceV4(4), Compare{.from = 4, .value = nft::NetworkOrder(kSecondV4)}}, "other source");
  rule({SourceV4(4), nft::MaskBits{4, 4, {255, 255, 255, 0}, {0, 0, 0, 0}},
        Compare{.from = 4, .value = {10, 0, 1, 0}}},
       "block");
  rule({LoadMeta{MetaKey::kTransport, 5}, Compare{.from = 5, .value = {IPPROTO_UDP}},
        LoadPayload{nft::Header::kTransport, 2, 2, 6},
        Compare{.from = 6, .value = nft::NetworkOrder(server.port())}},
       "port");
  rule({LoadPayload{nft::Header::kNetwork, 8, 1, 7}, Compare{.from = 7, .value = {64}}}, "ttl");
  Commit();
  EXPECT_TRUE(Arrives(client, server, kSecondV4));
  EXPECT_EQ(PacketsOf("source"), 1U);
  EXPECT_EQ(PacketsOf("other source"), 0U);
  EXPECT_EQ(PacketsOf("block"), 1U);
  EXPECT_EQ(PacketsOf("port"), 1U);
  // The node has taken one off on its way to the hook.
  EXPECT_EQ(PacketsOf("ttl"), 0U);
}

TEST_F(NftTest, BytesAreCountedByAddressAndTheClassThatAnIntervalMapSays) {
  Do(nft::AddSet{{.name = "class4",
                  .key = {nft::Field::kIpv4},
                  .value = nft::Field::kMark,
                  .intervals = true}});
  Do(nft::AddElements{
      "class4",
      {{.key = {0, 0, 0, 0}, .last = {9, 255, 255, 255}, .value = nft::HostOrder(kInternet)},
       {.key = {10, 0, 0, 0}, .last = {10, 255, 255, 255}, .value = nft::HostOrder(kCluster)},
       {.key = {11, 0, 0, 0}, .last = {255, 255, 255, 255}, .value = nft::HostOrder(kInternet)}}});
  Do(nft::AddSet{{.name = "sent4",
                  .key = {nft::Field::kIpv4, nft::Field::kMark},
                  .dynamic = true,
                  .counts = true,
                  .size = 2}});
  Rule({SourceV4(0), DestinationV4(2), nft::LookUp{.set = "class4", .from = 2, .to = 1},
        nft::PutInSet{.set = "sent4"}, nft::CountHere{}},
       "counted");
  Commit();
  UdpSocket client(first_->netns(), kFirstV4);
  UdpSocket peer(second_->netns(), kSecondV4);
  UdpSocket far(node_->fabric(), kFarV4);
  EXPECT_TRUE(Arrives(client, peer, kSecondV4));
  EXPECT_TRUE(Arrives(client, far, kFarV4));
  EXPECT_TRUE(Arrives(client, far, kFarV4));
  const uint64_t bytes = kHeadersV4 + 5;
  EXPECT_THAT(Counted("sent4"), ElementsAre(fmt::format("0a00010703000000 1/{}", bytes),
                                            fmt::format("0a00010707000000 2/{}", 2 * bytes)));
  // The set is full: the packet arrives all the same, and the rule ends before its counter.
  UdpSocket back(second_->netns(), kSecondV4);
  UdpSocket first(first_->netns(), kFirstV4);
  EXPECT_TRUE(Arrives(back, first, kFirstV4));
  EXPECT_EQ(Counted("sent4").size(), 2U);
  EXPECT_EQ(PacketsOf("counted"), 3U);
}

TEST_F(NftTest, WhatComesByALinkFromAnAddressThatIsNotItsOwnIsDropped) {
  Do(nft::AddSet{
      {.name = "pods4", .key = {nft::Field::kInterfaceIndex, nft::Field::kIpv4}, .counts = true}});
  Do(nft::AddCounter{"drop/unknown-source", {}});
  Do(nft::AddElements{
      "pods4",
      {{.key = nft::Join({nft::HostOrder(IndexOf(first_link_)), nft::NetworkOrder(kFirstV4)})}}});
  // The rule is before the node routes: what comes by a link of ours with a source that is not
  // routed there, it would drop by itself (rp_filter), and not be counted.
  Do(nft::AddChain{
      {.name = "pre", .base = nft::BaseHook{.hook = nft::Hook::kPrerouting, .priority = -150}}});
  const auto rule = [&](nft::LookUp look_up, std::vector<nft::Expression> more) {
    std::vector<nft::Expression> all = {LoadMeta{MetaKey::kInterface, 0},
                                        Compare{.value = nft::HostOrder(IndexOf(first_link_))},
                                        LoadMeta{MetaKey::kFamily, 1},
                                        Compare{.from = 1, .value = {AF_INET}},
                                        SourceV4(1),
                                        std::move(look_up)};
    all.insert(all.end(), more.begin(), more.end());
    Do(nft::AddRule{{.chain = "pre", .expressions = std::move(all)}});
  };
  // The inverted one does not count what it finds, so it takes two.
  rule({.set = "pods4", .inverted = true},
       {nft::CountIn{"drop/unknown-source"}, Verdict{VerdictKind::kDrop}});
  rule({.set = "pods4"}, {});
  Commit();
  OutputIn(first_->netns(), fmt::format("ip addr add {}/32 dev eth0", kFalseV4.ToString()));
  UdpSocket honest(first_->netns(), kFirstV4);
  UdpSocket liar(first_->netns(), kFalseV4);
  UdpSocket server(second_->netns(), kSecondV4);
  EXPECT_TRUE(Arrives(honest, server, kSecondV4));
  EXPECT_FALSE(Arrives(liar, server, kSecondV4));
  EXPECT_EQ(tables_->ReadCounters(kSpokeTable).value().at(0).packets, 1U);
  EXPECT_THAT(Counted("pods4"), ElementsAre(HasSubstr(" 1/33")));
}

TEST_F(NftTest, AVerdictMapLeadsToTheChainOfAPod) {
  Do(nft::AddChain{{.name = "closed"}});
  Do(nft::AddRule{{.chain = "closed", .expressions = {Verdict{VerdictKind::kDrop}}}});
  Do(nft::AddSet{{.name = "by_link", .key = {nft::Field::kInterfaceIndex}, .verdicts = true}});
  Do(nft::AddElements{"by_link",
                      {{.key = nft::HostOrder(IndexOf(first_link_)),
                        .verdict = Verdict{VerdictKind::kJump, "closed"}}}});
  Rule({LoadMeta{MetaKey::kInterface, 0}, nft::LookUp{.set = "by_link", .verdict = true}});
  Commit();
  UdpSocket first(first_->netns(), kFirstV4);
  UdpSocket second(second_->netns(), kSecondV4);
  EXPECT_TRUE(Arrives(second, first, kFirstV4));
  UdpSocket closed(first_->netns(), kFirstV4);
  UdpSocket server(second_->netns(), kSecondV4);
  EXPECT_FALSE(Arrives(closed, server, kSecondV4));
}

TEST_F(NftTest, PeopleCanReadItWithNft) {
  Do(nft::AddSet{{.name = "class4",
                  .key = {nft::Field::kIpv4},
                  .value = nft::Field::kMark,
                  .intervals = true}});
  Do(nft::AddElements{
      "class4",
      {{.key = {10, 0, 0, 0}, .last = {10, 255, 255, 255}, .value = nft::HostOrder(kCluster)},
       {.key = {11, 0, 0, 0}, .last = {255, 255, 255, 255}, .value = nft::HostOrder(kInternet)}}});
  Do(nft::AddSet{
      {.name = "pods4", .key = {nft::Field::kInterfaceIndex, nft::Field::kIpv4}, .counts = true}});
  Do(nft::AddElements{
      "pods4",
      {{.key = nft::Join({nft::HostOrder(IndexOf(first_link_)), nft::NetworkOrder(kFirstV4)}),
        .seed = {2, 66}}}});
  Do(nft::AddCounter{"ns/default/cluster/sent", {1, 33}});
  Rule({LoadMeta{MetaKey::kInterfaceName, 0}, Compare{.value = {'s', 'p', 'k'}},
        LoadMeta{MetaKey::kFamily, 0}, Compare{.value = {AF_INET}}, SourceV4(1),
        Compare{.from = 1, .value = nft::NetworkOrder(kFirstV4)},
        nft::CountIn{"ns/default/cluster/sent"}},
       "from pods");
  Commit();
  const std::string text = Output("nft list table inet spoke");
  for (const std::string& part :
       {std::string("10.0.0.0/8 : 0x00000003"),
        std::string("11.0.0.0-255.255.255.255 : 0x00000007"),
        std::string("type iface_index . ipv4_addr"),
        fmt::format("\"{}\" . 10.0.1.7 counter packets 2 bytes 66", first_link_),
        std::string("iifname \"spk*\""), std::string("ip saddr 10.0.1.7"),
        std::string("counter ns/default/cluster/sent"), std::string("comment \"from pods\"")}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace spoke::netagent
