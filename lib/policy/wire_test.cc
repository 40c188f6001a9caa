#include "lib/policy/wire.h"

#include <functional>
#include <utility>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::policy {
namespace {

using testing::HasSubstr;

absl::StatusOr<Entry> Read(const std::string& bytes) {
  v1::PolicyEntry entry;
  EXPECT_TRUE(entry.ParseFromString(bytes));
  return FromWire(entry);
}

EgressPolicy ByGateway() {
  return {.namespaces = {"web"},
          .teams = {"ml"},
          .destination_cidrs = Blocks({"203.0.113.0/24", "2001:db8::/32"}),
          .destination_groups = {"mirror"},
          .excluded_cidrs = Blocks({"203.0.113.7/32"}),
          .platform = true,
          .mode = EgressMode::kGateway,
          .gateway = EgressGateway{.addresses = Addresses({"10.1.0.100", "fd00::100"}),
                                   .health_port = 9467,
                                   .draining = Addresses({"10.1.0.100"}),
                                   .transport = GatewayTransport::kVxlan,
                                   .tunnel_port = 4790},
          .fallback = EgressMode::kDrop,
          .limits = {.connections = 4,
                     .new_connections_per_second = 3,
                     .connections_per_destination = 2,
                     .new_connections_per_second_per_destination = 1},
          .priority = -7,
          .established = Established::kKeep};
}

// Returns one value of each kind, each of its fields with something of its own.
std::vector<std::pair<std::string, Value>> All() {
  return {{"F/a", UnknownKind()},
          {"ClusterNetwork/main",
           ClusterNetwork{.cluster = Blocks({"10.0.0.0/8"}),
                          .hub = Blocks({"11.0.0.0/8"}),
                          .peer_spoke = Blocks({"12.0.0.0/8"}),
                          .platform = Blocks({"13.0.0.0/8"}),
                          .storage = Blocks({"fd00::/64"}),
                          .services = Blocks({"10.96.0.0/16"}),
                          .established = Established::kCut,
                          .hub_probes = Endpoints({"11.0.0.1:443"}),
                          .peer_spoke_probes = Endpoints({"12.0.0.1:22", "[fd12::1]:1"})}},
          {"Team/ml", Team{.namespaces = {"train", "data"}}},
          {"DestinationGroup/mirror",
           DestinationGroup{.cidrs = Blocks({"151.101.0.0/16"}), .names = {"*.example.org"}}},
          {"EgressPolicy/out", ByGateway()},
          {"BandwidthLimit/all", BandwidthLimit{.namespaces = {"web"},
                                                .teams = {"ml"},
                                                .destination_group = "mirror",
                                                .pod_ingress = units::BitRate(1),
                                                .pod_egress = units::BitRate(2),
                                                .node_ingress = units::BitRate(3),
                                                .node_egress = units::BitRate(UINT64_MAX),
                                                .shadow = true}},
          {"BandwidthBudget/internet", BandwidthBudget{.destination_group = "mirror",
                                                       .egress = true,
                                                       .teams = {"ml"},
                                                       .floor = units::BitRate(1000),
                                                       .refresh = absl::Seconds(5),
                                                       .hold = absl::Seconds(300),
                                                       .half_life = absl::Milliseconds(1500),
                                                       .shadow = true}}};
}

TEST(PolicyWire, EachKindComesBackAsItWas) {
  for (const auto& [key, value] : All()) {
    const std::string bytes = ToWire(key, value);
    const auto entry = Read(bytes);
    ASSERT_TRUE(entry.ok()) << entry.status();
    EXPECT_EQ(*entry, (Entry{.key = key, .bytes = bytes, .value = value}));
  }
  EXPECT_EQ(All().size(), std::variant_size_v<Value>);
}

TEST(PolicyWire, EveryModeComesBackAsItWas) {
  for (const EgressMode mode : {EgressMode::kMasquerade, EgressMode::kRouted, EgressMode::kDrop}) {
    const Value value = EgressPolicy{.mode = mode};
    EXPECT_EQ(Read(ToWire("EgressPolicy/x", value))->value, value);
  }
}

TEST(PolicyWire, WhatIsNotKnownHereStaysInTheBytes) {
  // Field 9, which this version does not have: tag 0x4a, three bytes.
  const std::string kind = "\x0a\x03\x46/a\x4a\x03xyz";
  const auto future = Read(kind);
  ASSERT_TRUE(future.ok()) << future.status();
  EXPECT_EQ(*future, (Entry{.key = "F/a", .bytes = kind, .value = UnknownKind()}));
  // The same field in a team.
  std::string team = ToWire("Team/a", Team{.namespaces = {"web"}});
  team += "\x4a\x03xyz";
  EXPECT_EQ(*Read(team), (Entry{.key = "Team/a", .bytes = team, .value = Team{{"web"}}}));
}

TEST(PolicyWire, WhatBecomesOfConnectionsIsTheKindsUnlessItIsSaid) {
  const auto read = [](v1::Established established) {
    v1::PolicyEntry entry;
    entry.set_key("EgressPolicy/x");
    entry.mutable_egress()->set_mode(v1::EgressPolicy::DROP);
    entry.mutable_egress()->set_established(established);
    return std::get<EgressPolicy>(FromWire(entry).value().value).established;
  };
  EXPECT_EQ(read(v1::ESTABLISHED_UNSPECIFIED), Established::kUnspecified);
  EXPECT_EQ(read(v1::CUT), Established::kCut);
  EXPECT_EQ(read(v1::KEEP), Established::kKeep);
  EXPECT_EQ(read(static_cast<v1::Established>(77)), Established::kUnspecified)
      << "a newer server's";
}

TEST(PolicyWire, MistakesAreNamed) {
  struct Case {
    std::string key;
    std::function<void(v1::PolicyEntry&)> write;
    std::string want;
  };
  const auto network = [](std::string block) {
    return [block](v1::PolicyEntry& e) { e.mutable_cluster_network()->add_cluster(block); };
  };
  const auto team = [](std::string name) {
    return [name](v1::PolicyEntry& e) { e.mutable_team()->add_namespaces(name); };
  };
  const auto gateway = [](const std::function<void(v1::EgressPolicy&)>& change) {
    return [change](v1::PolicyEntry& e) {
      ASSERT_TRUE(e.ParseFromString(ToWire("EgressPolicy/x", ByGateway())));
      change(*e.mutable_egress());
    };
  };
  const auto nothing = [](v1::PolicyEntry&) {};
  const Case cases[] = {
      {"ClusterNetwork/main", network("10.0.0.5/8"), "ClusterNetwork/main: cluster: "},
      {"ClusterNetwork/main", network("tomato"), "ClusterNetwork/main: cluster: "},
      {"ClusterNetwork/main",
       [](auto& e) { e.mutable_cluster_network()->add_storage("fd00::/129"); }, "storage"},
      {"ClusterNetwork/main",
       [](auto& e) {
         for (int i = 0; i <= kMaxItems; ++i) e.mutable_cluster_network()->add_hub("10.0.0.0/8");
       },
       "hub: 10001 items; at most 10000 are taken"},
      {"Team/a", team("Web"), "Team/a: namespaces: 'Web' is no namespace"},
      {"Team/a", team("-web"), "is no namespace"},
      {"Team/a", team(std::string(64, 'a')), "is no namespace"},
      {"Team/", team("web"), "not KIND/NAME"},
      {"ClusterNetwork/a", team("web"), "ClusterNetwork/a holds a Team"},
      {"DestinationGroup/a", [](auto& e) { e.mutable_destination_group()->add_cidrs("x"); },
       "DestinationGroup/a: cidrs: "},
      {"EgressPolicy/x", [](auto& e) { e.mutable_egress(); }, "no mode"},
      {"EgressPolicy/x", gateway([](auto& p) { p.mutable_gateway()->clear_addresses(); }),
       "without a gateway's address"},
      {"EgressPolicy/x",
       gateway([](auto& p) { p.mutable_gateway()->add_addresses("10.1.0.0/24"); }), "gateway: "},
      {"EgressPolicy/x", gateway([](auto& p) { p.mutable_gateway()->add_draining("x"); }),
       "gateway: "},
      {"EgressPolicy/x", gateway([](auto& p) {
         p.mutable_gateway()->set_transport(static_cast<v1::EgressPolicy::Gateway::Transport>(9));
       }),
       "a transport to gateways"},
      {"EgressPolicy/x", gateway([](auto& p) { p.mutable_gateway()->set_health_port(65536); }),
       "health_port: 65536"},
      {"EgressPolicy/x", gateway([](auto& p) { p.set_fallback(v1::EgressPolicy::GATEWAY); }),
       "without a fallback"},
      {"EgressPolicy/x", gateway([](auto& p) { p.add_excluded_cidrs("10.0.0.1/8"); }),
       "excluded_cidrs: "},
      {"BandwidthLimit/x", [](auto& e) { e.mutable_bandwidth_limit(); }, "no rate"},
      {"BandwidthBudget/x", [](auto& e) { e.mutable_bandwidth_budget(); }, "a refresh time"},
      {"", nothing, "not KIND/NAME"},
      {"a/\n", nothing, "not KIND/NAME"},
      {"a/" + std::string(400, 'x'), nothing, "not KIND/NAME"}};
  for (const Case& c : cases) {
    v1::PolicyBundle bundle;
    *bundle.add_changed()->mutable_key() = "Team/fine";
    bundle.mutable_changed(0)->mutable_team()->add_namespaces("web");
    c.write(*bundle.add_changed());
    bundle.mutable_changed(1)->set_key(c.key);
    const Update update = FromWire(bundle);
    EXPECT_EQ(update.mistake.code(), absl::StatusCode::kInvalidArgument) << c.want;
    EXPECT_THAT(std::string(update.mistake.message()), HasSubstr(c.want));
  }
}

TEST(PolicyWire, WhatNodesTryIsBoundedAndHasAPort) {
  const auto mistake = [](const std::function<void(v1::ClusterNetworkPolicy&)>& write) {
    v1::PolicyEntry entry;
    entry.set_key("ClusterNetwork/main");
    write(*entry.mutable_cluster_network());
    return std::string(FromWire(entry).status().message());
  };
  EXPECT_THAT(mistake([](auto& network) { network.add_hub_probes("11.0.0.1"); }),
              HasSubstr("ClusterNetwork/main: hub_probes: '11.0.0.1' is no address with a port"));
  EXPECT_THAT(mistake([](auto& network) { network.add_peer_spoke_probes("12.0.0.1:0"); }),
              HasSubstr("peer_spoke_probes: "));
  const auto ports = [](int count) {
    return [count](v1::ClusterNetworkPolicy& network) {
      for (int port = 1; port <= count; ++port) {
        network.add_peer_spoke_probes(fmt::format("12.0.0.1:{}", port));
      }
    };
  };
  EXPECT_EQ(mistake(ports(8)), "");
  EXPECT_THAT(mistake(ports(9)), HasSubstr("peer_spoke_probes: 9 items; at most 8 are taken"));
}

TEST(PolicyWire, AnUpdateIsReadWithItsEntriesAndItsLimitOfCuts) {
  v1::PolicyBundle bundle;
  bundle.set_version(7);
  bundle.set_base_version(6);
  bundle.add_removed("Team/b");
  ASSERT_TRUE(bundle.add_changed()->ParseFromString(ToWire("Team/a", Team{{"web"}})));
  const Update update = FromWire(bundle);
  EXPECT_EQ(update, (Update{.version = 7,
                            .base_version = 6,
                            .changed = {Read(ToWire("Team/a", Team{{"web"}})).value()},
                            .removed = {"Team/b"}}));
}

}  // namespace
}  // namespace spoke::policy
