#include "lib/kubernetes/node_client.h"

#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/http/curl_transport.h"
#include "lib/http/testing/fake_transport.h"
#include "lib/kubernetes/node_requests.h"
#include "lib/kubernetes/testing/fake_cluster_server.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::kubernetes {
namespace {

// A cluster, and the way to it.
class World {
 public:
  virtual ~World() = default;
  virtual http::Transport& transport() = 0;
  virtual std::string url() = 0;

  FakeCluster cluster;
};

class InMemory final : public World {
 public:
  http::Transport& transport() override { return transport_; }
  std::string url() override { return "http://cluster"; }

 private:
  http::FakeTransport transport_{
      [this](const http::Request& request) { return cluster.Answer(request); }};
};

class OverHttp final : public World {
 public:
  http::Transport& transport() override { return transport_; }
  std::string url() override { return server_.url(); }

 private:
  FakeClusterServer server_{cluster, {}};
  http::CurlTransport transport_{http::CurlOptions{}};
};

using MakeWorld = std::function<std::unique_ptr<World>()>;

// What a client does with an API server in memory, and with one over HTTP.
class NodeClientContract : public testing::TestWithParam<MakeWorld> {
 protected:
  NodeClientContract() { SetToken(FakeCluster::kToken); }

  void SetToken(const std::string& token) {
    ASSERT_TRUE(os::WriteFileAtomic(dir_.File("token"), token, os::Durability::kVisible).ok());
  }
  // Moves on until `done`, or for as long as such a thing can take.
  bool Await(const std::function<bool()>& done) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!done()) {
      if (absl::Now() > deadline) return false;
      for (auto& end : client_.Step(absl::Milliseconds(20))) ends_.push_back(std::move(end));
      clock_.Advance(absl::Milliseconds(200));
    }
    return true;
  }
  absl::Status WriteAndAwait(const std::string& node, http::Request request) {
    ends_.clear();
    client_.Write(node, std::move(request));
    EXPECT_TRUE(Await([&] { return !ends_.empty(); }));
    return ends_.empty() ? absl::UnknownError("no end") : ends_.front().status;
  }
  const Node& Known(const std::string& name) { return client_.mirror().nodes().at(name); }

  const testing_support::TempDir dir_;
  const std::unique_ptr<World> world_ = GetParam()();
  FakeCluster& cluster_ = world_->cluster;
  os::SimClock clock_;
  NodeClient client_{
      {.access = {.url = world_->url(), .token_file = dir_.File("token")}, .max_writes = 2},
      world_->transport(),
      clock_};
  std::vector<NodeClient::Written> ends_;
};

TEST_P(NodeClientContract, SeesWhatOthersDo) {
  cluster_.AddNode("a");
  ASSERT_TRUE(Await([&] { return client_.mirror().complete(); }));
  cluster_.AddNode("b");
  ASSERT_TRUE(Await([&] { return client_.mirror().nodes().size() == 2; }));
  cluster_.RemoveNode("a");
  ASSERT_TRUE(Await([&] { return client_.mirror().nodes().size() == 1; }));
}

TEST_P(NodeClientContract, WritesAndKnowsAtOnceWhatCameOfIt) {
  cluster_.AddNode("a", {{{"key", "other"}, {"effect", "NoSchedule"}},
                         {{"key", "mine"}, {"effect", "NoSchedule"}}});
  ASSERT_TRUE(Await([&] { return client_.mirror().complete(); }));
  EXPECT_TRUE(WriteAndAwait("a", TaintPatch(Known("a"), {"mine"}, {})).ok());
  EXPECT_EQ(Known("a").FindTaint("mine"), nullptr);
  EXPECT_FALSE(cluster_.HasTaint("a", "mine"));
  EXPECT_TRUE(cluster_.HasTaint("a", "other"));
  const Condition condition{.type = "SpokeNetworkReady", .status = "True", .reason = "R"};
  EXPECT_TRUE(WriteAndAwait("a", ConditionPatch("a", {{condition, true}}, clock_.Now())).ok());
  EXPECT_EQ(cluster_.ConditionOf("a", "SpokeNetworkReady")["status"], "True");
  EXPECT_EQ(cluster_.ConditionOf("a", "Ready")["status"], "True");
  EXPECT_TRUE(WriteAndAwait("a", NodeEventRequest(Known("a"), "R", "m", clock_.Now())).ok());
  EXPECT_EQ(cluster_.events_created().size(), 1U);
}

TEST_P(NodeClientContract, APatchOfAnOldViewIsToBeDecidedAgain) {
  cluster_.AddNode("a", {{{"key", "mine"}, {"effect", "NoSchedule"}}});
  ASSERT_TRUE(Await([&] { return client_.mirror().complete(); }));
  http::Request patch = TaintPatch(Known("a"), {"mine"}, {});
  cluster_.Change("a", [](auto& node) { node["spec"].erase("taints"); });
  EXPECT_TRUE(absl::IsAborted(WriteAndAwait("a", patch)));
  Node gone = Known("a");
  gone.name = "gone";
  EXPECT_TRUE(absl::IsNotFound(WriteAndAwait("gone", TaintPatch(gone, {"mine"}, {}))));
}

TEST_P(NodeClientContract, WaitsWhenTheServerHasNoRoom) {
  cluster_.AddNode("a", {{{"key", "mine"}, {"effect", "NoSchedule"}}});
  ASSERT_TRUE(Await([&] { return client_.mirror().complete(); }));
  EXPECT_EQ(client_.room(), 2U);
  cluster_.FailNext(429, 1, "PATCH");
  EXPECT_TRUE(absl::IsUnavailable(WriteAndAwait("a", TaintPatch(Known("a"), {"mine"}, {}))));
  EXPECT_TRUE(ends_.front().throttled);
  EXPECT_EQ(client_.room(), 0U);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(client_.room(), 2U);
  EXPECT_TRUE(WriteAndAwait("a", TaintPatch(Known("a"), {"mine"}, {})).ok());
}

TEST_P(NodeClientContract, ShowsTheTokenThatKubeletRenewed) {
  cluster_.AddNode("a");
  cluster_.SetToken("renewed");
  ASSERT_TRUE(
      Await([&] { return absl::IsFailedPrecondition(client_.mirror().Trouble(clock_.Now())); }));
  SetToken("renewed");
  ASSERT_TRUE(Await([&] { return client_.mirror().complete(); }));
}

TEST_P(NodeClientContract, GoesOnAfterVersionsWereForgotten) {
  cluster_.AddNode("a");
  ASSERT_TRUE(Await([&] { return client_.mirror().complete(); }));
  cluster_.FailWith(503);
  cluster_.AddNode("b");
  cluster_.Forget();
  cluster_.FailWith(0);
  ASSERT_TRUE(Await([&] { return client_.mirror().nodes().size() == 2; }));
}

INSTANTIATE_TEST_SUITE_P(Fake, NodeClientContract,
                         testing::Values([] { return std::make_unique<InMemory>(); }));
INSTANTIATE_TEST_SUITE_P(Http, NodeClientContract,
                         testing::Values([] { return std::make_unique<OverHttp>(); }));

}  // namespace
}  // namespace spoke::kubernetes
