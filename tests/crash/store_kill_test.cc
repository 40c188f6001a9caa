// Tests a process that commits to the store and is killed at random moments; the next one goes on
// from what it finds. kill -9 leaves the kernel's memory alone: what a power cut would leave is
// tested beside the store, with a disk that forgets.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/store/sqlite_store.h"
#include "lib/os/unique_fd.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

constexpr int kKills = 30;
constexpr int kNodes = 40;
// The log is so short that it is moved all the time, and kills meet that as well.
constexpr LogLimits kShortLog = {.checkpoint_pages = 32, .max_pages = 256};

// The message that the killed process says, one a write: atomic, since it is shorter than PIPE_BUF.
struct Message {
  enum class Kind : int { kFound, kCommitted, kBroken };
  Kind kind = Kind::kBroken;
  int batch = 0;
  std::array<char, 200> text{};
};

void Say(int pipe, Message::Kind kind, int batch, const std::string& text = "") {
  Message message{.kind = kind, .batch = batch};
  std::strncpy(message.text.data(), text.c_str(), message.text.size() - 1);
  if (::write(pipe, &message, sizeof(message)) != sizeof(message)) ::_exit(1);
}

// The state that batch `n` leaves: every node's record says n, and there is one more entry in the
// history, so that neither a lost batch nor half of one can hide.
struct State {
  int batch = 0;
  std::vector<int64_t> revisions = std::vector<int64_t>(kNodes, 0);
};

std::string NodeKeyOf(size_t node) { return "node/" + std::to_string(node); }
std::string HistoryKeyOf(int batch) {
  std::string digits = std::to_string(batch);
  return "history/" + std::string(8 - digits.size(), '0') + digits;
}

absl::StatusOr<State> ReadState(Store& store) {
  State state;
  int entries = 0;
  absl::Status status = store.List("history/", [&](std::string_view key, const StoredRecord&) {
    if (key == HistoryKeyOf(entries + 1)) ++entries;
  });
  if (!status.ok()) return status;
  std::vector<int> numbers;
  status = store.List("node/", [&](std::string_view, const StoredRecord& record) {
    numbers.push_back(std::stoi(record.value));
  });
  if (!status.ok()) return status;
  if (numbers.empty() && entries == 0) return state;
  state.batch = entries;
  if (numbers != std::vector<int>(kNodes, entries)) {
    return absl::DataLossError("batch " + std::to_string(entries) + " is not whole");
  }
  for (size_t i = 0; i < kNodes; ++i) {
    const auto record = store.Get(NodeKeyOf(i));
    if (!record.ok()) return record.status();
    state.revisions[i] = record->value().revision;
  }
  return state;
}

// Commits until it is killed.
[[noreturn]] void Work(const std::string& path, int pipe, unsigned seed) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // A test that was stopped leaves nobody behind.
  std::mt19937 random(seed);
  const auto give_up = [&](const absl::Status& status) {
    Say(pipe, Message::Kind::kBroken, 0, std::string(status.message()));
    ::_exit(1);
  };
  const auto store = OpenSqliteStore(path, {.log = kShortLog});
  if (!store.ok()) give_up(store.status());
  auto state = ReadState(**store);
  if (!state.ok()) give_up(state.status());
  Say(pipe, Message::Kind::kFound, state->batch);
  while (true) {
    const int number = ++state->batch;
    std::vector<CompareAndPut> batch = {{HistoryKeyOf(number), "", 0}};
    for (size_t i = 0; i < kNodes; ++i) {
      batch.push_back({NodeKeyOf(i), std::to_string(number) + std::string(random() % 8000, '.'),
                       state->revisions[i]});
    }
    const auto revisions = (*store)->Commit(batch);
    if (!revisions.ok()) give_up(revisions.status());
    state->revisions.assign(revisions->begin() + 1, revisions->end());
    Say(pipe, Message::Kind::kCommitted, number);
  }
}

class StoreKillTest : public testing::Test {
 protected:
  // Starts a process that works, kills it after it has said `messages` things and `delay_us` more
  // have passed, and takes note of everything it said.
  void RunAndKill(unsigned seed, int messages, unsigned delay_us) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const os::UniqueFd from_child(ends[0]);
    os::UniqueFd to_parent(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) Work(path(), to_parent.get(), seed);
    to_parent.Reset();
    for (int i = 0; i < messages && Hear(from_child.get()); ++i) {
    }
    ::usleep(delay_us);  // A random moment, not a wait for something.
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended before it was killed";
    while (Hear(from_child.get())) {
    }
  }

  int acknowledged() const { return acknowledged_; }
  std::string path() const { return directory_.File("ipam.db"); }

 private:
  // Returns false at the end.
  bool Hear(int pipe) {
    Message message;
    if (::read(pipe, &message, sizeof(message)) != sizeof(message)) return false;
    switch (message.kind) {
      case Message::Kind::kBroken:
        ADD_FAILURE() << message.text.data();
        break;
      case Message::Kind::kFound:
        EXPECT_GE(message.batch, acknowledged_) << "an acknowledged batch is gone";
        EXPECT_LE(message.batch, acknowledged_ + 1) << "a batch nobody committed is there";
        acknowledged_ = message.batch;
        break;
      case Message::Kind::kCommitted:
        EXPECT_EQ(message.batch, acknowledged_ + 1);
        acknowledged_ = message.batch;
        break;
    }
    return true;
  }

  const testing_support::TempDir directory_;
  int acknowledged_ = 0;
};

TEST_F(StoreKillTest, WhatWasAcknowledgedSurvivesKillsAtRandomMoments) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int i = 0; i < kKills; ++i) {
    // Some are killed while they open what the last one left, before they have said a thing.
    const int messages = random() % 4 == 0 ? 0 : static_cast<int>(random() % 25);
    RunAndKill(static_cast<unsigned>(random()), messages, static_cast<unsigned>(random() % 8000));
    if (HasFailure()) FAIL() << "after kill " << i + 1;
  }
  const auto store = OpenSqliteStore(path());
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->CheckIntegrity().ok());
  const auto state = ReadState(**store);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_GE(state->batch, acknowledged());
  EXPECT_GT(state->batch, kKills);
}

}  // namespace
}  // namespace spoke::ipam
