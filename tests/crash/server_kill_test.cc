// The server is killed again and again while a hundred simulated agents obtain, assign and give
// back addresses and an operator drains nodes: nothing that it acknowledged may be lost, and
// nothing be given to two.
//
// Agents complain of what they are told (tests/bench/swarm); after each kill the store, as it lies
// on the disk, is compared with what they know. Only that finds an assignment that was acknowledged
// and forgotten: agents say all they assign when they come back, and so hide it.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "tests/bench/swarm/swarm.h"
#include "tests/crash/drain_operator.h"
#include "tests/crash/server_under_test.h"
#include "tests/crash/stored_world.h"
#include "tests/support/random_seed.h"
#include "tests/support/temp_dir.h"

namespace spoke::crash {
namespace {

// For more of them: --gtest_repeat=N, which takes a new seed each time.
constexpr int kKills = 40;
constexpr uint32_t kAgents = 100;
constexpr size_t kAddresses = 12;
// The most pods of a node; it needs no more than the least it has.
constexpr uint64_t kMostPods = 8;
// The longest life of a server once as many agents are back as shall be.
constexpr uint64_t kLongestMs = 120;
constexpr absl::Duration kPatience = absl::Seconds(90);  // The patience of each wait.

// The pools have room for seventy addresses more than the nodes hold, and the cooldown is shorter
// than the time between two kills, so that what one gives up goes to another soon. Draining moves
// them; the limits of a node do not, whatever it uses.
constexpr std::string_view kSettings =
    "cloud: {static: {}}\n"
    "pools:\n"
    "  - {name: large, cidr: 10.60.0.0/22}\n"
    "  - {name: small, cidr: 10.60.8.0/24}\n"
    "node_addresses: {min: 12, batch: 4, spare: 0.5, max: 12}\n"
    "cooldown: 200ms\n";
constexpr uint64_t kUsable = (1024 - 5) + (256 - 5);
// The server counts from when it hears of it; clocks may differ by a little.
constexpr absl::Duration kWatchedCooldown = absl::Milliseconds(150);

// Tells whether somebody wants this program to end. The signals wait meanwhile, so that everything
// is cleaned up as at the end of any test.
class Interruption {
 public:
  Interruption() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~Interruption() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  bool Wanted() const {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
           sigismember(&pending, SIGHUP) == 1;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

class ServerKillTest : public testing::Test {
 protected:
  ServerKillTest() {
    // Debian's absl watches every lock for deadlocks, in a third of this program's time.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    swarm_ = std::make_unique<swarm::Swarm>(
        swarm::Swarm::Options{.target = {.servers = {server_.target()},
                                         .tls = {.insecure = true},
                                         .addresses = kAddresses},
                              .agents = kAgents,
                              .reporting = {.operations = 100, .window = 1},
                              // Agents come back soon, since a life is short.
                              .reconnect = {.after_session = absl::Milliseconds(50),
                                            .settled = absl::ZeroDuration(),
                                            .backoff = {.initial = absl::Milliseconds(20),
                                                        .max = absl::Milliseconds(80)}},
                              .cooldown = kWatchedCooldown,
                              .seed = random_.Between(0, UINT32_MAX)});
  }

  ~ServerKillTest() override {
    if (HasFailure()) fmt::print(stderr, "--- the server's warnings\n{}", server_.Warnings());
  }

  // Returns false, and the test has failed, when it takes too long or something else has gone
  // wrong.
  bool Await(std::string_view what, const std::function<bool()>& done) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (!HasFailure()) {
      if (done()) return true;
      const swarm::Ledger::Complaints complaints = swarm_->ledger().complaints();
      for (const std::string& text : complaints.first) ADD_FAILURE() << text;
      if (absl::Now() > deadline) {
        ADD_FAILURE() << what << ": not in time; " << swarm_->connected() << " agents connected, "
                      << swarm_->synced() << " synced";
      }
      if (interruption_.Wanted()) ADD_FAILURE() << what << ": interrupted";
      absl::SleepFor(absl::Milliseconds(2));
    }
    return false;
  }

  bool AwaitReady() {
    const absl::Time begin = absl::Now();
    const bool ready = Await("the server to be ready", [&] {
      const auto accepts = server_.IsReady();
      EXPECT_TRUE(accepts.ok()) << accepts.status();
      return accepts.value_or(false);
    });
    start_took_ = absl::Now() - begin;
    return ready;
  }

  bool AwaitSynced() {
    return Await("the agents to be synced", [&] { return swarm_->synced() == kAgents; });
  }

  bool AwaitAllNodes(std::string_view what, const std::function<bool(const swarm::SimNode&)>& is) {
    size_t first = 0;  // The first that is not.
    return Await(what, [&] {
      while (first < kAgents && swarm_->agent(first).WithNode(is)) ++first;
      return first == kAgents;
    });
  }

  void StartPods() {
    for (size_t i = 0; i < kAgents; ++i) {
      const size_t pods = random_.Between(1, kMostPods);
      swarm_->agent(i).WithNode([&](swarm::SimNode& node) {
        return node.StartPods(pods, swarm::SimNode::Patience::kWaits);
      });
    }
  }

  void StopPods() {
    for (size_t i = 0; i < kAgents; ++i) {
      swarm_->agent(i).WithNode([](swarm::SimNode& node) {
        node.StopPods();
        return true;
      });
    }
  }

  // Lets the server that has just been started live for a random while, and kills it.
  void LiveAndDie() {
    if (random_.OneIn(8)) {
      // The server is killed while it starts: it may not have recovered from the last crash yet.
      absl::SleepFor(start_took_ * random_.Fraction());
    } else {
      if (!AwaitReady()) return;
      swarm_->Release();
      // The kill is between the first hellos of the storm and long after it.
      const auto some = static_cast<uint32_t>(random_.Between(0, kAgents * 3 / 4));
      if (!Await("agents to come back", [&] { return swarm_->connected() >= some; })) return;
      absl::SleepFor(absl::Milliseconds(static_cast<int64_t>(random_.Between(0, kLongestMs))));
    }
    connected_at_kills_ += swarm_->connected();
    const absl::Status killed = server_.Kill();
    EXPECT_TRUE(killed.ok()) << killed;
    swarm_->Hold();
  }

  void CheckStore(Moment moment) {
    const auto copy = server_.CopyStore(directory_.File("copy"));
    ASSERT_TRUE(copy.ok()) << copy.status();
    const auto nodes = ReadStore(*copy);
    ASSERT_TRUE(nodes.ok()) << nodes.status();
    for (const std::string& text : FindDisagreements(*nodes, *swarm_, moment)) {
      ADD_FAILURE() << text;
    }
    for (const auto& [name, modes] : operator_->PossibleModes()) {
      const auto node = nodes->find(name);
      ASSERT_NE(node, nodes->end()) << name << " is forgotten";
      const std::string mode(NameOf(node->second.mode));
      EXPECT_TRUE(modes.contains(mode)) << name << " is stored as " << mode;
    }
    std::filesystem::remove_all(directory_.File("copy"));
  }

  nlohmann::json Ask(const std::vector<std::string>& words) {
    const auto answer = server_.Ask(words);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    EXPECT_EQ(answer->code, 0) << words.front() << ": " << answer->output;
    return nlohmann::json::parse(answer->output, nullptr, /*allow_exceptions=*/false);
  }

  template <typename Get>
  uint64_t SumOverNodes(const Get& get) {
    uint64_t sum = 0;
    for (size_t i = 0; i < kAgents; ++i) sum += swarm_->agent(i).WithNode(get);
    return sum;
  }

  void Begin() {
    ASSERT_TRUE(server_.Exec().ok());
    ASSERT_TRUE(AwaitReady());
    swarm_->Start();
    ASSERT_TRUE(AwaitSynced());
    StartPods();
    operator_ = std::make_unique<DrainOperator>(
        server_.admin(), kAgents, random_.Between(0, UINT32_MAX),
        [this](uint32_t node) { return swarm_->is_connected(node); });
  }

  // Waits until all nodes are in service and have what they should; every pod's last operation is
  // then acknowledged.
  void ComeToRest() {
    if (!AwaitReady()) return;
    swarm_->Release();
    operator_->Finish();
    if (!Await("the nodes to be in service", [&] { return operator_->finished(); })) return;
    EXPECT_EQ(operator_->refusal(), "");
    StopPods();
    // The server may or may not have heard of a node that it has agreed to give something up.
    const auto at_rest = [](const swarm::SimNode& node) {
      return node.settled() && node.usable() == kAddresses &&
             node.Count(swarm::SimNode::Use::kWithdrawn) == 0;
    };
    if (!AwaitAllNodes("the nodes to have what they should", at_rest)) return;
    AwaitSynced();
  }

  // Compares with what the server says to an operator.
  void CompareWithServer() {
    const nlohmann::json audit = Ask({"audit", "-o", "json"});
    EXPECT_EQ(audit["nodes"], kAgents) << audit;
    EXPECT_EQ(audit["agents_asked"], kAgents) << audit;
    EXPECT_EQ(audit["agents_silent"], 0) << audit;
    EXPECT_EQ(audit["differences"], nlohmann::json::array());

    const uint64_t in_use = SumOverNodes(
        [](const swarm::SimNode& node) { return node.Count(swarm::SimNode::Use::kInUse); });
    const nlohmann::json status = Ask({"status", "-o", "json"});
    EXPECT_EQ(status["nodes_connected"], kAgents) << status;
    EXPECT_EQ(status["addresses_attached"], kAgents * kAddresses) << status;
    EXPECT_EQ(status["addresses_in_use"], in_use) << status;
    EXPECT_EQ(status["problems"], nlohmann::json::array()) << status;
    EXPECT_EQ(swarm_->ledger().size(), kAgents * kAddresses);

    uint64_t usable = 0;
    uint64_t sum = 0;
    for (const nlohmann::json& pool : Ask({"pool", "list", "-o", "json"})) {
      usable += pool["usable"].get<uint64_t>();
      for (const char* part : {"free", "attaching", "available", "in_use", "cooldown", "detaching",
                               "released", "quarantined"}) {
        sum += pool[part].get<uint64_t>();
      }
    }
    EXPECT_EQ(usable, kUsable);
    EXPECT_EQ(sum, kUsable) << "the counts do not add up";
  }

  // Checks that much happened, since the test would prove nothing otherwise.
  void CheckThatMuchHappened() {
    const uint64_t operations = swarm_->latencies().count();
    const uint64_t given_up =
        SumOverNodes([](const swarm::SimNode& node) { return node.given_up(); });
    const uint64_t moves = swarm_->ledger().moves();
    fmt::print(
        "{} operations and {} drains and their ends acknowledged, {} addresses given up, {} moves "
        "to another node, {} sessions; {} of {} agents there at a kill, the last start took {} "
        "ms\n",
        operations, operator_->acknowledged(), given_up, moves,
        SumOverNodes([](const swarm::SimNode& node) { return node.session_epoch(); }),
        connected_at_kills_ / kKills, kAgents, absl::ToInt64Milliseconds(start_took_));
    // The numbers are a fifth of what a slow machine does.
    EXPECT_GE(operations, 100U * kKills);
    EXPECT_GE(operator_->acknowledged(), 1U * kKills / 2);
    EXPECT_GE(given_up, 1U * kKills);
    EXPECT_GE(moves, 1U * kKills / 4);
    EXPECT_GE(connected_at_kills_, 10U * kKills);
  }

  testing_support::Random random_;
  const Interruption interruption_;  // The member is made before the first thread.
  const testing_support::TempDir directory_;
  ServerUnderTest server_{directory_.path(), kSettings};
  std::unique_ptr<swarm::Swarm> swarm_;
  std::unique_ptr<DrainOperator> operator_;
  absl::Duration start_took_;  // The time that the last start took.
  uint64_t connected_at_kills_ = 0;
};

TEST_F(ServerKillTest, NothingAcknowledgedIsLostAndNothingIsGivenTwice) {
  Begin();
  for (int kill = 1; kill <= kKills && !HasFailure(); ++kill) {
    SCOPED_TRACE(fmt::format("kill {}", kill));
    LiveAndDie();
    // What the server said last is read before it is judged by.
    Await("the agents to notice", [&] { return swarm_->connected() == 0; });
    CheckStore(Moment::kKilled);
    swarm_->ForgetSyncs();
    ASSERT_TRUE(server_.Exec().ok());
  }
  ASSERT_FALSE(HasFailure());
  ComeToRest();
  ASSERT_FALSE(HasFailure());
  CompareWithServer();
  const absl::Status stopped = server_.Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  CheckStore(Moment::kAtRest);
  CheckThatMuchHappened();
}

}  // namespace
}  // namespace spoke::crash
