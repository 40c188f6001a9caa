#include "ipam-server/config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

absl::Status AllThere(const std::string&) { return absl::OkStatus(); }

constexpr std::string_view kGood = R"(tls: {insecure: true}
cloud: {static: {}}
pools:
  - {name: a, cidr: 10.1.0.0/24}
)";

std::string Mistakes(std::string_view text, const CheckDirectory& check = AllThere) {
  const auto config = ParseServerConfig(text, "ipam.yaml", check);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(ServerConfig, DefaultsStandWhereTheFileIsSilent) {
  const auto config = ParseServerConfig(kGood, "ipam.yaml", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->listen_admin, "unix:/run/spoke/ipam-admin.sock");
  EXPECT_EQ(config->policy.cooldown, absl::Seconds(30));
  EXPECT_EQ(config->pools.at(0).reserve_first, 4U);
}

TEST(ServerConfig, EverythingCanBeSaid) {
  const auto config = ParseServerConfig(
      R"(listen: {agents: "10.0.0.1:7443", admin: "unix:/x/a.sock", metrics: "off",
         metrics_token_file: /t/token, agents_per_address: 500, advertised: [10.0.0.9, "fd00::9"]}
tls: {ca: /c, certificate: /d, key: /k}
store: {sqlite: /s/ipam.db}
cloud: {static: {attachments_file: /run/att}}
pools:
  - {name: a, cidr: 10.1.0.0/24, reserve_first: 1, reserve_last: 2}
  - {name: six, cidr: "fd00::/64"}
node_addresses: {min: 1, batch: 2, spare: 0.25, max: 30}
cooldown: 10s
release: {idle: 1m, jitter: 2m, hysteresis: 3, denied: 4m, freeze_share: 0.1, freeze_window: 5m}
policy: {max_cut_share: 0.2}
history: {keep: 48h, max_mib: 16}
audit: {period: 0s}
debug: true
)",
      "ipam.yaml", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->pools.size(), 2U);
  EXPECT_EQ(config->advertised, (std::vector<ip::Address>{*ip::Address::Parse("10.0.0.9"),
                                                          *ip::Address::Parse("fd00::9")}));
  EXPECT_EQ(config->policy.target, (TargetPolicy{.min = 1, .batch = 2, .spare = 0.25, .max = 30}));
  EXPECT_EQ(config->policy.release, (ReleasePolicy{.idle_time = absl::Minutes(1),
                                                   .jitter_spread = absl::Minutes(2),
                                                   .hysteresis = 3,
                                                   .denial_backoff = absl::Minutes(4)}));
  EXPECT_EQ(config->policy.breaker.share, 0.1);
  EXPECT_EQ(config->policy.breaker.window, absl::Minutes(5));
  EXPECT_EQ(config->max_cut_share, 0.2);
  EXPECT_EQ(config->history.keep, absl::Hours(48));
  EXPECT_EQ(config->history.max_bytes, 16U << 20U);
  EXPECT_EQ(config->audit_period, absl::ZeroDuration());
  EXPECT_EQ(config->listen_metrics, "off");
  EXPECT_EQ(config->metrics_token_file, "/t/token");
  EXPECT_EQ(config->agents_per_address, 500U);
}

TEST(ServerConfig, WhereItListensIsCheckedBeforeItStarts) {
  for (const char* wrong : {"10.0.0.1", "host", ":7443", "[::1]", "::1:7443", "off", "a:70000"}) {
    EXPECT_THAT(Mistakes(std::string("listen: {agents: \"") + wrong + "\"}\n" + std::string(kGood)),
                HasSubstr("listen.agents: must be HOST:PORT"))
        << wrong;
  }
  EXPECT_THAT(Mistakes("listen: {metrics: 10.0.0.1}\n" + std::string(kGood)),
              HasSubstr("listen.metrics: must be HOST:PORT"));
  EXPECT_THAT(Mistakes("listen: {metrics: \"unix:/m\"}\n" + std::string(kGood)),
              HasSubstr("listen.metrics: must be HOST:PORT"));
  for (const char* right : {"0.0.0.0:7443", "[::]:7443", "ipam.example:0", "unix:/run/a.sock"}) {
    EXPECT_TRUE(
        ParseServerConfig(std::string("listen: {agents: \"") + right + "\"}\n" + std::string(kGood),
                          "f", AllThere)
            .ok())
        << right;
  }
}

TEST(ServerConfig, OperatorsNeedTlsAndAPort) {
  EXPECT_THAT(Mistakes("listen: {operators: \"0.0.0.0:7447\"}\n" + std::string(kGood)),
              HasSubstr("ipam.yaml:1: listen.operators: needs TLS"));
  const std::string enroll =
      "enroll: {server_names: [a], operators: {viewers: [\"group:web\"], admins: [\"user:b\"]}}\n"
      "cloud: {static: {}}\n";
  EXPECT_THAT(Mistakes(enroll),
              HasSubstr("enroll.operators: gives certificates that nothing accepts"));
  const auto config =
      ParseServerConfig("listen: {operators: \"0.0.0.0:7447\"}\n" + enroll, "f", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->listen_operators, "0.0.0.0:7447");
  EXPECT_EQ(config->enroll->operators,
            (OperatorRules{.viewers = {"group:web"}, .admins = {"user:b"}}));
  EXPECT_THAT(
      Mistakes("enroll: {server_names: [a], operators: {viewers: [web]}}\ncloud: {static: {}}\n"),
      HasSubstr("enroll.operators.viewers[0]: \"web\" is neither user:NAME nor group:NAME"));
}

TEST(ServerConfig, PoolsMayAllComeAsPolicyObjects) {
  const auto config =
      ParseServerConfig("tls: {insecure: true}\ncloud: {static: {}}\n", "ipam.yaml", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->pools.empty());
}

TEST(ServerConfig, AnUnknownKeyIsNamedWithItsLine) {
  EXPECT_THAT(Mistakes(std::string(kGood) + "coldown: 3s\n"), HasSubstr("ipam.yaml:5: coldown"));
}

TEST(ServerConfig, BadAndOverlappingCidrsAreNamedWithTheirLines) {
  const std::string text = Mistakes(R"(tls: {insecure: true}
cloud: {static: {}}
pools:
  - {name: a, cidr: 10.1.0.0/16}
  - {name: b, cidr: 10.1.2.0/24}
  - {name: c, cidr: 10.2.0.5/24}
  - {name: a, cidr: 10.3.0.0/24}
)");
  EXPECT_THAT(text, HasSubstr("ipam.yaml:5: pools[1].cidr: 10.1.2.0/24 overlaps 10.1.0.0/16"));
  EXPECT_THAT(text, HasSubstr("ipam.yaml:6: pools[2].cidr: "));
  EXPECT_THAT(text, HasSubstr("did you mean 10.2.0.0/24"));
  EXPECT_THAT(text, HasSubstr("ipam.yaml:7: pools[3].name: pool \"a\" is already defined"));
}

TEST(ServerConfig, OneMistakeIsReportedOnce) {
  const std::string text = Mistakes(R"(tls: {insecure: true}
cloud: {static: {}}
pools:
  - {name: a, cidr: 10.300.0.0/16}
  - {name: b, cidr: 10.1.2.0/24}
)");
  EXPECT_THAT(text, HasSubstr("pools[0].cidr"));
  EXPECT_EQ(text.find("overlaps"), std::string::npos) << text;
}

TEST(ServerConfig, AMissingDirectoryIsNamedBeforeAnythingIsTouched) {
  const std::string text =
      Mistakes(std::string(kGood) + "listen: {admin: \"unix:/nowhere/a.sock\"}\n",
               [](const std::string& path) {
                 return path == "/nowhere" ? absl::NotFoundError("directory /nowhere: gone")
                                           : absl::OkStatus();
               });
  EXPECT_THAT(text, HasSubstr("ipam.yaml:5: listen.admin: directory /nowhere: gone"));
}

TEST(ServerConfig, PlainTextMustBeAskedFor) {
  EXPECT_THAT(Mistakes("cloud: {static: {}}\npools: [{name: a, cidr: 10.1.0.0/24}]\n"),
              HasSubstr("tls"));
  EXPECT_THAT(Mistakes("tls: {}\ncloud: {static: {}}\npools: [{name: a, cidr: 10.1.0.0/24}]\n"),
              HasSubstr("insecure: true"));
}

TEST(ServerConfig, WithEnrollTheFilesAreThoseOfItsDirectory) {
  constexpr std::string_view kRest = "cloud: {static: {}}\n";
  const auto config = ParseServerConfig(
      std::string(kRest) + "enroll: {server_names: [spoke-ipam-server, 10.96.0.10, \"fd00::1\"]}\n",
      "ipam.yaml", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EnrollConfig expected;
  expected.server_names = {"spoke-ipam-server", "10.96.0.10", "fd00::1"};
  EXPECT_EQ(config->enroll, expected);
  EXPECT_EQ(config->tls.ca, "/var/lib/spoke/ca/ca.pem");
  EXPECT_EQ(config->tls.certificate, "/var/lib/spoke/ca/server.pem");
  EXPECT_EQ(config->tls.key, "/var/lib/spoke/ca/server.key");
  EXPECT_FALSE(config->tls.insecure);

  const auto all = ParseServerConfig(
      std::string(kRest) +
          "enroll: {address: \"0.0.0.0:1\", directory: /d/ca, server_names: [a], audience: b,\n"
          "  service_account: c, namespace: d, certificate_life: 2h}\n",
      "ipam.yaml", AllThere);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->enroll, (EnrollConfig{.address = "0.0.0.0:1",
                                       .directory = "/d/ca",
                                       .server_names = {"a"},
                                       .audience = "b",
                                       .service_account = "c",
                                       .k8s_namespace = "d",
                                       .certificate_life = absl::Hours(2)}));
}

TEST(ServerConfig, WithASealKeyTheAuthorityIsInTheStore) {
  const std::string rest =
      "cloud: {static: {}}\nenroll: {server_names: [a]}\nseal_key_file: /s/seal.key\n";
  const auto config = ParseServerConfig(rest, "ipam.yaml", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->seal_key_file, "/s/seal.key");
  EXPECT_EQ(config->tls.ca, "/var/lib/spoke/ca/roots.pem");
  EXPECT_FALSE(config->may_make_seal_key()) << "not in a directory of its own";
  const auto own = ParseServerConfig(rest + "store: {sqlite: /s/ipam.db}\n", "ipam.yaml", AllThere);
  EXPECT_TRUE(own->may_make_seal_key());
  const std::string etcd = "store: {etcd: {endpoints: [\"http://a\"], directory: /s}}\n";
  EXPECT_FALSE(ParseServerConfig(rest + etcd, "ipam.yaml", AllThere)->may_make_seal_key());
  EXPECT_THAT(Mistakes("cloud: {static: {}}\nenroll: {server_names: [a]}\n" + etcd),
              HasSubstr("seal_key_file: several servers have one authority"));
}

TEST(ServerConfig, EnrollIsRefusedWithItsMistakes) {
  const std::string text = Mistakes(
      "tls: {insecure: true}\ncloud: {static: {}}\n"
      "enroll:\n  server_names: [Up]\n  namespace: a/b\n  certificate_life: 1m\n");
  EXPECT_THAT(text, HasSubstr("ipam.yaml:1: tls: give either tls or enroll"));
  EXPECT_THAT(text, HasSubstr("must be a DNS name in lower case, or an address, not \"Up\""));
  EXPECT_THAT(text, HasSubstr("ipam.yaml:5: enroll.namespace"));
  EXPECT_THAT(text, HasSubstr("ipam.yaml:6: enroll.certificate_life"));
  EXPECT_THAT(Mistakes("cloud: {static: {}}\nenroll: {}\n"), HasSubstr("server_names"));
  EXPECT_THAT(Mistakes("cloud: {static: {}}\nenroll: {server_names: []}\n"),
              HasSubstr("needs 1 to 32 names"));
}

TEST(ServerConfig, APoolWithoutUsableAddressesIsRefused) {
  EXPECT_THAT(Mistakes("tls: {insecure: true}\ncloud: {static: {}}\npools: [{name: a, cidr: "
                       "10.1.0.0/30}]\n"),
              HasSubstr("no address left after 5 reserved"));
}

}  // namespace
}  // namespace spoke::ipam
