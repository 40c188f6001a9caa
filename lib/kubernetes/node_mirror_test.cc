#include "lib/kubernetes/node_mirror.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/kubernetes/testing/fake_cluster.h"

namespace spoke::kubernetes {
namespace {

// A mirror whose calls a fake cluster answers at once, on a clock of its own.
class NodeMirrorTest : public testing::Test {
 protected:
  // Makes the next call as soon as there is one. Returns its URL.
  std::string Turn() {
    auto request = mirror_.Next(now_);
    if (!request) {
      now_ = mirror_.NextAt();
      request = mirror_.Next(now_);
    }
    request->headers.Add("Authorization", std::string("Bearer ") + FakeCluster::kToken);
    now_ += absl::Seconds(2);
    mirror_.OnEnd(cluster_.Answer(*request), now_);
    return request->url;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, node] : mirror_.nodes()) names.push_back(name);
    return names;
  }

  FakeCluster cluster_;
  NodeMirror mirror_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(NodeMirrorTest, ListsAllPagesAndThenWatches) {
  for (int i = 0; i < 600; ++i) cluster_.AddNode("node-" + std::to_string(i));
  Turn();
  Turn();
  EXPECT_FALSE(mirror_.complete());
  EXPECT_FALSE(mirror_.Trouble(now_).ok());
  Turn();
  EXPECT_TRUE(mirror_.complete());
  EXPECT_EQ(mirror_.nodes().size(), 600U);
  EXPECT_TRUE(mirror_.Trouble(now_).ok());
  cluster_.RemoveNode("node-7");
  cluster_.AddNode("new");
  EXPECT_THAT(Turn(), testing::HasSubstr("watch=true"));
  EXPECT_EQ(mirror_.nodes().size(), 600U);
  EXPECT_EQ(mirror_.nodes().count("node-7"), 0U);
  EXPECT_EQ(mirror_.nodes().count("new"), 1U);
  EXPECT_EQ(mirror_.counters().lists, 1U);
}

TEST_F(NodeMirrorTest, ListsAnewWhenItsVersionIsForgotten) {
  cluster_.AddNode("a");
  cluster_.AddNode("b");
  Turn();
  cluster_.RemoveNode("a");
  cluster_.Forget();
  Turn();
  EXPECT_TRUE(absl::IsOutOfRange(mirror_.Trouble(now_))) << mirror_.Trouble(now_);
  EXPECT_THAT(Names(), testing::ElementsAre("a", "b")) << "what is known stays until the list";
  EXPECT_THAT(Turn(), testing::HasSubstr("limit="));
  EXPECT_THAT(Names(), testing::ElementsAre("b"));
  EXPECT_TRUE(mirror_.Trouble(now_).ok());
  EXPECT_EQ(mirror_.counters().forgotten, 1U);
}

TEST_F(NodeMirrorTest, ListsAnewWhenThePageIsForgotten) {
  for (int i = 0; i < 300; ++i) cluster_.AddNode("node-" + std::to_string(i));
  Turn();
  cluster_.Forget();
  Turn();
  EXPECT_THAT(Turn(), testing::Not(testing::HasSubstr("continue=")));
  Turn();
  EXPECT_EQ(mirror_.nodes().size(), 300U);
}

TEST_F(NodeMirrorTest, WaitsForAsLongAsItIsAsked) {
  const auto request = mirror_.Next(now_);
  ASSERT_TRUE(request);
  EXPECT_FALSE(mirror_.Next(now_)) << "one at a time";
  mirror_.OnEnd(http::Response{.status = 429, .headers = {{"Retry-After", "40"}}}, now_);
  EXPECT_TRUE(absl::IsUnavailable(mirror_.Trouble(now_)));
  EXPECT_FALSE(mirror_.Next(now_ + absl::Seconds(39)));
  EXPECT_TRUE(mirror_.Next(now_ + absl::Seconds(40)));
}

TEST_F(NodeMirrorTest, BacksOffWhenItIsRefused) {
  cluster_.AddNode("a");
  Turn();
  cluster_.FailWith(403);
  const absl::Time begin = now_;
  for (int i = 0; i < 10; ++i) Turn();
  EXPECT_GT(now_ - begin, absl::Seconds(60));
  EXPECT_TRUE(absl::IsFailedPrecondition(mirror_.Trouble(now_)));
  EXPECT_THAT(Names(), testing::ElementsAre("a"));
  cluster_.FailWith(0);
  EXPECT_THAT(Turn(), testing::HasSubstr("watch=true")) << "where it was";
  EXPECT_TRUE(mirror_.Trouble(now_).ok());
}

TEST_F(NodeMirrorTest, TakesAWatchInPartsOfAnyLength) {
  cluster_.AddNode("a");
  Turn();
  cluster_.AddNode("b");
  cluster_.AddNode("c");
  const std::string lines = cluster_.EventsAfter(101).first;
  ASSERT_TRUE(mirror_.Next(now_));
  for (const char byte : lines) ASSERT_TRUE(mirror_.OnPart(std::string_view(&byte, 1), now_));
  EXPECT_THAT(Names(), testing::ElementsAre("a", "b", "c"));
  EXPECT_FALSE(mirror_.OnPart("{\"type\":\"?\"}\n", now_));
  EXPECT_FALSE(mirror_.Trouble(now_).ok());
  EXPECT_FALSE(mirror_.OnPart("{}\n", now_)) << "nobody listens to it any more";
  EXPECT_THAT(Turn(), testing::HasSubstr("limit="));
}

TEST_F(NodeMirrorTest, ALineThatDoesNotEndIsGivenUp) {
  Turn();
  ASSERT_TRUE(mirror_.Next(now_));
  const std::string part(size_t{1} << 20U, 'x');
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(mirror_.OnPart(part, now_));
  EXPECT_FALSE(mirror_.OnPart(part, now_));
}

TEST_F(NodeMirrorTest, AnAnswerIsNotUndoneByWhatIsOlder) {
  cluster_.AddNode("a");
  Turn();
  Node newer = mirror_.nodes().at("a");
  newer.resource_version = "900";
  newer.taints.push_back({.key = "k"});
  mirror_.Take(newer);
  cluster_.Change("a", [](auto& node) { node["status"]["x"] = 1; });
  Turn();
  EXPECT_EQ(mirror_.nodes().at("a"), newer);
  newer.name = "gone";
  mirror_.Take(newer);
  EXPECT_EQ(mirror_.nodes().count("gone"), 0U);
}

TEST_F(NodeMirrorTest, SilenceIsTrouble) {
  Turn();
  EXPECT_TRUE(mirror_.Trouble(now_).ok());
  EXPECT_TRUE(
      absl::IsUnavailable(mirror_.Trouble(now_ + NodeMirror::kLongestSilence + absl::Seconds(1))));
}

}  // namespace
}  // namespace spoke::kubernetes
