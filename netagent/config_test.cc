#include "netagent/config.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::Status AllThere(const std::string&) { return absl::OkStatus(); }

std::string Mistakes(std::string_view text, const CheckDirectory& check = AllThere) {
  const auto config = ParseAgentConfig(text, "agent.yaml", check);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(AgentConfig, DefaultsStandWhereTheFileIsSilent) {
  const auto config =
      ParseAgentConfig("server: ipam:7443\ntls: {insecure: true}\n", "agent.yaml", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->nic, "");
  EXPECT_EQ(config->cooldown, absl::Seconds(30));
  EXPECT_EQ(config->lost_del_after, absl::Minutes(5));
  EXPECT_EQ(config->mtu, 0U);
  EXPECT_TRUE(config->repair_pods);
}

TEST(AgentConfig, TheNetworkConfigurationIsWrittenOnlyWhereItIsAskedFor) {
  const std::string base = "server: a:1\ntls: {insecure: true}\n";
  EXPECT_EQ(ParseAgentConfig(base, "f", AllThere)->cni, std::nullopt);
  EXPECT_EQ(ParseAgentConfig(base + "cni: {}\n", "f", AllThere)->cni, CniFilesConfig());
  const auto config =
      ParseAgentConfig(base +
                           "cni_wait: 0s\ncni: {conf_dir: /d, conf_file: 05-a.conflist, content: "
                           "/c, bin_dir: /b, plugin: /p/spoke}\n",
                       "f", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cni, (CniFilesConfig{"/d", "05-a.conflist", "/c", "/b", "/p/spoke"}));
  EXPECT_EQ(config->cni_wait, absl::ZeroDuration());
  for (const char* name : {"a.conf", "../a.conflist", ".conflist", ".a.conflist"}) {
    EXPECT_THAT(Mistakes(base + "cni: {conf_file: " + name + "}\n"),
                HasSubstr("must be a file's name that ends in .conflist"))
        << name;
  }
  EXPECT_THAT(Mistakes(base + "cni: {plugin: spoke}\n"), HasSubstr("must be the path of a file"));
  EXPECT_THAT(Mistakes(base + "cni: {conf_dir: /none}\n",
                       [](const std::string& path) {
                         return path == "/none" ? absl::NotFoundError("no directory /none")
                                                : absl::OkStatus();
                       }),
              HasSubstr("conf_dir: no directory /none; create it first"));
}

TEST(AgentConfig, ValuesMayNameEnvironmentVariables) {
  const auto lookup = [](const std::string& name) -> std::optional<std::string> {
    if (name == "NODE_NAME") return "node7";
    return name == "HOST" ? std::optional<std::string>("10.0.0.1") : std::nullopt;
  };
  const auto config =
      ParseAgentConfig("node_name: ${NODE_NAME}\nserver: ${HOST}:7443\ntls: {insecure: true}\n",
                       "f", AllThere, lookup);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->node_name, "node7");
  EXPECT_THAT(config->servers, ElementsAre("10.0.0.1:7443"));
  const auto unset =
      ParseAgentConfig("server: ${NONE}\ntls: {insecure: true}\n", "f", AllThere, lookup);
  EXPECT_THAT(std::string(unset.status().message()), HasSubstr("f:1: server: "));
}

TEST(AgentConfig, WithEnrollTheFilesAreThoseThatItGets) {
  const auto config = ParseAgentConfig(
      "server: a:1\nserver_name: ipam\nstate_dir: /s\nenroll: {server: \"a:2\"}\n", "f", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EnrollConfig expected;
  expected.servers = {"a:2"};
  expected.server_name = "ipam";
  EXPECT_EQ(config->enroll, expected);
  EXPECT_EQ(config->tls.ca, "/s/tls/roots.pem");
  EXPECT_EQ(config->tls.certificate, "/s/tls/node.pem");
  EXPECT_EQ(config->tls.key, "/s/tls/node.key");
  const auto all = ParseAgentConfig(
      "server: a:1\nenroll: {servers: [\"b:2\", \"c:2\"], token_file: /t, ca_file: /c, "
      "server_name: n}\n",
      "f", AllThere);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->enroll, (EnrollConfig{{"b:2", "c:2"}, "/t", "/c", "n"}));
  EXPECT_THAT(Mistakes("server: a:1\ntls: {insecure: true}\nenroll: {server: \"b:2\"}\n"),
              HasSubstr("agent.yaml:2: tls: give either tls or enroll"));
  EXPECT_THAT(Mistakes("server: a:1\nenroll: {}\n"),
              HasSubstr("agent.yaml:2: enroll.servers: give server: HOST:PORT, or servers:"));
}

TEST(AgentConfig, OneOrSeveralServersAreNamedByExactlyOneKey) {
  const std::string tls = "tls: {insecure: true}\n";
  const auto several = ParseAgentConfig(
      tls + "servers: [a:1, \"[fd00::1]:7443\", unix:/run/ipam.sock]\n", "f", AllThere);
  ASSERT_TRUE(several.ok()) << several.status();
  EXPECT_THAT(several->servers, ElementsAre("a:1", "[fd00::1]:7443", "unix:/run/ipam.sock"));
  EXPECT_THAT(Mistakes(tls), HasSubstr("servers: give server: HOST:PORT, or servers: with a list"));
  EXPECT_THAT(Mistakes(tls + "server: a:1\nservers: [b:1]\n"),
              HasSubstr("agent.yaml:3: servers: give either server or servers, not both"));
  EXPECT_THAT(Mistakes(tls + "servers: []\n"), HasSubstr("servers: must name a server"));
  EXPECT_THAT(Mistakes(tls + "servers: [a:1, b:1, a:1]\n"), HasSubstr("'a:1' is there twice"));
  for (const char* wrong :
       {"a", "a:0", "a:65536", ":1", "a:b", "http://a:1", "unix:/", "a b:1", "::1:7443", "[::1]"}) {
    EXPECT_THAT(Mistakes(tls + "server: \"" + wrong + "\"\n"), HasSubstr("must be HOST:PORT"))
        << wrong;
  }
  std::string many = "servers:\n";
  for (size_t i = 0; i <= kMaxServers; ++i) many += "- a:" + std::to_string(i + 1) + "\n";
  EXPECT_THAT(Mistakes(tls + many), HasSubstr("17 servers; at most 16 are taken"));
}

TEST(AgentConfig, TheReleaseOfLostDelsCanBeTurnedOffAndHasALimit) {
  const std::string base = "server: a:1\ntls: {insecure: true}\n";
  EXPECT_EQ(ParseAgentConfig(base + "lost_del_after: 0s\n", "f", AllThere)->lost_del_after,
            absl::ZeroDuration());
  EXPECT_THAT(Mistakes(base + "lost_del_after: 25h\n"), HasSubstr("lost_del_after"));
  EXPECT_FALSE(ParseAgentConfig(base, "f", AllThere)->own_settings);
  EXPECT_TRUE(ParseAgentConfig(base + "node_settings: own\n", "f", AllThere)->own_settings);
  EXPECT_THAT(Mistakes(base + "node_settings: mine\n"), HasSubstr("must be own or told"));
  EXPECT_EQ(ParseAgentConfig(base, "f", AllThere)->maintenance, std::nullopt);
  EXPECT_EQ(
      ParseAgentConfig(base + "maintenance: {source: file, file: /m, poll: 5s}\n", "f", AllThere)
          ->maintenance,
      (MaintenanceConfig{.file = "/m", .poll = absl::Seconds(5)}));
  EXPECT_THAT(Mistakes(base + "maintenance: {source: azure}\n"),
              HasSubstr("maintenance.source: azure needs the section azure"));
  EXPECT_THAT(Mistakes(base + "maintenance: {source: file}\n"),
              HasSubstr("file needs the key file"));
  EXPECT_THAT(Mistakes(base + "azure: {}\nmaintenance: {source: azure, file: /m}\n"),
              HasSubstr("azure reads no file"));
  EXPECT_THAT(Mistakes(base + "maintenance: {source: aws}\n"), HasSubstr("must be azure or file"));
  EXPECT_THAT(Mistakes(base + "lost_del_after: -1s\n"), HasSubstr("lost_del_after"));
}

TEST(AgentConfig, ResolversAreAskedForTheNamesThatItGives) {
  const std::string base = "server: a:1\ntls: {insecure: true}\n";
  EXPECT_EQ(ParseAgentConfig(base, "f", AllThere)->service_checks, node_checks::ServiceSettings());
  const auto config = ParseAgentConfig(
      base +
          "node_checks: {cluster_dns: {servers: [10.96.0.10, \"fd00::10\"], name: a.example}, "
          "node_dns: {name: b.example}}\n",
      "f", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(
      config->service_checks,
      (node_checks::ServiceSettings{.cluster_resolvers = {ip::Address::V4(0x0A60000A),
                                                          ip::Address::V6(0xFD00ULL << 48U, 0x10)},
                                    .cluster_name = "a.example",
                                    .node_name = "b.example"}));
  EXPECT_THAT(Mistakes(base + "node_checks: {cluster_dns: {servers: [kube-dns]}}\n"),
              HasSubstr("agent.yaml:3: node_checks.cluster_dns.servers"));
  EXPECT_THAT(
      Mistakes(base +
               "node_checks: {cluster_dns: {servers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4]}}\n"),
      HasSubstr("4 resolvers; at most 3 are asked"));
  EXPECT_THAT(Mistakes(base + "node_checks: {cluster_dns: {name: a..b}}\n"),
              HasSubstr("node_checks.cluster_dns.name: 'a..b' is no host name"));
  EXPECT_THAT(Mistakes(base + "node_checks: {node_dns: {name: a b}}\n"),
              HasSubstr("node_checks.node_dns.name: 'a b' is no host name"));
  EXPECT_THAT(Mistakes(base + "node_checks: {dns: {}}\n"), HasSubstr("node_checks.dns"));
}

TEST(AgentConfig, TheNodesRootIsAnAbsolutePath) {
  const std::string base = "server: a:1\ntls: {insecure: true}\n";
  EXPECT_EQ(ParseAgentConfig(base, "f", AllThere)->host_root, "/");
  EXPECT_EQ(ParseAgentConfig(base + "host_root: /host/\n", "f", AllThere)->host_root, "/host");
  EXPECT_THAT(Mistakes(base + "host_root: host\n"), HasSubstr("host_root: must be an absolute"));
}

TEST(AgentConfig, MistakesAreReportedTogetherWithTheirLines) {
  const std::string text = Mistakes("tls: {insecure: true}\nmtu: 100\ncooldown: 30\nnick: eth1\n");
  EXPECT_THAT(text, HasSubstr("server"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:2: mtu: 100 is below 576"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:3: cooldown"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:4: nick"));
}

TEST(AgentConfig, LabelsAreReadAsTextWhateverTheyLookLike) {
  const auto config = ParseAgentConfig(
      "server: a:1\ntls: {insecure: true}\nvnet: prod-weu\nconnect_jitter: 5s\n"
      "labels:\n  zone: 2\n  example.com/gpu: \"h100\"\n",
      "agent.yaml", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->labels,
            (std::map<std::string, std::string>{{"zone", "2"}, {"example.com/gpu", "h100"}}));
  EXPECT_EQ(config->vnet, "prod-weu");
  EXPECT_EQ(config->connect_jitter, absl::Seconds(5));
}

TEST(AgentConfig, LabelsThatNoSelectorCouldNameAreMistakes) {
  const std::string text = Mistakes(
      "server: a:1\ntls: {insecure: true}\nlabels:\n  zone: [1]\n  gpu: \"two words\"\n"
      "  /x: a\n  y/: b\n");
  EXPECT_THAT(text, HasSubstr("agent.yaml:4: labels.zone: must be text"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:5: labels.gpu: must be 1 to 63"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:6: labels./x: is no label's name"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:7: labels.y/: is no label's name"));
}

TEST(AgentConfig, AMissingSocketDirectoryIsAMistakeOfItsKey) {
  const std::string text =
      Mistakes("server: a:1\ntls: {insecure: true}\ncni_socket: /nowhere/cni.sock\n",
               [](const std::string& path) {
                 return path == "/nowhere" ? absl::NotFoundError("directory /nowhere: gone")
                                           : absl::OkStatus();
               });
  EXPECT_THAT(text, HasSubstr("agent.yaml:3: cni_socket: directory /nowhere: gone"));
}

TEST(AgentConfig, AzureIsAskedExactlyIfItsMapIsThere) {
  const std::string text = "server: a:1\ntls: {insecure: true}\n";
  EXPECT_EQ(ParseAgentConfig(text, "agent.yaml", AllThere)->azure, std::nullopt);
  const auto defaults = ParseAgentConfig(text + "azure: {}\n", "agent.yaml", AllThere);
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  EXPECT_EQ(defaults->azure, AzureConfig());
  EXPECT_TRUE(defaults->azure->prove);
  const auto all = ParseAgentConfig(
      text +
          "azure:\n  imds: http://127.0.0.1:8080\n  wireserver: http://[fd00::1]:81\n"
          "  reflector: 10.0.0.9\n  prove: false\n  prove_deadline: 30s\n",
      "agent.yaml", AllThere);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->azure, (AzureConfig{.imds = "http://127.0.0.1:8080",
                                     .wireserver = "http://[fd00::1]:81",
                                     .reflector = ip::Address::V4(0x0A000009),
                                     .prove = false,
                                     .prove_deadline = absl::Seconds(30)}));
}

TEST(AgentConfig, EgressIsWhatItsMapSays) {
  const std::string base = "server: a:1\ntls: {insecure: true}\n";
  EXPECT_EQ(ParseAgentConfig(base, "f", AllThere)->egress, EgressConfig());
  EXPECT_TRUE(ParseAgentConfig(base + "azure: {}\n", "f", AllThere)->egress.platform);
  EXPECT_FALSE(ParseAgentConfig(base + "azure: {}\negress: {platform: false}\n", "f", AllThere)
                   ->egress.platform);
  const auto all = ParseAgentConfig(
      base +
          "egress:\n  ip_masq: {path: /etc/config, ipv6: true}\n"
          "  gateway: {addresses: [10.1.0.100], health_port: 81, draining: true, drain_file: /d}\n"
          "  nat_host: {endpoints: /e.json, max_age: 30s, health_port: 82}\n",
      "f", AllThere);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->egress.ip_masq, (IpMasqSource{"/etc/config", true}));
  EXPECT_EQ(all->egress.gateway,
            (EgressGatewayRole{{ip::Address::V4(0x0A010064)}, 81, true, "/d"}));
  EXPECT_EQ(all->egress.nat_host, (NatHostConfig{"/e.json", absl::Seconds(30), 82}));
  const std::string text = Mistakes(
      base + "egress:\n  ip_masq: {}\n  gateway: {addresses: [x]}\n  nat_host: {max_age: 1s}\n");
  EXPECT_THAT(text, HasSubstr("egress.ip_masq.path"));
  EXPECT_THAT(text, HasSubstr("egress.gateway.addresses[0]"));
  EXPECT_THAT(text, HasSubstr("egress.nat_host.max_age"));
}

TEST(AgentConfig, WhatAPodMayHaveOfConnectionsIsANumberOrAsMuchAsIsUsual) {
  const std::string base = "server: a:1\ntls: {insecure: true}\n";
  const auto shares = [&](const std::string& traffic) {
    const auto config = ParseAgentConfig(base + "traffic: {" + traffic + "}\n", "f", AllThere);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->traffic.shares : ShareSettings();
  };
  EXPECT_EQ(shares("enabled: true"), ShareSettings());
  EXPECT_EQ(shares("pod_connections: auto, pod_ports: auto"), ShareSettings());
  EXPECT_EQ(shares("pod_connections: off"), (ShareSettings{.bounded = false}));
  EXPECT_EQ(shares("pod_connections: 5000, pod_ports: 64512"),
            (ShareSettings{.connections = 5000, .ports = 64'512}));
  for (const char* wrong : {"pod_connections: 15", "pod_connections: many", "pod_connections: 1e4",
                            "pod_ports: off", "pod_ports: 64513", "pod_connections: 4294967296"}) {
    EXPECT_THAT(Mistakes(base + "traffic: {" + wrong + "}\n"),
                HasSubstr("must be auto, or from 16"))
        << wrong;
  }
}

TEST(AgentConfig, ShapingIsOnAndBelievesWhomItIsTold) {
  const std::string base = "server: a:1\ntls: {insecure: true}\n";
  EXPECT_EQ(ParseAgentConfig(base, "f", AllThere)->shaping, ShapingConfig());
  const auto config = ParseAgentConfig(
      base + "shaping: {enabled: false, resolvers: [169.254.20.10, fd00::53]}\n", "f", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->shaping,
            (ShapingConfig{
                false, {ip::Address::V4(0xA9FE140A), ip::Address::V6(0xFD00ULL << 48U, 0x53)}}));
  EXPECT_THAT(Mistakes(base + "shaping: {resolvers: [dns.example.org]}\n"),
              HasSubstr("dns.example.org"));
  EXPECT_THAT(Mistakes(base + "shaping: {resolver: []}\n"), HasSubstr("resolver"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += "10.0.0." + std::to_string(i) + ",";
  EXPECT_THAT(Mistakes(base + "shaping: {resolvers: [" + many + "]}\n"),
              HasSubstr("at most 16 are taken"));
}

TEST(AgentConfig, WhatAzureCannotBeAskedWithIsAMistake) {
  const std::string text = Mistakes(
      "server: a:1\ntls: {insecure: true}\nazure:\n  imds: https://169.254.169.254\n"
      "  wireserver: http://168.63.129.16/machine\n  reflector: fd00::9\n"
      "  prove_deadline: 0s\n  proof: true\n");
  EXPECT_THAT(text, HasSubstr("agent.yaml:4: azure.imds: must be http://ADDRESS"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:5: azure.wireserver: must be http://ADDRESS"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:6: azure.reflector: must be an IPv4 address"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:7: azure.prove_deadline"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:8: azure.proof"));
  for (const char* url :
       {"http://metadata.internal", "http://", "http://169.254.169.254:0",
        "http://169.254.169.254:80:80", "http://[169.254.169.254", "http://fd00::1",
        "http://[fd00::1]:", "http://user@169.254.169.254", "169.254.169.254"}) {
    EXPECT_THAT(Mistakes(fmt::format(
                    "server: a:1\ntls: {{insecure: true}}\nazure:\n  imds: \"{}\"\n", url)),
                HasSubstr("azure.imds: must be http://ADDRESS"))
        << url;
  }
}

TEST(AgentConfig, MetricsAreServedUnlessTurnedOff) {
  const std::string text = "server: a:1\ntls: {insecure: true}\n";
  EXPECT_EQ(ParseAgentConfig(text, "agent.yaml", AllThere)->metrics, MetricsConfig());
  const auto off = ParseAgentConfig(
      text + "metrics: {address: off, iptables_exporter: {address: off, cluster: off}}\n",
      "agent.yaml", AllThere);
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_EQ(off->metrics.address, "");
  EXPECT_EQ(off->metrics.iptables_exporter.address, "");
  EXPECT_EQ(off->metrics.iptables_exporter.cluster, std::nullopt);
  const auto all = ParseAgentConfig(
      text +
          "metrics:\n  address: 0.0.0.0:9465\n  namespaces: 2\n  pods: 0\n"
          "  iptables_exporter:\n    address: \"[::1]:9119\"\n    retailnext_address: "
          "127.0.0.1:9455\n    tables: [mangle, nat]\n    cluster: 172.16.0.0/12\n",
      "agent.yaml", AllThere);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->metrics,
            (MetricsConfig{
                .address = "0.0.0.0:9465",
                .namespaces = 2,
                .pods = 0,
                .iptables_exporter = {.address = "[::1]:9119",
                                      .retailnext_address = "127.0.0.1:9455",
                                      .tables = {"mangle", "nat"},
                                      .cluster = ip::Prefix::Parse("172.16.0.0/12").value()}}));
}

TEST(AgentConfig, WhatMetricsCannotBeServedWithIsAMistake) {
  const std::string text = Mistakes(
      "server: a:1\ntls: {insecure: true}\nmetrics:\n  address: localhost\n  pods: 64\n"
      "  iptables_exporter:\n    address: :9119\n    tables: [mangel]\n    cluster: 0.0.0.0/0\n"
      "    retailnext_address: a:70000\n");
  EXPECT_THAT(text, HasSubstr("agent.yaml:4: metrics.address: must be HOST:PORT"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:5: metrics.pods"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:7: metrics.iptables_exporter.address: must be"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:8: metrics.iptables_exporter.tables"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:9: metrics.iptables_exporter.cluster: must be"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:10: metrics.iptables_exporter.retailnext_address"));
}

}  // namespace
}  // namespace spoke::netagent
