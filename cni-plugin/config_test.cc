#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cni-plugin/agent/request.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

using testing::HasSubstr;

struct Outcome {
  Invocation request;
  std::optional<Error> error;
  unsigned code() const { return error ? error->code : 0; }
};

Outcome Configure(std::string_view text, Verb verb = Verb::kAdd) {
  Outcome outcome;
  outcome.request.verb = verb;
  outcome.request.ifname = "eth0";
  outcome.error = ReadConfig(text, outcome.request);
  return outcome;
}

// Returns a configuration with `more` in it: members, each after a comma.
std::string With(const std::string& more, const std::string& version = "1.1.0") {
  return R"({"cniVersion":")" + version + R"(","name":"a")" + more + "}";
}

// Covers A17, A3.
TEST(ReadConfig, TakesOurConfigurationAndPassesOverTheRest) {
  const Outcome outcome = Configure(
      R"({"cniVersion":"1.0.0","name":"spoke","type":"spoke","socket":"/run/x.sock","capabilities":{},
          "ipam":{"type":"x"},"ipMasq":true,"future":[1,{"a":2}],"timeoutSeconds":50,
          "dns":{"nameservers":["10.0.0.10"]}})");
  ASSERT_FALSE(outcome.error) << outcome.error->message;
  EXPECT_EQ(outcome.request.socket, "/run/x.sock");
  EXPECT_EQ(outcome.request.dns, R"({"nameservers":["10.0.0.10"]})");
  EXPECT_EQ(outcome.request.add_timeout_ms, 50'000);
  for (const char* version : kSupportedVersions) {
    const Outcome plain = Configure(With("", version));
    EXPECT_FALSE(plain.error) << version;
    EXPECT_EQ(plain.request.socket, "/run/spoke/cni.sock");
    EXPECT_EQ(plain.request.cni_version, version);
    EXPECT_EQ(plain.request.add_timeout_ms, 20'000);
  }
}

TEST(ReadConfig, TakesTheFilesThatUsersInstallAndTheyDeclareWhatItSpeaks) {
  for (const char* path :
       {"/conf/10-spoke.conflist", "/conf/kubernetes/base/config/spoke.conflist"}) {
    std::ifstream file(std::string(SPOKE_SOURCE_DIR) + path);
    const auto list = nlohmann::json::parse(file);
    const auto versions = list["cniVersions"].get<std::vector<std::string>>();
    EXPECT_EQ(versions, std::vector<std::string>(std::begin(kSupportedVersions),
                                                 std::end(kSupportedVersions)));
    // Older runtimes take this; they know no 1.1.0.
    EXPECT_EQ(list["cniVersion"], "1.0.0");
    for (const std::string& version : versions) {
      auto plugin = list["plugins"][0];
      plugin["name"] = list["name"];
      plugin["cniVersion"] = version;
      const Outcome outcome = Configure(plugin.dump());
      ASSERT_FALSE(outcome.error) << outcome.error->message;
      EXPECT_EQ(outcome.request.socket, Invocation().socket);
    }
  }
}

// Covers A15.
TEST(ReadConfig, WhatIsNoObjectIsADecodingFailure) {
  std::string nested = With(",\"x\":");
  nested.insert(nested.size() - 1, std::string(1 << 19, '[') + std::string(1 << 19, ']'));
  for (const std::string& text :
       {std::string(), std::string("{bad"), std::string("[]"), std::string("null"),
        std::string("\"x\""), std::string("{\"name\":\"a\""), std::string("{} {}"),
        std::string("{\"name\":\"\xff\xfe\"}"), std::string(1 << 20, '['), nested}) {
    for (const Verb verb : {Verb::kAdd, Verb::kDel, Verb::kCheck, Verb::kGc, Verb::kStatus}) {
      EXPECT_EQ(Configure(text, verb).code(), kDecodingFailure) << text.substr(0, 20);
    }
  }
}

// Covers A6, A7, A16: in the order in which the reference plugins look.
TEST(ReadConfig, NameThenVersionThenTheRest) {
  const std::pair<const char*, unsigned> cases[] = {
      {R"({})", kInvalidConfig},
      {R"({"cniVersion":"9.0.0"})", kInvalidConfig},
      {R"({"cniVersion":"1.0.0","name":""})", kInvalidConfig},
      {R"({"cniVersion":"1.0.0","name":null})", kInvalidConfig},
      {R"({"cniVersion":"1.0.0","name":"a/b"})", kInvalidConfig},
      {R"({"cniVersion":"1.0.0","name":"-a"})", kInvalidConfig},
      {R"({"cniVersion":"1.0.0","Name":"a"})", kInvalidConfig},
      {R"({"cniVersion":"1.0.0","name":7})", kDecodingFailure},
      {R"({"cniVersion":7,"name":"a"})", kDecodingFailure},
      {R"({"cniVersion":["1.0.0"],"name":"a","socket":7})", kDecodingFailure},
      {R"({"name":"a"})", kIncompatibleVersion},
      {R"({"name":"a","cniVersion":null})", kIncompatibleVersion},
      {R"({"name":"a","cniVersion":"","socket":7})", kIncompatibleVersion},
      {R"({"name":"a","cniVersion":"abc"})", kIncompatibleVersion},
      {R"({"name":"a","cniVersion":"1.0"})", kIncompatibleVersion},
      {R"({"name":"a","cniVersion":"v1.0.0"})", kIncompatibleVersion},
      {R"({"name":"a","cniVersion":"0.2.0"})", kIncompatibleVersion},
      {R"({"name":"a","cniVersion":"1.2.0"})", kIncompatibleVersion},
  };
  for (const auto& [text, code] : cases) {
    for (const Verb verb : {Verb::kAdd, Verb::kDel}) {
      EXPECT_EQ(Configure(text, verb).code(), code) << text;
    }
  }
}

// Covers A5.
TEST(ReadConfig, AVersionItDoesNotSpeakIsNamedBesideThoseItDoes) {
  const Outcome outcome = Configure(With("", "1.2.0"));
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->details, HasSubstr("config is \"1.2.0\""));
  EXPECT_THAT(outcome.error->details, HasSubstr("0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0"));
  EXPECT_THAT(Configure(R"({"name":"a"})").error->details, HasSubstr("config is \"0.1.0\""));
}

// Covers D2, E6, F5.
TEST(ReadConfig, VerbsAreRefusedWhereTheVersionHasThemNot) {
  const struct {
    Verb asked;
    const char* version;
    const char* verb;
  } cases[] = {{Verb::kCheck, "0.3.1", "CHECK"},
               {Verb::kGc, "1.0.0", "GC"},
               {Verb::kGc, "0.4.0", "GC"},
               {Verb::kStatus, "1.0.0", "STATUS"}};
  for (const auto& c : cases) {
    const Outcome outcome = Configure(With("", c.version), c.asked);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code, kIncompatibleVersion);
    EXPECT_EQ(outcome.error->message, std::string("config version does not allow ") + c.verb);
  }
  EXPECT_FALSE(Configure(With(""), Verb::kStatus).error);
  EXPECT_FALSE(Configure(With(""), Verb::kGc).error);
}

// Covers A18.
TEST(ReadConfig, TheLastOfTwoEqualKeysCounts) {
  EXPECT_EQ(Configure(With(R"(,"mtu":1,"mtu":1400)")).request.options.mtu, 1400U);
  EXPECT_EQ(Configure(R"({"name":"a","cniVersion":"9","cniVersion":"1.0.0","name":"b"})")
                .request.network_name,
            "b");
}

TEST(ReadConfig, WhatAnAddCannotUseIsNamed) {
  for (const char* more :
       {R"(,"socket":"x")", R"(,"socket":["/x"])", R"(,"socket":"/a\u0000b")",
        R"(,"timeoutSeconds":0)", R"(,"timeoutSeconds":51)", R"(,"timeoutSeconds":-1)",
        R"(,"timeoutSeconds":"20")", R"(,"timeoutSeconds":1.5)", R"(,"runtimeConfig":[])",
        R"(,"mtu":12)", R"(,"dns":[])", R"(,"dns":{"nameservers":"10.0.0.1"})",
        R"(,"dns":{"search":[7]})", R"(,"dns":{"domain":[]})",
        R"(,"runtimeConfig":{"dns":{"servers":7}})"}) {
    const Outcome outcome = Configure(With(more));
    EXPECT_EQ(outcome.code(), kInvalidConfig) << more;
  }
  EXPECT_EQ(Configure(With(",\"socket\":\"/" + std::string(107, 'a') + "\"")).code(),
            kInvalidConfig);
  EXPECT_EQ(Configure(With(",\"socket\":\"/" + std::string(106, 'a') + "\"")).code(), 0U);
  EXPECT_EQ(Configure(With(R"(,"prevResult":7)")).code(), kDecodingFailure);
  EXPECT_EQ(Configure(With(R"(,"prevResult":null)")).code(), 0U);
}

// Covers C12, C17, C18, C24.
TEST(ReadConfig, NothingThatOnlyAnAddNeedsHoldsADelUp) {
  for (const char* more :
       {R"(,"prevResult":7)", R"(,"prevResult":"x")", R"(,"prevResult":{"cniVersion":"9"})",
        R"(,"prevResult":{"dns":{},"ips":7})", R"(,"mtu":"x","timeoutSeconds":-1,"dns":7)",
        R"(,"runtimeConfig":7,"args":7)", R"(,"socket":7)", R"(,"socket":"relative")",
        R"(,"ingressRate":-1,"cni.dev/valid-attachments":7)"}) {
    const Outcome outcome = Configure(With(more, "0.3.1"), Verb::kDel);
    EXPECT_FALSE(outcome.error) << more;
    EXPECT_EQ(outcome.request.socket, "/run/spoke/cni.sock");
  }
  EXPECT_EQ(Configure(With(R"(,"socket":"/x")"), Verb::kDel).request.socket, "/x");
}

// Covers B7.
TEST(ReadConfig, DnsOfTheConfigurationComesBeforeTheRuntimesAndTheChains) {
  const std::string prev = R"(,"prevResult":{"dns":{"nameservers":["10.0.0.3"]}})";
  const std::string runtime =
      R"(,"runtimeConfig":{"dns":{"Servers":["10.0.0.2"],"Searches":["b"],"Options":null}})";
  const std::string own = R"(,"dns":{"nameservers":["10.0.0.1"],"domain":"c"})";
  const auto dns = [](const std::string& more) { return Configure(With(more)).request.dns; };
  EXPECT_EQ(dns(""), "{}");
  EXPECT_EQ(dns(prev), R"({"nameservers":["10.0.0.3"]})");
  EXPECT_EQ(dns(prev + runtime), R"({"nameservers":["10.0.0.2"],"search":["b"]})");
  EXPECT_EQ(dns(prev + runtime + own), R"({"nameservers":["10.0.0.1"],"domain":"c"})");
  EXPECT_EQ(dns(prev + R"(,"dns":{})"), R"({"nameservers":["10.0.0.3"]})");
  EXPECT_EQ(dns(prev + R"(,"dns":{"nameservers":[]})"), R"({"nameservers":[]})");
  EXPECT_EQ(dns(prev + R"(,"dns":{"nameservers":null,"x":1})"), R"({"nameservers":["10.0.0.3"]})");
}

// Covers D3.
TEST(ReadConfig, ACheckNeedsAPrevResult) {
  EXPECT_EQ(Configure(With(""), Verb::kCheck).code(), kInvalidConfig);
  EXPECT_EQ(Configure(With(R"(,"prevResult":null)"), Verb::kCheck).code(), kInvalidConfig);
  EXPECT_EQ(Configure(With(R"(,"prevResult":"x")"), Verb::kCheck).code(), kDecodingFailure);
  EXPECT_EQ(Configure(With(R"(,"prevResult":{"interfaces":[{"name":"eth0","sandbox":"/x"}]})"),
                      Verb::kCheck)
                .code(),
            0U);
}

// Covers E2, E3.
TEST(ReadConfig, AGcSaysWhatIsInUseUnderEitherName) {
  const auto valid = [](const std::string& more) {
    const Outcome outcome = Configure(With(more), Verb::kGc);
    EXPECT_FALSE(outcome.error) << more;
    return outcome.request.valid;
  };
  using Refs = std::vector<AttachmentRef>;
  EXPECT_EQ(valid(""), std::nullopt);
  EXPECT_EQ(valid(R"(,"cni.dev/valid-attachments":[])"), Refs());
  EXPECT_EQ(valid(R"(,"cni.dev/valid-attachments":null)"), Refs());
  EXPECT_EQ(valid(R"(,"cni.dev/attachments":[{"containerID":"b","ifname":"eth0"}])"),
            (Refs{{"b", "eth0"}}));
  EXPECT_EQ(valid(R"(,"cni.dev/attachments":[],
                      "cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0","x":1},
                                                   {"containerID":"a","ifname":"net1"}])"),
            (Refs{{"a", "eth0"}, {"a", "net1"}}));
}

TEST(ReadConfig, AListThatIsMalformedIsNoList) {
  for (const char* list :
       {"7", "{}", "\"x\"", "[7]", "[null]", R"([{"containerID":"a"}])", R"([{"ifname":"eth0"}])",
        R"([{"containerID":7,"ifname":"eth0"}])", R"([{"containerID":"a","ifname":"eth0"},[]])"}) {
    const Outcome outcome =
        Configure(With(std::string(",\"cni.dev/valid-attachments\":") + list), Verb::kGc);
    EXPECT_EQ(outcome.code(), kInvalidConfig) << list;
    EXPECT_EQ(outcome.request.valid, std::nullopt);
  }
}

}  // namespace
}  // namespace spoke::cni
