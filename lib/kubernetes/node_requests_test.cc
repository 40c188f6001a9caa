#include "lib/kubernetes/node_requests.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::kubernetes {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json NodeWith(const std::vector<Taint>& taints) {
  json node = {{"metadata", {{"resourceVersion", "7"}}}, {"spec", json::object()}};
  for (const Taint& taint : taints) {
    node["spec"]["taints"].push_back({{"key", taint.key}, {"effect", taint.effect}});
  }
  return node;
}

std::vector<std::string> KeysOf(const json& node) {
  std::vector<std::string> keys;
  for (const json& taint : node["spec"].value("taints", json::array()))
    keys.push_back(taint["key"]);
  return keys;
}

struct Case {
  std::string name;
  std::vector<std::string> taints;
  std::vector<std::string> remove;
  std::vector<std::string> add;
  std::vector<std::string> want;
};

class TaintPatchTest : public testing::TestWithParam<Case> {
 protected:
  static std::vector<Taint> TaintsOf(const std::vector<std::string>& keys) {
    std::vector<Taint> taints;
    for (const std::string& key : keys) taints.push_back({.key = key, .effect = "NoSchedule"});
    return taints;
  }
};

TEST_P(TaintPatchTest, ChangesTheseAndNoOthers) {
  const Case& c = GetParam();
  const Node node{.name = "n", .resource_version = "7", .taints = TaintsOf(c.taints)};
  const http::Request request = TaintPatch(node, c.remove, TaintsOf(c.add));
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.url, "/api/v1/nodes/n");
  EXPECT_EQ(request.headers.Find("Content-Type"), "application/json-patch+json");
  EXPECT_EQ(KeysOf(NodeWith(node.taints).patch(json::parse(request.body))), c.want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, TaintPatchTest,
    testing::Values(Case{"RemovesTheOnlyOne", {"a"}, {"a"}, {}, {}},
                    Case{"RemovesSeveral", {"a", "x", "b", "y"}, {"a", "b"}, {}, {"x", "y"}},
                    Case{"AddsTheFirst", {}, {}, {"a"}, {"a"}},
                    Case{"AddsAnother", {"x"}, {}, {"a", "b"}, {"x", "a", "b"}},
                    Case{"DoesBoth", {"x", "a"}, {"a"}, {"b"}, {"x", "b"}}),
    [](const auto& test) { return test.param.name; });

TEST(TaintPatch, IsRefusedOnceTheTaintsAreOthers) {
  const Node node{.name = "n", .resource_version = "7", .taints = {{"a", "", "NoSchedule"}}};
  const json patch = json::parse(TaintPatch(node, {"a"}, {}).body);
  json moved = NodeWith({{"x", "", "NoSchedule"}, {"a", "", "NoSchedule"}});
  EXPECT_ANY_THROW(static_cast<void>(moved.patch(patch)));
  const Node bare{.name = "n", .resource_version = "6"};
  const json first = json::parse(TaintPatch(bare, {}, {{"a", "", "NoSchedule"}}).body);
  EXPECT_ANY_THROW(static_cast<void>(NodeWith({}).patch(first)))
      << "a list that came meanwhile would be lost";
}

TEST(NodeRequests, EscapeWhatTheyArePassed) {
  EXPECT_EQ(ListNodesRequest().url, "/api/v1/nodes?limit=250");
  EXPECT_EQ(ListNodesRequest("a=&b").url, "/api/v1/nodes?limit=250&continue=a%3D%26b");
  const http::Request watch = WatchNodesRequest("12 3");
  EXPECT_TRUE(watch.streamed);
  EXPECT_EQ(watch.url,
            "/api/v1/nodes?watch=true&allowWatchBookmarks=true&timeoutSeconds=240"
            "&resourceVersion=12%203");
}

TEST(ConditionPatch, SaysWhenItChanged) {
  const Condition condition{.type = "SpokeNetworkReady", .status = "True", .reason = "Ready"};
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  const http::Request request = ConditionPatch("n", {{condition, true}}, now);
  EXPECT_EQ(request.url, "/api/v1/nodes/n/status");
  EXPECT_EQ(request.headers.Find("Content-Type"), "application/strategic-merge-patch+json");
  const json patch = json::parse(request.body);
  const json& written = patch["status"]["conditions"][0];
  EXPECT_EQ(written["type"], "SpokeNetworkReady");
  EXPECT_EQ(written["lastTransitionTime"], "2023-11-14T22:13:20Z");
  EXPECT_THAT(ConditionPatch("n", {{condition, false}}, now).body,
              testing::Not(HasSubstr("lastTransitionTime")));
}

TEST(NodeEventRequest, IsAboutTheNode) {
  const json event =
      json::parse(NodeEventRequest({.name = "n", .uid = "u"}, "R", "m", absl::UnixEpoch()).body);
  EXPECT_EQ(event["involvedObject"]["name"], "n");
  EXPECT_EQ(event["involvedObject"]["uid"], "u");
  EXPECT_EQ(event["metadata"]["namespace"], "default");
}

}  // namespace
}  // namespace spoke::kubernetes
