// What happens to the store when members die, stop, fill up or lose their quorum: with real
// members.
#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/etcd/etcd_store.h"
#include "ipam-server/store/etcd/testing/etcd_cluster.h"
#include "lib/os/clock.h"

namespace spoke::ipam {
namespace {

using absl::StatusCode;
using etcd::EtcdCluster;

EtcdOptions OptionsOf(const EtcdCluster& cluster, const std::string& name = "server-a") {
  EtcdOptions options;
  options.access = cluster.access();
  options.leadership.name = name;
  return options;
}

absl::StatusOr<int64_t> Put(Store& store, const std::string& key, const std::string& value,
                            int64_t expected = 0) {
  const std::vector<CompareAndPut> batch = {{key, value, expected}};
  const auto revisions = store.Commit(batch);
  if (!revisions.ok()) return revisions.status();
  return revisions->at(0);
}

// Counts up in one record until stopped, as the loop does: after an error it reads again. Every
// number that was acknowledged must be there.
class Counter {
 public:
  explicit Counter(Store& store) : store_(store), thread_([this] { Count(); }) {}
  // The longest time without an acknowledgement.
  absl::Duration Stop() {
    done_ = true;
    thread_.join();
    return longest_;
  }
  int64_t acknowledged() const { return acknowledged_; }

 private:
  void Count() {
    int64_t revision = 0;
    int64_t last_ms = os::MonotonicMs();
    while (!done_) {
      const auto put = Put(store_, "count", std::to_string(acknowledged_ + 1), revision);
      if (put.ok()) {
        ++acknowledged_;
        revision = *put;
        const int64_t now_ms = os::MonotonicMs();
        longest_ = std::max(longest_, absl::Milliseconds(now_ms - last_ms));
        last_ms = now_ms;
        continue;
      }
      const auto found = store_.Get("count");
      if (!found.ok()) continue;
      const int64_t stored = found->has_value() ? std::stoll((*found)->value) : 0;
      revision = found->has_value() ? (*found)->revision : 0;
      // One that was in doubt may have happened, nothing more.
      EXPECT_GE(stored, acknowledged_);
      EXPECT_LE(stored, acknowledged_ + 1);
      acknowledged_ = stored;
    }
  }

  Store& store_;
  std::atomic<bool> done_ = false;
  std::atomic<int64_t> acknowledged_ = 0;
  absl::Duration longest_;
  std::thread thread_;
};

void AwaitCount(const Counter& counter, int64_t more) {
  const int64_t until = counter.acknowledged() + more;
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (counter.acknowledged() < until && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_GE(counter.acknowledged(), until) << "writes go on";
}

TEST(EtcdFaults, NothingIsLostOrDoubledWhenTheMembersDieInTurn) {
  EtcdCluster cluster({.members = 3});
  EtcdOptions options = OptionsOf(cluster);
  // Electing another member takes a busy machine longer than a lease should.
  options.leadership.lease = absl::Seconds(30);
  const auto store = EtcdStore::Open(options).value();
  Counter counter(*store);
  AwaitCount(counter, 20);
  for (size_t i = 0; i < cluster.size(); ++i) {
    cluster.Kill(i);
    AwaitCount(counter, 20);
    cluster.Start(i);
    // Two must not be away at once.
    absl::SleepFor(absl::Seconds(2));
  }
  const absl::Duration longest = counter.Stop();
  EXPECT_EQ(store->Get("count")->value().value, std::to_string(counter.acknowledged()));
  EXPECT_LT(longest, absl::Seconds(10));
  RecordProperty("longest_ms", absl::FormatDuration(longest));
}

TEST(EtcdFaults, AMemberThatStandsStillIsPassedOver) {
  EtcdCluster cluster({.members = 3});
  EtcdOptions options = OptionsOf(cluster);
  // Electing another member takes a busy machine longer than a lease should.
  options.leadership.lease = absl::Seconds(30);
  const auto store = EtcdStore::Open(options).value();
  Counter counter(*store);
  AwaitCount(counter, 20);
  for (size_t i = 0; i < cluster.size(); ++i) {
    cluster.Stop(i);
    AwaitCount(counter, 20);
    cluster.Continue(i);
    absl::SleepFor(absl::Seconds(2));
  }
  counter.Stop();
  EXPECT_EQ(store->Get("count")->value().value, std::to_string(counter.acknowledged()));
}

TEST(EtcdFaults, WithoutAQuorumNothingIsDecidedAndAfterwardsTheSameServerLeads) {
  EtcdCluster cluster({.members = 3});
  EtcdOptions options = OptionsOf(cluster);
  std::atomic<bool> lost = false;
  options.leadership.on_lost = [&](const absl::Status&) { lost = true; };
  const auto store = EtcdStore::Open(options).value();
  const int64_t revision = Put(*store, "a", "1").value();
  cluster.Kill(0);
  cluster.Kill(1);
  EXPECT_EQ(Put(*store, "a", "2", revision).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(store->Get("a").status().code(), StatusCode::kUnavailable);
  EXPECT_LT(store->LeadershipMargin(), absl::ZeroDuration());
  cluster.Start(0);
  cluster.Start(1);
  const absl::Time end = absl::Now() + absl::Seconds(30);
  absl::StatusOr<std::optional<StoredRecord>> found = store->Get("a");
  while (!found.ok() && absl::Now() < end) found = store->Get("a");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(Put(*store, "a", "3", (*found)->revision).ok());
  while (store->LeadershipMargin() <= absl::ZeroDuration() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_GT(store->LeadershipMargin(), absl::ZeroDuration()) << "the lease was kept";
  EXPECT_FALSE(lost);
}

TEST(EtcdFaults, AServerWhoseLoopStandsStillIsDeposedAndLearnsIt) {
  const EtcdCluster cluster;
  EtcdOptions options = OptionsOf(cluster);
  std::atomic<bool> alive = true;
  std::atomic<bool> lost = false;
  options.leadership.lease = absl::Seconds(2);
  options.leadership.alive = [&] { return alive.load(); };
  options.leadership.on_lost = [&](const absl::Status&) { lost = true; };
  const auto first = EtcdStore::Open(options).value();
  absl::SleepFor(absl::Seconds(4));
  ASSERT_TRUE(Put(*first, "a", "1").ok()) << "a lease is kept for as long as the loop turns";
  alive = false;
  const absl::Time stood_still = absl::Now();
  const absl::Time end = stood_still + absl::Seconds(20);
  auto second = EtcdStore::Open(OptionsOf(cluster, "server-b"));
  while (absl::IsAlreadyExists(second.status()) && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(50));
    second = EtcdStore::Open(OptionsOf(cluster, "server-b"));
  }
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_LT(absl::Now() - stood_still, absl::Seconds(8));
  EXPECT_LE(first->LeadershipMargin(), absl::ZeroDuration()) << "it knows without asking";
  while (!lost && absl::Now() < end) absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE(lost) << "its loop stands still, and the keeper has looked";
  alive = true;
  EXPECT_EQ(Put(*first, "a", "2").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*second)->Get("a")->value().value, "1");
}

// A program of its own, since SIGSTOP stops all threads.
TEST(EtcdFaults, AServerThatWasStoppedAndContinuesEndsAndHasWrittenNothing) {
  const EtcdCluster cluster;
  const testing_support::TempDir dir;
  auto holder = crash::ChildProcess::Start({ETCD_HOLDER, cluster.endpoints()[0], "server-a"},
                                           dir.File("log"));
  ASSERT_TRUE(holder.ok()) << holder.status();
  const absl::Time end = absl::Now() + absl::Seconds(30);
  const auto leads = [&] { return cluster.Ctl({"get", "/spoke/leader", "--print-value-only"}); };
  const auto count = [&] {
    return cluster.Ctl({"get", "/spoke/data/count", "--print-value-only"});
  };
  while (count().empty() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(50));
  ASSERT_EQ(leads(), "server-a\n");
  holder->Signal(SIGSTOP);
  while (!leads().empty() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(50));
  const auto store = EtcdStore::Open(OptionsOf(cluster, "server-b"));
  ASSERT_TRUE(store.ok()) << store.status();
  const auto before = (*store)->Get("count").value();
  holder->Signal(SIGCONT);
  EXPECT_EQ(holder->Wait(), 3) << "it ends because it no longer leads";
  EXPECT_EQ((*store)->Get("count").value(), before);
}

TEST(EtcdFaults, AFullDatabaseRefusesWritesUntilItsHistoryIsGone) {
  const EtcdCluster cluster({.quota_bytes = int64_t{16} << 20});
  EtcdOptions options = OptionsOf(cluster);
  options.upkeep.compact_period = absl::Hours(1);  // Only because it is full.
  const auto store = EtcdStore::Open(options).value();
  absl::StatusOr<int64_t> put = 0;
  for (int i = 0; i < 100 && put.ok(); ++i) {
    put = Put(*store, "large", std::string(500'000, static_cast<char>('a' + i % 26)), *put);
  }
  ASSERT_EQ(put.status().code(), StatusCode::kResourceExhausted) << put.status();
  const auto found = store->Get("large");
  ASSERT_TRUE(found.ok()) << "it can be read";
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (!put.ok() && absl::Now() < end) {
    put = Put(*store, "large", "small", (*found)->revision);
    absl::SleepFor(absl::Milliseconds(100));
  }
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(cluster.Ctl({"alarm", "list"}), "");
}

TEST(EtcdFaults, AServerOpensADatabaseThatIsFull) {
  const EtcdCluster cluster({.quota_bytes = int64_t{16} << 20});
  {
    EtcdOptions options = OptionsOf(cluster);
    options.upkeep.compact_period = absl::Hours(1);
    const auto store = EtcdStore::Open(options).value();
    absl::StatusOr<int64_t> put = 0;
    while (put.ok()) put = Put(*store, "large", std::string(500'000, 'x'), *put);
    ASSERT_EQ(put.status().code(), StatusCode::kResourceExhausted) << put.status();
  }
  const auto store = EtcdStore::Open(OptionsOf(cluster));
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(Put(**store, "a", "1").ok());
}

TEST(EtcdFaults, TheDatabaseStaysSmallWhileOneRecordChanges) {
  const EtcdCluster cluster({.quota_bytes = int64_t{32} << 20});
  EtcdOptions options = OptionsOf(cluster);
  options.upkeep.compact_period = absl::Milliseconds(200);
  const auto store = EtcdStore::Open(options).value();
  int64_t revision = 0;
  for (int i = 0; i < 300; ++i) {
    // Three times the quota, at a rate of which a few periods fit.
    const auto put = Put(*store, "large", std::string(330'000, 'x'), revision);
    ASSERT_TRUE(put.ok()) << put.status() << " after " << i;
    revision = *put;
    absl::SleepFor(absl::Milliseconds(10));
  }
  const StoreStats stats = store->Stats();
  EXPECT_GT(stats.checkpoints, 3);
  EXPECT_EQ(stats.failed_checkpoints, 0);
  EXPECT_GT(stats.file_bytes, 0);
  EXPECT_LT(stats.file_bytes, int64_t{32} << 20);
}

}  // namespace
}  // namespace spoke::ipam
