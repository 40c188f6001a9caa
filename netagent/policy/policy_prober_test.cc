#include "netagent/policy/policy_prober.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kLong = absl::Seconds(5);
constexpr absl::Duration kShort = absl::Milliseconds(100);

// A TCP socket of loopback's; it listens when `backlog` is not negative.
struct Port {
  explicit Port(int backlog) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&in), sizeof(in)), 0);
    socklen_t size = sizeof(in);
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&in), &size), 0);
    if (backlog >= 0) {
      EXPECT_EQ(::listen(fd.get(), backlog), 0);
    }
    target = {.address = ip::Address::V4(INADDR_LOOPBACK), .port = ntohs(in.sin_port)};
  }

  os::UniqueFd fd;
  node_api::ProbeTarget target;
};

node_api::ProbeOutcome OutcomeOf(const node_api::ProbeTarget& target,
                                 absl::Duration timeout = kLong) {
  const std::atomic<bool> stop = false;
  const auto results = ProbeAll({target}, timeout, stop);
  EXPECT_THAT(results, SizeIs(1));
  return results.at(0).outcome;
}

TEST(ProbeAll, TellsReachedFromRefusedAndSilent) {
  const Port open(8);
  const Port closed(-1);
  // One connection fills the queue; the kernel answers no further one.
  const Port full(0);
  EXPECT_EQ(OutcomeOf(full.target), node_api::ProbeOutcome::kReached);
  const std::atomic<bool> stop = false;
  const auto results = ProbeAll({open.target, closed.target, full.target}, kShort, stop);
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_EQ(results[0].outcome, node_api::ProbeOutcome::kReached);
  EXPECT_EQ(results[0].target, open.target);
  EXPECT_EQ(results[0].detail, "");
  EXPECT_LT(results[0].took, kShort);
  EXPECT_EQ(results[1].outcome, node_api::ProbeOutcome::kRefused);
  EXPECT_THAT(results[1].detail, HasSubstr("refused"));
  EXPECT_EQ(results[2].outcome, node_api::ProbeOutcome::kTimedOut);
  EXPECT_GE(results[2].took, kShort);
}

TEST(ProbeAll, SendsAnEcho) {
  // A process that lacks the privilege says that it has not tried.
  const auto want =
      ::geteuid() == 0 ? node_api::ProbeOutcome::kReached : node_api::ProbeOutcome::kNotTried;
  EXPECT_EQ(OutcomeOf({.address = ip::Address::V4(INADDR_LOOPBACK)}), want);
}

TEST(ProbeAll, EndsWhenItIsStopped) {
  const Port full(0);
  EXPECT_EQ(OutcomeOf(full.target), node_api::ProbeOutcome::kReached);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(ProbeAll({full.target}, absl::Minutes(1), stop).at(0).outcome,
            node_api::ProbeOutcome::kTimedOut);
}

TEST(ProbeAll, HasNothingToDoWithoutTargets) {
  const std::atomic<bool> stop = false;
  EXPECT_THAT(ProbeAll({}, kLong, stop), IsEmpty());
}

// A loop that runs what was posted when it is told to.
class Loop {
 public:
  void Post(std::function<void()> work) {
    absl::MutexLock lock(&mutex_);
    posted_.push_back(std::move(work));
  }
  void RunOne() {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !posted_.empty(); };
      if (!mutex_.AwaitWithTimeout(absl::Condition(&any), absl::Seconds(20))) return;
      work = std::move(posted_.front());
      posted_.erase(posted_.begin());
    }
    work();
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
};

TEST(PolicyProber, AnswersOneRequestAfterTheOtherAndRefusesTooMany) {
  const Port open(8);
  Loop loop;
  std::vector<node_api::ProbeAnswer> answers;
  PolicyProber prober([&](std::function<void()> work) { loop.Post(std::move(work)); },
                      [&](node_api::ProbeAnswer answer) { answers.push_back(std::move(answer)); });
  for (uint64_t id = 1; id <= PolicyProber::kMaxWaiting + 1; ++id) {
    prober.Probe({.id = id, .targets = {open.target}, .timeout = kLong});
  }
  ASSERT_THAT(answers, SizeIs(1));  // The one too many is answered at once.
  EXPECT_EQ(answers[0].id, PolicyProber::kMaxWaiting + 1);
  EXPECT_THAT(answers[0].error, HasSubstr("too many"));
  for (uint64_t id = 1; id <= PolicyProber::kMaxWaiting; ++id) {
    loop.RunOne();
    ASSERT_THAT(answers, SizeIs(id + 1));
    EXPECT_EQ(answers.back().id, id);
    EXPECT_EQ(answers.back().results.at(0).outcome, node_api::ProbeOutcome::kReached);
  }
}

TEST(PolicyProber, IsStoppedWithWhatIsUnderWay) {
  const Port full(0);
  EXPECT_EQ(OutcomeOf(full.target), node_api::ProbeOutcome::kReached);
  Loop loop;
  int answers = 0;
  {
    PolicyProber prober([&](std::function<void()> work) { loop.Post(std::move(work)); },
                        [&](const node_api::ProbeAnswer&) { ++answers; });
    prober.Probe({.id = 1, .targets = {full.target}, .timeout = absl::Minutes(1)});
  }
  EXPECT_EQ(answers, 0);
}

}  // namespace
}  // namespace spoke::netagent
