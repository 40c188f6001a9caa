#include "tests/netns/egress/egress_tunnel_world.h"

#include <sys/socket.h>

#include <cstdlib>
#include <utility>

#include "gtest/gtest.h"
#include "lib/ip/socket_address.h"
#include "lib/policy/testing/blocks.h"

namespace spoke::netagent {
namespace {

// Listens as an agent does at a gateway's health port.
os::UniqueFd Listen(const netns::Netns& netns) {
  os::UniqueFd fd;
  In(netns, [&] {
    fd = os::UniqueFd(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const ip::SocketAddress here = ip::ToSocketAddress(ip::Address::V6(0, 0), kGatewayHealthPort);
    ASSERT_EQ(::bind(fd.get(), here.get(), here.size), 0);
    ASSERT_EQ(::listen(fd.get(), 64), 0);
  });
  return fd;
}

}  // namespace

Policy ByGateways(policy::GatewayTransport transport, uint16_t port) {
  policy::EgressPolicy egress{.destination_cidrs = policy::Blocks({"0.0.0.0/0", "::/0"}),
                              .mode = policy::EgressMode::kGateway};
  egress.gateway = policy::EgressGateway{.addresses = {}, .health_port = kGatewayHealthPort};
  egress.gateway->transport = transport;
  egress.gateway->tunnel_port = transport == policy::GatewayTransport::kVxlan ? port : uint16_t{0};
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const auto& gateways = AddressesOf(family).gateways;
    egress.gateway->addresses.insert(egress.gateway->addresses.end(), gateways.begin(),
                                     gateways.end());
  }
  egress.fallback = policy::EgressMode::kDrop;
  Policy policy = NetworkPolicy();
  Put(policy, "EgressPolicy/p", egress);
  return policy;
}

void Nft(const netns::Netns& netns, const std::string& command) {
  In(netns, [&] {
    // These are a test's own words, no input of anybody's.
    EXPECT_EQ(std::system(("nft '" + command + "'").c_str()), 0)  // NOLINT(cert-env33-c)
        << command;
  });
}

std::unique_ptr<EgressTunnelWorld> EgressTunnelWorld::Make(const os::Clock& clock) {
  auto world = EgressWorld::Make(EgressNetwork::kRouted);
  if (world == nullptr) return nullptr;
  return std::unique_ptr<EgressTunnelWorld>(new EgressTunnelWorld(std::move(world), clock));
}

EgressTunnelWorld::EgressTunnelWorld(std::unique_ptr<EgressWorld> world, const os::Clock& clock)
    : world_(std::move(world)), routes_(NetlinkGatewayRoutes::Create(EgressWorld::kNic).value()) {
  gateways_.emplace(Gateways::Edges{*routes_, probe_, clock, log_});
  for (size_t i = 0; i < 2; ++i) {
    GatewayNode& node = nodes_.emplace_back();
    In(world_->gateway(i), [&] {
      node.routes = NetlinkGatewayRoutes::Create(EgressWorld::kNic).value();
      const absl::Status status = node.routes->PutTunnel(kTunnelPort);
      ASSERT_TRUE(status.ok()) << status;
    });
    node.health = Listen(world_->gateway(i));
    PutGatewayRules(i);
  }
}

void EgressTunnelWorld::PutGatewayRules(size_t i) {
  EgressSettings settings{.is_gateway = true};
  settings.own = {AddressesOf(ip::Family::kV4).gateways[i],
                  AddressesOf(ip::Family::kV6).gateways[i]};
  const Policy policy = ByGateways(policy::GatewayTransport::kVxlan);
  const ClassMap classes = ClassMap::Compile(policy, {}).value();
  Apply(world_->gateway_tables(i), EgressRules::Compile(policy, classes, {}, settings).value(),
        false);
}

void EgressTunnelWorld::Apply(nft::Connection& tables, const EgressRules& rules, bool pods) {
  nft::Transaction transaction;
  transaction.Add(kSpokeTable, nft::AddTable{});
  const auto seen = tables.ReadRules(kSpokeTable);
  rules.AppendTables(seen.value_or(std::vector<nft::RuleReading>()), transaction);
  if (pods) rules.AppendPod(pod_, transaction);
  const absl::Status status = tables.Apply(transaction);
  ASSERT_TRUE(status.ok()) << status;
}

void EgressTunnelWorld::Set(const Policy& policy) {
  policy_ = policy;
  const ClassMap classes = ClassMap::Compile(policy, {}).value();
  const auto rules = EgressRules::Compile(policy, classes, gateways_->healthy(), settings_);
  ASSERT_TRUE(rules.ok()) << rules.status();
  const absl::Status status = gateways_->Prepare(rules->GatewayMarks(), rules->TunnelPort());
  ASSERT_TRUE(status.ok()) << status;
  Apply(world_->tables(), *rules, true);
  settings_.known_marks = rules->GatewayMarks();
  settings_.known_tunnel_port = rules->TunnelPort();
  settings_.tracked = rules->NeedsTracking();
  gateways_->SetTargets(rules->Gateways());
}

// New gateways count until they have been asked, which the rules learn.
void EgressTunnelWorld::SetTunnel() {
  Set(ByGateways(policy::GatewayTransport::kVxlan));
  SetAgain();
}

void EgressTunnelWorld::TakeConnections() {
  for (const GatewayNode& node : nodes_) {
    while (os::UniqueFd(::accept4(node.health.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid()) {
    }
  }
}

std::set<std::string> EgressTunnelWorld::Healthy(ip::Family family) const {
  std::set<std::string> all;
  for (const GatewayEndpoint& gateway : gateways_->healthy()) {
    if (gateway.address.family() == family) all.insert(gateway.address.ToString());
  }
  return all;
}

}  // namespace spoke::netagent
