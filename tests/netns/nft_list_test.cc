// nft(8) as operators have it reads the table spoke: with everything in it that there can be.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/nft/connection.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/egress/egress_rules.h"
#include "netagent/egress/gateways/gateway_endpoint.h"
#include "netagent/egress/nat_host.h"
#include "netagent/traffic/traffic_plan.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

ip::Address A(const char* text) { return ip::Address::Parse(text).value(); }

// Returns what a command prints; its exit code, which a signal makes 128 and more, behind it.
std::pair<std::string, int> Command(const std::string& command) {
  // NOLINTNEXTLINE(cert-env33-c): fixed text.
  FILE* const pipe = ::popen((command + " 2>&1; echo \"exit $?\"").c_str(), "re");
  if (pipe == nullptr) return {"", -1};
  std::string output;
  std::array<char, 4096> part{};
  size_t got = 0;
  while ((got = std::fread(part.data(), 1, part.size(), pipe)) > 0) output.append(part.data(), got);
  ::pclose(pipe);
  const size_t code = output.rfind("exit ");
  if (code == std::string::npos) return {output, -1};
  return {output.substr(0, code), std::atoi(output.c_str() + code + 5)};
}

template <typename T>
void Put(Policy& policy, const std::string& key, T value) {
  policy.entries[key] = {.key = key, .bytes = {}, .value = std::move(value)};
}

policy::EgressPolicy Egress(policy::EgressMode mode, const char* pod_namespace) {
  return {.namespaces = {pod_namespace},
          .destination_cidrs = policy::Blocks({"0.0.0.0/0", "::/0"}),
          .mode = mode};
}

// The policy has every class, every mode and every limit.
Policy Everything() {
  Policy policy{.version = 1};
  Put(policy, "ClusterNetwork/main",
      policy::ClusterNetwork{.cluster = policy::Blocks({"10.1.0.0/16", "fd00:1::/32"}),
                             .hub = policy::Blocks({"10.2.0.0/16", "fd00:2::/32"}),
                             .peer_spoke = policy::Blocks({"10.3.0.0/16", "fd00:3::/32"}),
                             .platform = policy::Blocks({"10.4.0.0/16"}),
                             .storage = policy::Blocks({"10.5.0.0/16"}),
                             .services = policy::Blocks({"10.96.0.0/16", "fd00:96::/64"})});
  Put(policy, "DestinationGroup/mirror",
      policy::DestinationGroup{.cidrs = policy::Blocks({"151.101.0.0/16", "2a04::/32"})});
  Put(policy, "EgressPolicy/masquerade", Egress(policy::EgressMode::kMasquerade, "masquerade"));
  Put(policy, "EgressPolicy/routed", Egress(policy::EgressMode::kRouted, "routed"));
  Put(policy, "EgressPolicy/drop", Egress(policy::EgressMode::kDrop, "drop"));
  policy::EgressPolicy gateway = Egress(policy::EgressMode::kGateway, "gateway");
  gateway.gateway =
      policy::EgressGateway{.addresses = policy::Addresses({"10.1.0.100", "fd00:1::100"})};
  gateway.limits = {.connections = 20,
                    .new_connections_per_second = 10,
                    .connections_per_destination = 6,
                    .new_connections_per_second_per_destination = 5};
  Put(policy, "EgressPolicy/gateway", gateway);
  policy::EgressPolicy mirror{.destination_groups = {"mirror"},
                              .mode = policy::EgressMode::kMasquerade};
  mirror.priority = 1;
  Put(policy, "EgressPolicy/mirror", mirror);
  return policy;
}

nft::Transaction WholeTable(const TrafficPlanSettings& settings) {
  const Policy policy = Everything();
  const ClassMap classes = ClassMap::Compile(policy, {}).value();
  const std::set<GatewayEndpoint> healthy = {A("10.1.0.100"), A("fd00:1::100")};
  nft::Transaction transaction;
  AppendTrafficTable(classes, settings, {}, transaction);
  AppendEpoch(absl::FromUnixSeconds(1000), transaction);
  const EgressRules egress =
      EgressRules::Compile(policy, classes, healthy,
                           {.ip_masq = IpMasqConfig{},
                            .platform = true,
                            .own = {A("10.1.0.9")},
                            .is_gateway = true,
                            .gateway_addresses = {A("10.1.0.9"), A("10.1.0.10"), A("fd00:1::9")}})
          .value();
  egress.AppendTables({}, transaction);
  uint32_t index = 7;
  for (const char* pod_namespace : {"masquerade", "routed", "drop", "gateway", "none"}) {
    const TrafficPod pod{
        .host_link = fmt::format("spk{}", index),
        .host_index = index,
        .addresses = {ip::Advance(A("10.1.1.0"), index), ip::Advance(A("fd00:1::"), index)},
        .pod_namespace = pod_namespace};
    AppendTrafficPod(pod, transaction);
    egress.AppendPod(pod, transaction);
    ++index;
  }
  const EndpointTable table{
      .generated = absl::UnixEpoch(),
      .services = {{A("10.96.0.10"), 80, 6, {{A("10.1.0.5"), 8080}, {A("10.1.0.6"), 8081}}},
                   {A("10.96.0.10"), 53, 17, {{A("10.1.0.7"), 5353}}},
                   {A("fd00:96::10"), 80, 6, {{A("fd00:1::5"), 8080}}}}};
  EXPECT_TRUE(AppendNatHost(classes, table, {}, transaction).ok());
  return transaction;
}

class NftListTest : public testing::TestWithParam<const char*> {};

TEST_P(NftListTest, NftCanListTheTable) {
  const auto netns = testing_support::FreshNetns::Enter();
  if (netns == nullptr) {
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr);
    GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  }
  auto tables = nft::Connection::Open();
  ASSERT_TRUE(tables.ok()) << tables.status();
  const TrafficPlanSettings with_fast_path{.mark_translated = true};
  const TrafficPlanSettings without{.uplink = 1,
                                    .shares = ConnectionShares{.connections = 100, .ports = 50}};
  for (const TrafficPlanSettings& settings : {with_fast_path, without}) {
    const absl::Status status = tables->Apply(WholeTable(settings));
    ASSERT_TRUE(status.ok()) << status;
    const auto [output, code] = Command(GetParam());
    EXPECT_EQ(code, 0) << output.substr(0, 2000);
    EXPECT_THAT(output, HasSubstr("spoke"));
    EXPECT_EQ(Command("nft delete table inet spoke").second, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, NftListTest,
                         testing::Values("nft list ruleset", "nft list table inet spoke",
                                         "nft list tables", "nft -j list ruleset",
                                         "nft -a list ruleset"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == ' ' || c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace spoke::netagent
