// Tests of what the expressions that know of flows do with real packets: translation, marks,
// limits, refusals.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "lib/ip/socket_address.h"
#include "tests/netns/nft_fixture.h"

namespace spoke::netagent {
namespace {

using nft::Compare;
using nft::Comparison;
using nft::LoadMeta;
using nft::MetaKey;
using nft::Verdict;
using nft::VerdictKind;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ip::Address kServiceV4 = ip::Address::V4(0xCB007163);  // 203.0.113.99, nobody's.
constexpr uint32_t kUntracked = 64;  // The value of NF_CT_STATE_UNTRACKED_BIT.

TEST_F(NftTest, MasqueradeGivesPodsTheNodesAddressAndTheAnswerComesBack) {
  Do(nft::AddChain{
      {.name = "post",
       .base = nft::BaseHook{
           .type = nft::ChainType::kNat, .hook = nft::Hook::kPostrouting, .priority = 100}}});
  Do(nft::AddRule{
      {.chain = "post",
       .expressions = {LoadMeta{MetaKey::kOutInterfaceName, 0},
                       Compare{.value = nft::DeviceName(kNodeDevice)}, nft::Masquerade{}}}});
  Commit();
  UdpSocket client(first_->netns(), kFirstV4);
  UdpSocket far(node_->fabric(), kFarV4);
  client.Connect(kFarV4, far.port());
  ASSERT_EQ(client.Send("hello"), 0);
  // Only the node's address may be seen.
  ip::SocketAddress from;
  std::array<char, 16> text{};
  const ssize_t got =
      ::recvfrom(far.fd(), text.data(), text.size(), MSG_PEEK, from.get(), &from.size);
  ASSERT_EQ(got, 5) << std::strerror(errno);
  EXPECT_EQ(ip::PeerAddress(from), kNodeV4);
  far.EchoOnce();
  EXPECT_EQ(client.Receive(), "hello");
}

TEST_F(NftTest, SourceAndDestinationAreTranslatedToWhatRegistersSay) {
  UdpSocket client(first_->netns(), kFirstV4);
  UdpSocket far(node_->fabric(), kFarV4);
  Do(nft::AddChain{
      {.name = "pre",
       .base = nft::BaseHook{
           .type = nft::ChainType::kNat, .hook = nft::Hook::kPrerouting, .priority = -100}}});
  Do(nft::AddRule{
      {.chain = "pre",
       .expressions = {DestinationV4(0), Compare{.value = nft::NetworkOrder(kServiceV4)},
                       nft::LoadImmediate{0, nft::NetworkOrder(kFarV4)},
                       nft::LoadImmediate{1, nft::NetworkOrder(far.port())},
                       nft::TranslateDestination{.address = 0, .port = 1}}}});
  Do(nft::AddChain{
      {.name = "post",
       .base = nft::BaseHook{
           .type = nft::ChainType::kNat, .hook = nft::Hook::kPostrouting, .priority = 100}}});
  Do(nft::AddRule{
      {.chain = "post",
       .expressions = {
           LoadMeta{MetaKey::kFamily, 3}, Compare{.from = 3, .value = {AF_INET}},
           nft::LoadImmediate{0, nft::NetworkOrder(kNodeV4)},
           nft::LoadImmediate{1, nft::NetworkOrder(uint16_t{40'000})},
           nft::LoadImmediate{2, nft::NetworkOrder(uint16_t{40'009})},
           nft::TranslateSource{.ports = std::pair<nft::Register, nft::Register>{1, 2}}}}});
  Rule({nft::LoadCt{nft::CtKey::kStatus, 0},
        nft::MaskBits{0, 0, nft::HostOrder(32), nft::HostOrder(0)},
        Compare{Comparison::kNotEqual, 0, nft::HostOrder(0)}, nft::CountHere{}},
       "destination translated");
  Commit();
  // The port is one that nobody listens on: the rule leads to the right one.
  client.Connect(kServiceV4, 9);
  EXPECT_EQ(client.Send("hello"), 0);
  far.EchoOnce();
  EXPECT_EQ(client.Receive(), "hello");
  EXPECT_EQ(PacketsOf("destination translated"), 2U);
}

TEST_F(NftTest, AFlowKeepsTheMarkThatItsHashGaveIt) {
  // New flows get one of four marks; all packets of a flow are counted by the flow's mark.
  Do(nft::AddSet{{.name = "marks",
                  .key = {nft::Field::kMark, nft::Field::kPort},
                  .dynamic = true,
                  .counts = true,
                  .size = 64}});
  Rule({nft::LoadCt{nft::CtKey::kState, 0}, Compare{.value = nft::HostOrder(nft::kCtNew)},
        SourceV4(4), SourcePort(5),
        nft::HashOf{.from = 4, .length = 8, .to = 8, .modulus = 4, .seed = 7, .offset = 0x100},
        nft::SetCtMark{8}});
  Rule({nft::LoadCt{nft::CtKey::kMark, 0}, nft::SetMeta{MetaKey::kMark, 0},
        LoadMeta{MetaKey::kMark, 4}, SourcePort(5), nft::PutInSet{.set = "marks", .from = 4}});
  Commit();
  UdpSocket server(second_->netns(), kSecondV4);
  std::vector<std::unique_ptr<UdpSocket>> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<UdpSocket>(first_->netns(), kFirstV4));
    EXPECT_TRUE(Arrives(*clients.back(), server, kSecondV4));
    EXPECT_TRUE(Arrives(*clients.back(), server, kSecondV4));
  }
  const std::vector<std::string> counted = Counted("marks");
  ASSERT_EQ(counted.size(), 16U);  // There is one mark for each flow.
  size_t of_first = 0;
  for (const std::string& line : counted) {
    EXPECT_THAT(line, testing::MatchesRegex("0[0-3]010000[0-9a-f]+ 2/66"));
    of_first += line.substr(0, 2) == counted.front().substr(0, 2) ? 1U : 0U;
  }
  EXPECT_LT(of_first, 16U);  // There is not one for all.
}

TEST_F(NftTest, WhatIsNotTrackedHasNoState) {
  Do(nft::AddChain{
      {.name = "raw", .base = nft::BaseHook{.hook = nft::Hook::kPrerouting, .priority = -300}}});
  Do(nft::AddRule{{.chain = "raw", .expressions = {nft::NoTrack{}}}});
  Rule({nft::LoadCt{nft::CtKey::kState, 0}, Compare{.value = nft::HostOrder(kUntracked)},
        nft::CountHere{}},
       "untracked");
  Commit();
  UdpSocket client(first_->netns(), kFirstV4);
  UdpSocket server(second_->netns(), kSecondV4);
  EXPECT_TRUE(Arrives(client, server, kSecondV4));
  EXPECT_EQ(PacketsOf("untracked"), 1U);
}

TEST_F(NftTest, ARateIsLimitedForEachPodByItself) {
  Do(nft::AddSet{{.name = "rates",
                  .key = {nft::Field::kIpv4},
                  .dynamic = true,
                  .size = 64,
                  .timeout = absl::Minutes(5)}});
  Rule({SourceV4(0),
        nft::PutInSet{.set = "rates",
                      .refresh = true,
                      .each = {nft::LimitRate{.per_second = 1, .burst = 3, .over = true}}},
        nft::CountHere{}, Verdict{VerdictKind::kDrop}},
       "too many");
  Commit();
  UdpSocket first(first_->netns(), kFirstV4);
  UdpSocket second(second_->netns(), kSecondV4);
  UdpSocket far(node_->fabric(), kFarV4);
  first.Connect(kFarV4, far.port());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(first.Send("hello"), 0);
  // The limit is three at once, and one for each second that this has taken.
  EXPECT_GT(PacketsOf("too many"), 20U);
  EXPECT_LT(PacketsOf("too many"), 38U);
  EXPECT_EQ(far.Receive(), "hello");
  // The other pod has its own.
  const uint64_t before = PacketsOf("too many");
  second.Connect(kFarV4, far.port());
  EXPECT_EQ(second.Send("other"), 0);
  EXPECT_EQ(PacketsOf("too many"), before);
}

TEST_F(NftTest, ConnectionsAreLimitedForEachPodByItself) {
  Do(nft::AddSet{{.name = "flows", .key = {nft::Field::kIpv4}, .dynamic = true, .size = 64}});
  Rule({nft::LoadCt{nft::CtKey::kState, 0}, Compare{.value = nft::HostOrder(nft::kCtNew)},
        SourceV4(4),
        nft::PutInSet{
            .set = "flows", .from = 4, .each = {nft::LimitConnections{.count = 2, .over = true}}},
        nft::CountHere{}, Verdict{VerdictKind::kDrop}},
       "too many");
  Commit();
  UdpSocket far(node_->fabric(), kFarV4);
  std::vector<std::unique_ptr<UdpSocket>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<UdpSocket>(first_->netns(), kFirstV4));
    clients.back()->Connect(kFarV4, far.port());
    EXPECT_EQ(clients.back()->Send("hello"), 0);
  }
  EXPECT_EQ(PacketsOf("too many"), 3U);
  UdpSocket other(second_->netns(), kSecondV4);
  other.Connect(kFarV4, far.port());
  EXPECT_EQ(other.Send("other"), 0);
  EXPECT_EQ(PacketsOf("too many"), 3U);
}

TEST_F(NftTest, ARefusalIsSaidToTheSender) {
  Rule({LoadMeta{MetaKey::kTransport, 0}, Compare{.value = {IPPROTO_TCP}},
        nft::Reject{.tcp_reset = true}});
  Rule({nft::Reject{}});
  Commit();
  UdpSocket client(first_->netns(), kFirstV4);
  client.Connect(kFarV4, 9);
  EXPECT_EQ(client.Send("hello"), 0);
  EXPECT_EQ(client.Receive(), "");
  EXPECT_EQ(errno, ECONNREFUSED);

  os::UniqueFd tcp;
  ASSERT_TRUE(first_->netns()
                  .Run([&] {
                    tcp = os::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
                    return absl::OkStatus();
                  })
                  .ok());
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  far.sin_addr.s_addr = htonl(0xCB007105);
  EXPECT_LT(::connect(tcp.get(), reinterpret_cast<const sockaddr*>(&far), sizeof(far)), 0);
  EXPECT_EQ(errno, ECONNREFUSED);
}

}  // namespace
}  // namespace spoke::netagent
