// lib/netlink against the kernel: what unit tests with recorded messages cannot show.
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "fmt/core.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netlink {
namespace {

constexpr ip::Address kV4 = ip::Address::V4(0x0A000107);
constexpr ip::Address kV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);
constexpr ip::MacAddress kMac{{2, 0, 0, 0, 0, 9}};

class NetlinkTest : public testing_support::NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    socket_ = Socket::Open().value();
    here_ = testing_support::OpenCurrentNetns();
  }

  absl::Status Send(const std::vector<Request>& batch) { return SendBatch(*socket_, batch).status; }

  // Makes a pair with both ends in this namespace: `name` with `index` and up, and "<name>p" behind
  // it.
  Request Pair(const std::string& name, int32_t index) {
    return CreateVeth({name, index, {{2, 0, 0, 0, 0, 1}}},
                      {name + "p", index + 1, {{2, 0, 0, 0, 0, 2}}}, here_.get(), 1400);
  }

  std::optional<Socket> socket_;
  os::UniqueFd here_;
};

TEST_F(NetlinkTest, MakesAVethAsAsked) {
  ASSERT_TRUE(Send({Pair("a", 1000)}).ok());
  const auto outer = GetLink(*socket_, "a");
  ASSERT_TRUE(outer.ok()) << outer.status();
  EXPECT_EQ(*outer, (Link{.index = 1000,
                          .name = "a",
                          .kind = "veth",
                          .mac = {{2, 0, 0, 0, 0, 1}},
                          .mtu = 1400,
                          .up = true,
                          .tx_queues = 1,
                          .rx_queues = 1,
                          .peer_index = 1001}));
  const auto peer = GetLink(*socket_, "ap");
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->index, 1001);
  EXPECT_FALSE(peer->up);
  EXPECT_EQ(peer->rx_queues, 1U);
}

TEST_F(NetlinkTest, ARefusalNamesTheRequestAndHasTheKernelsWords) {
  Route lost{.destination = ip::Prefix::Host(kV4), .link = 1000, .gateway = kV4};
  const std::vector<Request> batch = {Pair("a", 1000), AddRoute(lost), SetLinkUp(1001, true)};
  const BatchResult result = SendBatch(*socket_, batch);
  EXPECT_EQ(result.refused, 1U);
  const std::string message(result.status.message());
  EXPECT_EQ(message.rfind("add route 10.0.1.7/32 (request 2 of 3) (kernel: ", 0), 0U) << message;
  // This is no transaction: the last request was done all the same.
  EXPECT_TRUE(GetLink(*socket_, "ap")->up);
}

TEST_F(NetlinkTest, AnExistingNameOrIndexIsAlreadyExists) {
  ASSERT_TRUE(Send({Pair("a", 1000)}).ok());
  for (const Request& request : {Pair("a", 2000), Pair("b", 1000)}) {
    const BatchResult result = SendBatch(*socket_, {&request, 1});
    EXPECT_TRUE(absl::IsAlreadyExists(result.status)) << result.status;
    EXPECT_EQ(result.refused, 0U);
  }
}

TEST_F(NetlinkTest, DeletingALinkTwiceIsDone) {
  ASSERT_TRUE(Send({Pair("a", 1000)}).ok());
  EXPECT_TRUE(Send({DeleteLink("ap")}).ok());
  EXPECT_TRUE(absl::IsNotFound(GetLink(*socket_, "a").status()));
  EXPECT_TRUE(Send({DeleteLink("a")}).ok());
  EXPECT_TRUE(Send({DeleteLink(1000)}).ok());
}

TEST_F(NetlinkTest, ListsLinksByPrefix) {
  ASSERT_TRUE(Send({Pair("spk1", 1000), Pair("spk2", 2000), Pair("xspk", 3000)}).ok());
  const auto ours = DumpLinks(*socket_, "spk");
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_EQ(ours->size(), 4U);
  EXPECT_EQ(DumpLinks(*socket_, "")->size(), 7U);  // The seventh is lo.
  EXPECT_TRUE(DumpLinks(*socket_, "none")->empty());
}

TEST_F(NetlinkTest, AddressesAreUsableAtOnceAndReadBack) {
  ASSERT_TRUE(
      Send({Pair("a", 1000), SetLinkUp(1001, true), AddAddress(1000, kV4), AddAddress(1000, kV6)})
          .ok());
  EXPECT_EQ(DumpAddresses(*socket_, ip::Family::kV4, 1000).value(),
            (std::vector<LinkAddress>{{1000, kV4, 32, RT_SCOPE_UNIVERSE, IFA_F_PERMANENT}}));
  const auto v6 = DumpAddresses(*socket_, ip::Family::kV6, 1000).value();
  const LinkAddress wanted{1000, kV6, 128, RT_SCOPE_UNIVERSE, IFA_F_PERMANENT | IFA_F_NODAD};
  EXPECT_EQ(std::count(v6.begin(), v6.end(), wanted), 1);
  EXPECT_TRUE(DumpAddresses(*socket_, ip::Family::kV4, 1001)->empty());
  EXPECT_TRUE(absl::IsAlreadyExists(Send({AddAddress(1000, kV4)})));
}

TEST_F(NetlinkTest, RoutesAreReplacedInPlaceAndDeletedOnce) {
  ASSERT_TRUE(
      Send({Pair("a", 1000), SetLinkUp(1001, true), Pair("b", 2000), SetLinkUp(2001, true)}).ok());
  for (const ip::Address& address : {kV4, kV6}) {
    Route route{.destination = ip::Prefix::Host(address),
                .protocol = 83,
                .scope = RT_SCOPE_LINK,
                .link = 1000};
    ASSERT_TRUE(Send({AddRoute(route)}).ok());
    EXPECT_TRUE(absl::IsAlreadyExists(Send({AddRoute(route)})));
    route.link = 2000;
    EXPECT_TRUE(Send({ReplaceRoute(route)}).ok());
    const auto listed = DumpRoutes(*socket_, address.family(), RT_TABLE_MAIN, 83).value();
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed[0].link, 2000);
    EXPECT_EQ(listed[0].destination, route.destination);
    // There is none of another protocol.
    EXPECT_TRUE(DumpRoutes(*socket_, address.family(), RT_TABLE_MAIN, 84)->empty());
    EXPECT_TRUE(Send({DeleteRoute(route)}).ok());
    EXPECT_TRUE(Send({DeleteRoute(route)}).ok());
    EXPECT_TRUE(DumpRoutes(*socket_, address.family(), RT_TABLE_MAIN, 83)->empty());
  }
}

TEST_F(NetlinkTest, ATableWithoutRoutesIsEmptyAndOneAbove255Works) {
  ASSERT_TRUE(Send({Pair("a", 1000), SetLinkUp(1001, true)}).ok());
  for (const ip::Address& address : {kV4, kV6}) {
    EXPECT_TRUE(DumpRoutes(*socket_, address.family(), 7000, 83).value().empty());
    const Route route{.destination = ip::Prefix::Host(address),
                      .table = 7000,
                      .protocol = 83,
                      .scope = RT_SCOPE_LINK,
                      .link = 1000};
    ASSERT_TRUE(Send({AddRoute(route)}).ok());
    EXPECT_EQ(DumpRoutes(*socket_, address.family(), 7000, 83)->size(), 1U);
    EXPECT_TRUE(DumpRoutes(*socket_, address.family(), RT_TABLE_MAIN, 83)->empty());
  }
}

TEST_F(NetlinkTest, PermanentNeighboursReplaceEachOther) {
  ASSERT_TRUE(Send({Pair("a", 1000), SetLinkUp(1001, true)}).ok());
  for (const ip::Address& address : {kV4, kV6}) {
    ASSERT_TRUE(Send({SetPermanentNeighbour(1000, address, {{2, 0, 0, 0, 0, 8}}),
                      SetPermanentNeighbour(1000, address, kMac)})
                    .ok());
    const auto listed = DumpNeighbours(*socket_, address.family(), 1000).value();
    const Neighbour wanted{1000, address, kMac, NUD_PERMANENT};
    EXPECT_EQ(std::count(listed.begin(), listed.end(), wanted), 1);
    EXPECT_TRUE(Send({DeleteNeighbour(1000, address)}).ok());
    EXPECT_TRUE(Send({DeleteNeighbour(1000, address)}).ok());
  }
}

TEST_F(NetlinkTest, ConfigureLinkSetsBothFamiliesBeforeTheLinkIsUp) {
  ASSERT_TRUE(Send({Pair("a", 1000),
                    ConfigureLink(
                        1001, {.ipv4 = {}, .address_generation = uint8_t{IN6_ADDR_GEN_MODE_NONE}}),
                    SetLinkUp(1001, true)})
                  .ok());
  EXPECT_TRUE(DumpAddresses(*socket_, ip::Family::kV6, 1001)->empty());
}

TEST_F(NetlinkTest, DumpsAreWholeWhileLinksComeAndGo) {
  // There are enough links that one dump takes several datagrams, between which it can be
  // interrupted.
  constexpr size_t kPairs = 60;
  std::vector<Request> pairs;
  for (size_t i = 0; i < kPairs; ++i) {
    pairs.push_back(Pair(fmt::format("fix{}", i), static_cast<int32_t>(1000 + 2 * i)));
  }
  ASSERT_TRUE(Send(pairs).ok());

  std::atomic<bool> stop = false;
  std::thread churn([&stop, this] {  // The thread starts in the namespace of its creator.
    Socket own = Socket::Open().value();
    for (int32_t i = 0; !stop; ++i) {
      const std::string name = fmt::format("churn{}", i % 50);
      const std::vector<Request> batch = {Pair(name, 10'000 + 2 * (i % 50)), DeleteLink(name)};
      EXPECT_TRUE(SendBatch(own, batch).status.ok());
    }
  });
  int whole = 0;
  for (int i = 0; i < 150; ++i) {
    const auto links = DumpLinks(*socket_, "fix");
    if (absl::IsUnavailable(links.status())) continue;  // The dump said so, and gave nothing.
    ASSERT_TRUE(links.ok()) << links.status();
    EXPECT_EQ(links->size(), 2 * kPairs);
    ++whole;
  }
  stop = true;
  churn.join();
  EXPECT_GT(whole, 100);
}

}  // namespace
}  // namespace spoke::netlink
