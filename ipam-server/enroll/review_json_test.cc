#include "ipam-server/enroll/review_json.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using nlohmann::json;

// The answer of kube-apiserver 1.28.
constexpr const char* kReview = R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1",
"metadata":{"creationTimestamp":null},"spec":{"token":"secret-1","audiences":["spoke-ipam-server"]},
"status":{"authenticated":true,"user":{"username":"system:serviceaccount:spoke-system:spoke-netagent",
"uid":"4f1c","groups":["system:serviceaccounts","system:authenticated"],"extra":{
"authentication.kubernetes.io/pod-name":["spoke-netagent-x7k2p"],
"authentication.kubernetes.io/pod-uid":["0c1d"]}},"audiences":["spoke-ipam-server"]}})";

constexpr const char* kPod = R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"agent-1",
"namespace":"spoke-system","uid":"0c1d","labels":{"a":"b"}},"spec":{"nodeName":"node-1",
"serviceAccountName":"spoke-netagent","containers":[{"name":"agent"}]},"status":{"phase":"Running"}})";

constexpr const char* kNode = R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"node-1",
"uid":"7a","labels":{"topology.kubernetes.io/zone":"eastus-1","agentpool":"gpu"}},"spec":{
"providerID":"azure:///subscriptions/s/resourceGroups/mc_(a)/providers/Microsoft.Compute/virtualMachineScaleSets/gpu/virtualMachines/7",
"podCIDR":"10.0.0.0/24"},"status":{}})";

TEST(ReviewJson, AsksForOneAudience) {
  const json request = json::parse(TokenReviewRequest("a\"b", "spoke-ipam-server"));
  EXPECT_EQ(request, json::parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview",
      "spec":{"token":"a\"b","audiences":["spoke-ipam-server"]}})"));
}

TEST(ReviewJson, ReadsWhatTheApiServerSays) {
  const auto facts = ParseTokenReview(kReview);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(*facts, (TokenFacts{.authenticated = true,
                                .user = "system:serviceaccount:spoke-system:spoke-netagent",
                                .audiences = {"spoke-ipam-server"},
                                .pod_name = "spoke-netagent-x7k2p",
                                .pod_uid = "0c1d",
                                .groups = {"system:serviceaccounts", "system:authenticated"}}));
  const auto refused = ParseTokenReview(
      R"({"kind":"TokenReview","status":{"user":{},"error":"[invalid bearer token]"}})");
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(*refused, TokenFacts{.error = "[invalid bearer token]"});
  const auto pod = ParsePod(kPod);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(*pod, (PodFacts{.k8s_namespace = "spoke-system",
                            .name = "agent-1",
                            .uid = "0c1d",
                            .node_name = "node-1",
                            .service_account = "spoke-netagent"}));
}

TEST(ReviewJson, ReadsWhatANodeIs) {
  const auto node = ParseNode(kNode);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->name, "node-1");
  EXPECT_EQ(node->provider_id,
            "azure:///subscriptions/s/resourceGroups/mc_(a)/providers/Microsoft.Compute/"
            "virtualMachineScaleSets/gpu/virtualMachines/7");
  EXPECT_EQ(node->labels, (std::map<std::string, std::string>{
                              {"agentpool", "gpu"}, {"topology.kubernetes.io/zone", "eastus-1"}}));
  EXPECT_EQ(ParseNode(R"({"kind":"Node","metadata":{"name":"n"},"spec":{}})").value(),
            NodeFacts{.name = "n"});
}

// Returns `text` with the value at `pointer` replaced.
std::string With(const char* text, const char* pointer, const json& value) {
  json object = json::parse(text);
  object[json::json_pointer(pointer)] = value;
  return object.dump();
}

TEST(ReviewJson, RefusesWhatIsNotAsItsApiHasIt) {
  const char* extra = "/status/user/extra/authentication.kubernetes.io~1pod-name";
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("secret-1"), With(kReview, "/kind", "Status"),
        With(kReview, "/status", nullptr), With(kReview, "/status", 1),
        With(kReview, "/status/authenticated", "true"), With(kReview, "/status/user", nullptr),
        With(kReview, "/status/user/username", 1), With(kReview, "/status/audiences", "all"),
        With(kReview, "/status/audiences", {1}), With(kReview, "/status/user/extra", {1}),
        With(kReview, extra, "a"), With(kReview, extra, {"a", "b"}),
        With(kReview, "/status/user/username", std::string(5000, 'a')),
        With(kReview, "/status/error", json::object())}) {
    const auto facts = ParseTokenReview(text);
    EXPECT_TRUE(absl::IsInvalidArgument(facts.status())) << text;
    EXPECT_THAT(std::string(facts.status().message()), testing::Not(testing::HasSubstr("secret")));
  }
  for (const std::string& text :
       {std::string("{}"), With(kPod, "/kind", "PodList"), With(kPod, "/metadata", nullptr),
        With(kPod, "/metadata/uid", ""), With(kPod, "/metadata/name", 1), With(kPod, "/spec", {1}),
        With(kPod, "/spec/nodeName", {"node-1"}), With(kPod, "/spec/serviceAccountName", true)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParsePod(text).status())) << text;
  }
  for (const std::string& text :
       {std::string("{}"), With(kNode, "/kind", "NodeList"), With(kNode, "/metadata/name", ""),
        With(kNode, "/spec", {1}), With(kNode, "/spec/providerID", 7),
        With(kNode, "/spec/providerID", "no scheme"),
        With(kNode, "/spec/providerID", "azure:///a?b"),
        With(kNode, "/spec/providerID", "spoke-node://node-2"),
        With(kNode, "/metadata/labels", {"a"}), With(kNode, "/metadata/labels/agentpool", 1),
        With(kNode, "/metadata/labels/agentpool", "a&role=nat"),
        With(kNode, "/metadata/labels", json{{"a=b", "c"}}),
        With(kNode, "/metadata/labels", json{{"a", std::string(kMaxLabelsBytes, 'v')}})}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseNode(text).status())) << text.substr(0, 400);
  }
}

}  // namespace
}  // namespace spoke::ipam
