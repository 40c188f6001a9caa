#include "lib/kubernetes/node_objects.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::kubernetes {
namespace {

constexpr std::string_view kNode = R"({"kind":"Node","apiVersion":"v1",
  "metadata":{"name":"node-1","uid":"u","resourceVersion":"7","managedFields":[{"a":1}]},
  "spec":{"taints":[{"key":"a","effect":"NoSchedule"},
                    {"key":"b","value":"v","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]},
  "status":{"conditions":[{"type":"Ready","status":"True"},
                          {"type":"SpokeNetworkReady","status":"False","reason":"AgentAway",
                           "message":"m"}],"images":[{"names":["x"]}]}})";

TEST(ParseNode, KeepsTheFieldsThatAreUsed) {
  const auto node = ParseNode(kNode);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(*node, (Node{.name = "node-1",
                         .uid = "u",
                         .resource_version = "7",
                         .taints = {{.key = "a", .value = "", .effect = "NoSchedule"},
                                    {.key = "b", .value = "v", .effect = "NoExecute"}},
                         .conditions = {{.type = "SpokeNetworkReady",
                                         .status = "False",
                                         .reason = "AgentAway",
                                         .message = "m"}}}));
  EXPECT_EQ(node->FindTaint("b")->value, "v");
  EXPECT_EQ(node->FindTaint("c"), nullptr);
  EXPECT_NE(node->FindCondition("SpokeNetworkReady"), nullptr);
  EXPECT_EQ(node->FindCondition("Ready"), nullptr);
}

TEST(ParseNode, RefusesWhatIsNoNode) {
  std::string many =
      R"({"kind":"Node","metadata":{"name":"n","resourceVersion":"1"},"spec":{"taints":[{})";
  for (size_t i = 0; i < kMaxTaints; ++i) many += ",{}";
  many += "]}}";
  const std::string long_text(kMaxTextBytes + 1, 'x');
  for (
      const std::string& text :
      {std::string("<html>"), std::string("[]"), std::string(R"({"kind":"Pod"})"),
       std::string(R"({"kind":"Node"})"),
       std::string(R"({"kind":"Node","metadata":{"name":"a/../b","resourceVersion":"1"}})"),
       std::string(R"({"kind":"Node","metadata":{"name":"n"}})"),
       std::string(R"({"kind":"Node","metadata":{"name":7,"resourceVersion":"1"}})"),
       std::string(R"({"kind":"Node","metadata":{"name":"n","resourceVersion":"1"},"spec":[]})"),
       std::string(
           R"({"kind":"Node","metadata":{"name":"n","resourceVersion":"1"},"spec":{"taints":[1]}})"),
       R"({"kind":"Node","metadata":{"name":"n","resourceVersion":")" + long_text + "\"}}", many}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseNode(text).status())) << text;
  }
}

TEST(ParseNodeList, OneThatCannotBeReadHidesNoOther) {
  const auto page = ParseNodeList(R"({"kind":"NodeList","metadata":{"resourceVersion":"9",
      "continue":"c"},"items":[{"metadata":{"name":"a","resourceVersion":"1"}},
                               {"metadata":{"name":"B!","resourceVersion":"1"}},7]})");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->nodes.size(), 1U);
  EXPECT_EQ(page->nodes[0].name, "a");
  EXPECT_EQ(page->unreadable, 2U);
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->next, "c");
  EXPECT_FALSE(ParseNodeList(R"({"kind":"NodeList","metadata":{}})").ok());
  EXPECT_TRUE(ParseNodeList(R"({"kind":"NodeList","metadata":{"resourceVersion":"9"}})").ok());
  EXPECT_FALSE(
      ParseNodeList(R"({"kind":"NodeList","metadata":{"resourceVersion":"9"},"items":{}})").ok());
}

TEST(ParseWatchEvent, TellsWhatHappened) {
  const auto deleted = ParseWatchEvent(R"({"type":"DELETED","object":)" + std::string(kNode) + "}");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->kind, WatchEvent::Kind::kDeleted);
  EXPECT_EQ(deleted->node.name, "node-1");
  const auto bookmark = ParseWatchEvent(
      R"({"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"12"}}})");
  ASSERT_TRUE(bookmark.ok());
  EXPECT_EQ(bookmark->node.resource_version, "12");
  const auto error =
      ParseWatchEvent(R"({"type":"ERROR","object":{"code":410,"message":"too old"}})");
  ASSERT_TRUE(error.ok());
  EXPECT_EQ(error->code, 410);
  EXPECT_EQ(error->message, "too old");
  for (const char* line : {"{}", R"({"type":"BOOKMARK"})", R"({"type":"ADDED"})", "x",
                           R"({"type":"SOMETHING","object":{}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseWatchEvent(line).status())) << line;
  }
}

TEST(IsOlder, CountsAndDoesNotGuess) {
  EXPECT_TRUE(IsOlder("9", "10"));
  EXPECT_FALSE(IsOlder("10", "9"));
  EXPECT_FALSE(IsOlder("10", "10"));
  EXPECT_FALSE(IsOlder("a", "b"));
  EXPECT_FALSE(IsOlder("", "1"));
}

}  // namespace
}  // namespace spoke::kubernetes
