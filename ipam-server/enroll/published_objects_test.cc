#include "ipam-server/enroll/published_objects.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/enroll/testing/fake_api_server.h"

namespace spoke::ipam {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kConfigMap = "/api/v1/namespaces/spoke-system/configmaps/spoke-ca";
constexpr const char* kSecret = "/api/v1/namespaces/spoke-system/secrets/spoke-operator";
constexpr const char* kTokenSecret = "/api/v1/namespaces/spoke-system/secrets/spoke-metrics";

TEST(PublishedObjects, AreCreatedOnceAndReplacedWhenTheyDiffer) {
  FakeApiServer server;
  const kubernetes::Api api(server.access());
  PublishedFiles files{"authority", "certificate", "key", "token"};
  EXPECT_TRUE(Publish(api, "spoke-system", files).value());
  EXPECT_EQ(server.Object(kConfigMap)["data"], (nlohmann::json{{"ca.pem", "authority"}}));
  EXPECT_EQ(server.Object(kSecret)["type"], "kubernetes.io/tls");
  EXPECT_EQ(server.Object(kSecret)["data"]["tls.crt"], "Y2VydGlmaWNhdGU=");
  EXPECT_EQ(server.Object(kSecret)["data"]["tls.key"], "a2V5");
  EXPECT_EQ(server.Object(kSecret)["data"]["ca.crt"], "YXV0aG9yaXR5");
  EXPECT_EQ(server.Object(kTokenSecret)["data"], (nlohmann::json{{"token", "dG9rZW4="}}));

  EXPECT_FALSE(Publish(api, "spoke-system", files).value());
  EXPECT_THAT(server.calls(), Not(Contains(StartsWith("PUT"))));

  nlohmann::json labelled = server.Object(kConfigMap);
  labelled["metadata"]["labels"]["team"] = "network";
  labelled["data"]["ca.pem"] = "somebody else's";
  server.SetObject(kConfigMap, labelled);
  files.operator_certificate = "renewed";
  EXPECT_TRUE(Publish(api, "spoke-system", files).value());
  EXPECT_EQ(server.Object(kConfigMap)["data"]["ca.pem"], "authority");
  EXPECT_EQ(server.Object(kConfigMap)["metadata"]["labels"]["team"], "network");
  EXPECT_EQ(server.Object(kSecret)["data"]["tls.crt"], "cmVuZXdlZA==");
}

TEST(PublishedObjects, OperatorsThatNobodyServesGetNoSecret) {
  FakeApiServer server;
  const kubernetes::Api api(server.access());
  const PublishedFiles files{"authority", "", "", "token"};
  EXPECT_TRUE(Publish(api, "spoke-system", files).value());
  EXPECT_TRUE(server.Object(kSecret).is_null());
  EXPECT_FALSE(HasOperatorSecret(api, "spoke-system").value());
  // One from before is found, and left alone: it may be somebody else's by now.
  server.SetObject(kSecret, {{"kind", "Secret"}, {"data", {{"tls.key", "a2V5"}}}});
  EXPECT_FALSE(Publish(api, "spoke-system", files).value());
  EXPECT_TRUE(HasOperatorSecret(api, "spoke-system").value());
  EXPECT_EQ(server.Object(kSecret)["data"]["tls.key"], "a2V5");
}

TEST(PublishedObjects, TheTokenForMetricsIsReadBackUnlessNoEndpointTakesIt) {
  FakeApiServer server;
  const kubernetes::Api api(server.access());
  EXPECT_EQ(PublishedMetricsToken(api, "spoke-system").value(), "");
  const std::string token = "0123456789abcdef";
  ASSERT_TRUE(Publish(api, "spoke-system", {"authority", "", "", token}).ok());
  EXPECT_EQ(PublishedMetricsToken(api, "spoke-system").value(), token);
  const auto as_written = [&](const std::string& text) {
    server.SetObject(kTokenSecret, {{"data", {{"token", absl::Base64Escape(text)}}}});
    return PublishedMetricsToken(api, "spoke-system").value();
  };
  EXPECT_EQ(as_written(token + "\n"), token);
  EXPECT_EQ(as_written("short"), "");
  EXPECT_EQ(as_written(token + "\n" + token), "");
  for (const nlohmann::json& other :
       {nlohmann::json{{"kind", "Secret"}}, nlohmann::json{{"data", 7}},
        nlohmann::json{{"data", {{"token", "not base64!"}}}}}) {
    server.SetObject(kTokenSecret, other);
    EXPECT_EQ(PublishedMetricsToken(api, "spoke-system").value(), "") << other;
  }
  server.FailWith(403);
  EXPECT_TRUE(absl::IsFailedPrecondition(PublishedMetricsToken(api, "spoke-system").status()));
}

TEST(PublishedObjects, SayWhichRightIsMissing) {
  FakeApiServer server;
  const kubernetes::Api api(server.access());
  server.FailWith(403, R"({"kind":"Status","message":"configmaps \"spoke-ca\" is forbidden"})");
  const auto refused = Publish(api, "spoke-system", {"a", "b", "c", "d"});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(
      std::string(refused.status().message()),
      HasSubstr("read spoke-metrics: the API server answers 403: configmaps \"spoke-ca\" is"));
  EXPECT_THAT(server.calls(), Contains(std::string("GET ") + kSecret));
  server.FailWith(200, "not json: a-key");
  const auto strange = Publish(api, "spoke-system", {"a", "b", "c", "d"});
  EXPECT_TRUE(absl::IsInternal(strange.status()));
  EXPECT_THAT(std::string(strange.status().message()), Not(HasSubstr("a-key")));
  server.FailWith(0);
  EXPECT_TRUE(Publish(api, "spoke-system", {"a", "b", "c", "d"}).value());
}

}  // namespace
}  // namespace spoke::ipam
