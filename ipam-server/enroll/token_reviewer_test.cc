#include "ipam-server/enroll/kubernetes_token_reviewer.h"
#include "ipam-server/enroll/pausing_reviewer.h"
#include "ipam-server/enroll/testing/fake_api_server.h"
#include "ipam-server/enroll/testing/token_reviewer_contract.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

class InMemory final : public ReviewedCluster {
 public:
  TokenReviewer& reviewer() override { return fake_; }
  FakeTokenReviewer& cluster() override { return fake_; }
  void GoDown() override { fake_.FailWith(absl::UnavailableError("down")); }
  void Forbid() override { fake_.FailWith(absl::FailedPreconditionError("forbidden")); }

 private:
  FakeTokenReviewer fake_;
};

class Pausing final : public ReviewedCluster {
 public:
  TokenReviewer& reviewer() override { return reviewer_; }
  FakeTokenReviewer& cluster() override { return fake_; }
  void GoDown() override { fake_.FailWith(absl::UnavailableError("down")); }
  void Forbid() override { fake_.FailWith(absl::FailedPreconditionError("forbidden")); }

 private:
  FakeTokenReviewer fake_;
  const os::SimClock uptime_;
  PausingReviewer reviewer_{fake_, uptime_};
};

class OverHttp final : public ReviewedCluster {
 public:
  TokenReviewer& reviewer() override { return reviewer_; }
  FakeTokenReviewer& cluster() override { return server_.cluster(); }
  void GoDown() override { server_.FailWith(503); }
  void Forbid() override { server_.FailWith(403); }

 private:
  FakeApiServer server_;
  const kubernetes::Api api_{server_.access()};
  KubernetesTokenReviewer reviewer_{api_};
};

INSTANTIATE_TEST_SUITE_P(Fake, TokenReviewerContract,
                         testing::Values([] { return std::make_unique<InMemory>(); }));
INSTANTIATE_TEST_SUITE_P(Pausing, TokenReviewerContract,
                         testing::Values([] { return std::make_unique<Pausing>(); }));
INSTANTIATE_TEST_SUITE_P(Kubernetes, TokenReviewerContract,
                         testing::Values([] { return std::make_unique<OverHttp>(); }));

// An API server that takes all its time before it does not answer.
class SilentReviewer final : public TokenReviewer {
 public:
  explicit SilentReviewer(os::SimClock& uptime) : uptime_(uptime) {}
  absl::StatusOr<TokenFacts> Review(const std::string&, const std::string&) override {
    return Wait();
  }
  absl::StatusOr<PodFacts> ReadPod(const std::string&, const std::string&) override {
    return Wait();
  }
  absl::StatusOr<NodeFacts> ReadNode(const std::string&) override { return Wait(); }
  int asked() const { return asked_; }

 private:
  absl::Status Wait() {
    ++asked_;
    uptime_.Advance(kubernetes::Api::kPatience);
    return absl::DeadlineExceededError("no answer");
  }

  os::SimClock& uptime_;
  int asked_ = 0;
};

TEST(PausingReviewer, AnOutageHoldsOneUpAndNotAllWhoShowTokens) {
  os::SimClock uptime;
  SilentReviewer silent(uptime);
  PausingReviewer reviewer(silent, uptime);
  EXPECT_TRUE(absl::IsDeadlineExceeded(reviewer.Review("junk", "a").status()));
  const absl::Time before = uptime.Now();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(reviewer.Review("junk", "a").status()));
    EXPECT_TRUE(absl::IsUnavailable(reviewer.ReadNode("node-1").status()));
  }
  EXPECT_EQ(uptime.Now(), before) << "nobody waits";
  EXPECT_EQ(silent.asked(), 1);
  uptime.Advance(ReviewPause::kPause);
  EXPECT_TRUE(absl::IsDeadlineExceeded(reviewer.Review("junk", "a").status()));
  EXPECT_EQ(silent.asked(), 2);
}

TEST(KubernetesApi, ReadsItsTokenForEachCall) {
  FakeApiServer server;
  const kubernetes::Api api(server.access());
  KubernetesTokenReviewer reviewer(api);
  EXPECT_TRUE(reviewer.Review("a", "b").ok());
  server.SetToken("an old one");
  const auto refused = reviewer.Review("a", "b");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("review a token: the API server answers 401: Unauthorized"));
  server.SetToken(FakeApiServer::kOwnToken);
  EXPECT_TRUE(reviewer.Review("a", "b").ok());
  kubernetes::ClusterAccess access = server.access();
  access.token_file = "/nowhere/token";
  EXPECT_TRUE(absl::IsFailedPrecondition(kubernetes::Api(access).Call("GET", "/version").status()));
}

TEST(KubernetesApi, SaysThatNobodyAnswers) {
  kubernetes::ClusterAccess access;
  {
    const FakeApiServer server;
    access = server.access();
  }
  const testing_support::TempDir dir;
  access.token_file = dir.File("token");
  ASSERT_TRUE(os::WriteFileAtomic(access.token_file, "t", os::Durability::kVisible).ok());
  const auto none = kubernetes::Api(access).Call("GET", "/version");
  EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("the cluster's API server"));
}

TEST(KubernetesApi, AnAnswerThatIsNoneIsNotTheAskersMistake) {
  FakeApiServer server;
  const kubernetes::Api api(server.access());
  KubernetesTokenReviewer reviewer(api);
  server.FailWith(200, "<html>a proxy's page with the token secret-1</html>");
  const auto review = reviewer.Review("secret-1", "b");
  EXPECT_TRUE(absl::IsInternal(review.status())) << review.status();
  EXPECT_THAT(std::string(review.status().message()), testing::Not(HasSubstr("secret-1")));
  server.FailWith(418, "teapot");
  EXPECT_TRUE(absl::IsInternal(reviewer.ReadPod("a", "b").status()));
}

}  // namespace
}  // namespace spoke::ipam
