// Tests of links against the real kernel: their contract, and what of a link's repair only a kernel
// can show.
#include "netagent/links/testing/links_contract.h"

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/links/kernel_links.h"
#include "netagent/links/link_requests.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

netlink::Request DeleteAddress(int32_t link, const ip::Address& address) {
  ifaddrmsg fixed{};
  fixed.ifa_family = netlink::FamilyNumber(address.family());
  fixed.ifa_prefixlen = static_cast<uint8_t>(address.bits());
  fixed.ifa_index = static_cast<uint32_t>(link);
  netlink::Request request("delete address", RTM_DELADDR, 0, fixed);
  request.PutAddress(IFA_LOCAL, address);
  return request;
}

ip::Address GatewayFor(const ip::Address& address) {
  return address.is_v4() ? claims::kGatewayV4 : claims::kGatewayV6;
}

netlink::Socket OpenSocketIn(int netns) {
  std::optional<netlink::Socket> socket;
  const auto pod = netns::Netns::FromDescriptor(netns).value();
  EXPECT_TRUE(pod.Run([&] {
                   socket = netlink::Socket::Open().value();
                   return absl::OkStatus();
                 })
                  .ok());
  return *std::move(socket);
}

// Returns what a namespace holds, once the kernel has done what it does in its own time.
std::vector<std::string> SettledSnapshot(netlink::Socket& socket) {
  const auto addresses = netlink::DumpAddresses(socket, ip::Family::kV6, 0).value();
  for (const netlink::LinkAddress& address : addresses) {
    if (address.scope == RT_SCOPE_UNIVERSE) AwaitLocal(socket, address.address);
  }
  return Snapshot(socket);
}

class KernelWorld final : public LinksWorld {
 public:
  static std::unique_ptr<LinksWorld> Make() {
    auto node = NodeWorld::Make();
    if (node == nullptr) return nullptr;
    return std::unique_ptr<LinksWorld>(new KernelWorld(std::move(node)));
  }

  Links& links() override { return *links_; }
  NodeWorld& node() { return *node_; }

  os::UniqueFd NewPodNetns() override {
    os::UniqueFd netns = testing_support::NewNetns();
    netlink::Socket socket = OpenSocketIn(netns.get());
    MustSend(socket, {netlink::SetLinkUp(1, true)});
    return netns;
  }
  void Remove(const AttachSpec& spec) override {
    MustSend(node_->socket(), {netlink::DeleteLink(spec.host_link)});
  }
  void Break(const AttachSpec& spec, int pod_netns, Part part, const ip::Address& address) override;
  void AddForeignRoute(const AttachSpec& spec, const ip::Address& address) override {
    const auto host = netlink::GetLink(node_->socket(), spec.host_link).value();
    MustSend(node_->socket(), {netlink::AddRoute({.destination = ip::Prefix::Host(address),
                                                  .protocol = RTPROT_STATIC,
                                                  .scope = RT_SCOPE_LINK,
                                                  .link = host.index})});
  }
  std::vector<std::string> Snapshot(int pod_netns) override {
    std::vector<std::string> lines = SettledSnapshot(node_->socket());
    netlink::Socket socket = OpenSocketIn(pod_netns);
    for (std::string& line : SettledSnapshot(socket)) lines.push_back("pod: " + std::move(line));
    return lines;
  }

  absl::Status FinishDetaching() override { return links_->FinishDetaching(); }
  os::UniqueFd NodeNetns() override { return testing_support::OpenCurrentNetns(); }
  void AddPodLink(int pod_netns, const std::string& name) override {
    // A veth that has both ends in the pod.
    const auto pod = netns::Netns::FromDescriptor(pod_netns).value();
    const absl::Status status = pod.Run([&] {
      auto socket = netlink::Socket::Open().value();
      MustSend(socket, {netlink::CreateVeth({name, 50, {{2, 0, 0, 0, 1, 1}}},
                                            {"other", 51, {{2, 0, 0, 0, 1, 2}}}, pod.fd(), 1500)});
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  Nic ExistingNic() override { return node_->nic(); }
  std::vector<ip::Address> Unreachable() override {
    std::vector<ip::Address> addresses;
    for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
      const auto routes = netlink::DumpAllRoutes(node_->socket(), family).value();
      for (const netlink::Route& route : routes) {
        if (route.type != RTN_UNREACHABLE || route.protocol != claims::kRouteProtocol) continue;
        EXPECT_EQ(route.metric, claims::kUnreachableMetric);
        EXPECT_EQ(route.table, uint32_t{RT_TABLE_MAIN});
        EXPECT_EQ(route.destination.length(), route.destination.base().bits());
        addresses.push_back(route.destination.base());
      }
    }
    std::sort(addresses.begin(), addresses.end());
    return addresses;
  }

  std::map<ip::Address, uint32_t> SourceTables() override {
    std::map<ip::Address, uint32_t> tables;
    for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
      const auto rules =
          netlink::DumpRules(node_->socket(), family, claims::kRouteProtocol).value();
      for (const netlink::Rule& rule : rules) {
        if (rule.priority != claims::kSourcePriority) continue;
        EXPECT_EQ(rule.from->length(), rule.from->base().bits());
        EXPECT_TRUE(tables.emplace(rule.from->base(), rule.table).second);
      }
    }
    return tables;
  }

 private:
  explicit KernelWorld(std::unique_ptr<NodeWorld> node)
      : node_(std::move(node)), links_(KernelLinks::Create().value()) {}

  const std::unique_ptr<NodeWorld> node_;
  const std::unique_ptr<KernelLinks> links_;
};

void KernelWorld::Break(const AttachSpec& spec, int pod_netns, Part part,
                        const ip::Address& address) {
  netlink::Socket& node = node_->socket();
  netlink::Socket pod = OpenSocketIn(pod_netns);
  const int32_t host = netlink::GetLink(node, spec.host_link).value().index;
  const int32_t eth0 = netlink::GetLink(pod, spec.pod_link).value().index;
  switch (part) {
    case Part::kHostUp:
      return MustSend(node, {netlink::SetLinkUp(host, false)});
    case Part::kHostMac:
      return MustSend(node, {netlink::SetLinkMac(host, {{2, 0, 0, 0, 7, 7}})});
    case Part::kHostMtu:
      return MustSend(node, {netlink::SetLinkMtu(host, 1400)});
    case Part::kHostSetting:
      return MustSend(node, {netlink::ConfigureLink(
                                host, {.ipv4 = {{8, 0}}, .address_generation = std::nullopt})});
    case Part::kHostRouters:
      // A thread sees the settings of the namespace it is in, which is the node's.
      for (const char* const setting : {"accept_ra", "disable_ipv6"}) {
        EXPECT_TRUE(std::ofstream("/proc/sys/net/ipv6/conf/" + spec.host_link + "/" + setting)
                    << (setting == std::string_view("accept_ra") ? "2" : "0") << std::flush);
      }
      return;
    case Part::kHostNeighbour:
      return MustSend(node, {netlink::DeleteNeighbour(host, address)});
    case Part::kHostRoute:
      return MustSend(node, {netlink::DeleteRoute({.destination = ip::Prefix::Host(address),
                                                   .protocol = claims::kRouteProtocol,
                                                   .link = host})});
    case Part::kPodUp:
      return MustSend(pod, {netlink::SetLinkUp(eth0, false)});
    case Part::kPodAddress:
      return MustSend(pod, {DeleteAddress(eth0, address)});
    case Part::kPodNeighbour:
      return MustSend(pod, {netlink::DeleteNeighbour(eth0, GatewayFor(address))});
    case Part::kPodRoute:
      return MustSend(pod,
                      {netlink::DeleteRoute({.destination = ip::Prefix::Of(address, 0).value(),
                                             .protocol = claims::kRouteProtocol,
                                             .link = eth0}),
                       netlink::DeleteRoute({.destination = ip::Prefix::Host(GatewayFor(address)),
                                             .protocol = claims::kRouteProtocol,
                                             .link = eth0})});
    default:
      ADD_FAILURE() << "no way to break " << NameOf(part);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, LinksContract,
                         testing::Values(LinksWorldFactory{"Netlink", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

class LinkRepairTest : public testing::Test {
 protected:
  void SetUp() override {
    auto world = KernelWorld::Make();
    if (world == nullptr) {
      // A skip must not pass for a success.
      ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
      GTEST_SKIP() << "cannot make network namespaces";
    }
    world_.reset(static_cast<KernelWorld*>(world.release()));
  }

  Links& links() { return world_->links(); }
  netlink::Socket& node() { return world_->node().socket(); }
  LinkOperations Look(const AttachSpec& spec, int pod) {
    return PlanLink(spec, {(*links().Read())[spec.host_link], links().ReadPod(spec, pod).value()});
  }
  // Mends what is found and expects that nothing is left to be found.
  void MendAll(const AttachSpec& spec, int pod) {
    const absl::Status mended = links().Apply(spec, Look(spec, pod), pod);
    EXPECT_TRUE(mended.ok()) << mended;
    for (const LinkOperation& left : Look(spec, pod)) ADD_FAILURE() << left.found;
  }
  void ExpectTraffic(const AttachSpec& spec, int pod) {
    const auto netns = netns::Netns::FromDescriptor(pod).value();
    for (const ip::Address& address : spec.addresses) {
      const ip::Address there = address.is_v4() ? kNodeV4 : kNodeV6;
      netlink::Socket socket = OpenSocketIn(pod);
      AwaitLocal(socket, address);
      UdpSocket client(netns, address);
      UdpSocket server(world_->node().node(), there);
      EXPECT_TRUE(CanTalk(client, server, there, 1)) << address.ToString();
    }
  }

  const AttachSpec spec_ =
      PlanAttach({"pod", "eth0"},
                 {ip::Address::V4(0x0A000107), ip::Address::V6(0xFD00'0000'0000'0001, 7)}, 1500)
          .value();
  std::unique_ptr<KernelWorld> world_;
};

TEST_F(LinkRepairTest, TrafficFlowsAgainWhenALinkThatWentDownIsMended) {
  const os::UniqueFd pod = world_->NewPodNetns();
  ASSERT_TRUE(Attach(links(), spec_, pod.get()).ok());
  ExpectTraffic(spec_, pod.get());
  for (const Part part : {Part::kHostUp, Part::kPodUp, Part::kHostMac}) {
    SCOPED_TRACE(NameOf(part));
    world_->Break(spec_, pod.get(), part, spec_.addresses[0]);
    MendAll(spec_, pod.get());
    ExpectTraffic(spec_, pod.get());
  }
}

TEST_F(LinkRepairTest, AMacThatALaterPluginGivesThePodIsFollowed) {
  const os::UniqueFd pod = world_->NewPodNetns();
  ASSERT_TRUE(Attach(links(), spec_, pod.get()).ok());
  netlink::Socket socket = OpenSocketIn(pod.get());
  const ip::MacAddress tuned{{0x0E, 9, 9, 9, 9, 9}};
  MustSend(socket, {netlink::SetLinkMac(netlink::GetLink(socket, "eth0")->index, tuned)});
  // The node's entries name the old one, and the kernel has dropped the gateway's.
  const LinkOperations found = Look(spec_, pod.get());
  EXPECT_EQ(found.size(), 4U);
  MendAll(spec_, pod.get());
  EXPECT_EQ(netlink::GetLink(socket, "eth0")->mac, tuned);
  ExpectTraffic(spec_, pod.get());
}

TEST_F(LinkRepairTest, WhatIsSomebodyElsesIsNeitherSeenNorTouched) {
  const os::UniqueFd pod = world_->NewPodNetns();
  ASSERT_TRUE(Attach(links(), spec_, pod.get()).ok());
  const int32_t host = netlink::GetLink(node(), spec_.host_link)->index;
  const ip::Address other = ip::Address::V4(0x0A0001C8);
  MustSend(node(), {netlink::CreateVeth({"spkx", 900, {{2, 0, 0, 0, 3, 1}}},
                                        {"spk0", 901, {{2, 0, 0, 0, 3, 2}}},
                                        world_->node().node().fd(), 1500),
                    netlink::AddRoute({.destination = ip::Prefix::Host(other),
                                       .protocol = RTPROT_STATIC,
                                       .scope = RT_SCOPE_LINK,
                                       .link = host}),
                    netlink::AddRoute({.destination = ip::Prefix::Host(spec_.addresses[0]),
                                       .table = 77,
                                       .protocol = claims::kRouteProtocol,
                                       .scope = RT_SCOPE_LINK,
                                       .link = host}),
                    netlink::SetPermanentNeighbour(host, other, {{2, 0, 0, 0, 3, 3}})});
  EXPECT_EQ(links().Read()->size(), 1U);
  EXPECT_TRUE(Look(spec_, pod.get()).empty());
  const std::vector<std::string> before = world_->Snapshot(pod.get());
  for (const Part part : {Part::kHostRoute, Part::kHostNeighbour, Part::kHostSetting,
                          Part::kHostMtu, Part::kPodRoute, Part::kPodNeighbour}) {
    SCOPED_TRACE(NameOf(part));
    world_->Break(spec_, pod.get(), part, spec_.addresses[0]);
    EXPECT_NE(Look(spec_, pod.get()).size(), 0U);
    MendAll(spec_, pod.get());
    EXPECT_EQ(world_->Snapshot(pod.get()), before);
  }
}

TEST_F(LinkRepairTest, RulesTablesAndLimitsAreMended) {
  AttachSpec spec = spec_;
  spec.ordinal = 1;
  spec.bandwidth = {.ingress_rate = units::BitRate(80'000'000),
                    .egress_rate = units::BitRate(40'000'000)};
  spec.source_tables = {{spec.addresses[0], claims::kFirstNicTable + 7}};
  const os::UniqueFd pod = world_->NewPodNetns();
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  for (const LinkOperation& found : Look(spec, pod.get())) ADD_FAILURE() << found.found;
  const std::vector<std::string> before = world_->Snapshot(pod.get());
  netlink::Socket socket = OpenSocketIn(pod.get());
  const int32_t host = netlink::GetLink(node(), spec.host_link)->index;
  const int32_t eth0 = netlink::GetLink(socket, "eth0")->index;
  const auto delete_root = [](int32_t link) {
    tcmsg fixed{};
    fixed.tcm_ifindex = link;
    fixed.tcm_parent = TC_H_ROOT;
    return netlink::Request("delete root qdisc", RTM_DELQDISC, 0, fixed);
  };
  MustSend(node(), {netlink::DeleteRule(SourceRule(spec.source_tables[0])), delete_root(host)});
  MustSend(node(),
           {netlink::AddTokenBucket(host, claims::kShaperHandle,
                                    {.rate = 1'000'000, .burst = 20'000, .limit = 20'000})});
  MustSend(socket,
           {netlink::DeleteRule(PodRule(spec, spec.addresses[0])),
            netlink::DeleteRoute(RouteOf(spec, eth0, PodRoutesOf(spec, spec.addresses[1])[1]))});
  std::set<Part> parts;
  for (const LinkOperation& found : Look(spec, pod.get())) parts.insert(found.part);
  EXPECT_EQ(parts, (std::set<Part>{Part::kHostRule, Part::kIngressLimit, Part::kPodRule,
                                   Part::kPodRoute}));
  MendAll(spec, pod.get());
  EXPECT_EQ(world_->Snapshot(pod.get()), before);
}

TEST_F(LinkRepairTest, LooksThroughAStormOfLinksThatComeAndGo) {
  const os::UniqueFd pod = world_->NewPodNetns();
  ASSERT_TRUE(Attach(links(), spec_, pod.get()).ok());
  std::atomic<bool> stop = false;
  std::atomic<int> made = 0;
  // Begins in this thread's namespace.
  std::thread storm([&] {
    netlink::Socket socket = netlink::Socket::Open().value();
    const auto here = netns::Netns::Current().value();
    while (!stop) {
      MustSend(socket, {netlink::CreateVeth({"storm", 900, {{2, 0, 0, 0, 3, 1}}},
                                            {"stormp", 901, {{2, 0, 0, 0, 3, 2}}}, here.fd(), 1500),
                        netlink::DeleteLink("storm")});
      ++made;
    }
  });
  int looks = 0;
  while (made < 20 || looks < 200) {
    const auto hosts = links().Read();
    EXPECT_TRUE(hosts.ok()) << hosts.status();
    if (!hosts.ok()) break;
    EXPECT_EQ(hosts->size(), 1U);
    EXPECT_TRUE(Look(spec_, pod.get()).empty());
    ++looks;
  }
  stop = true;
  storm.join();
}

TEST_F(LinkRepairTest, ManyAttachmentsTakeAsManyQuestionsAsOne) {
  constexpr uint64_t kPods = 150;
  std::vector<os::UniqueFd> pods;
  std::vector<AttachSpec> specs;
  for (uint64_t i = 0; i < kPods; ++i) {
    pods.push_back(world_->NewPodNetns());
    specs.push_back(
        PlanAttach({"pod" + std::to_string(i), "eth0"},
                   {ip::Advance(spec_.addresses[0], i), ip::Advance(spec_.addresses[1], i)}, 1500)
            .value());
    ASSERT_TRUE(Attach(links(), specs.back(), pods.back().get()).ok());
  }
  const absl::Time start = absl::Now();
  auto hosts = links().Read();
  const absl::Duration took = absl::Now() - start;
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(hosts->size(), kPods);
  for (const AttachSpec& spec : specs) {
    for (const LinkOperation& found : PlanLink(spec, {.host = (*hosts)[spec.host_link]})) {
      ADD_FAILURE() << found.found;
    }
  }
  const absl::Time pod_start = absl::Now();
  EXPECT_TRUE(links().ReadPod(specs[0], pods[0].get()).ok());
  RecordProperty("read_150_host_sides_us", std::to_string(absl::ToInt64Microseconds(took)));
  RecordProperty("read_a_pod_side_us",
                 std::to_string(absl::ToInt64Microseconds(absl::Now() - pod_start)));
}

}  // namespace
}  // namespace spoke::netagent
