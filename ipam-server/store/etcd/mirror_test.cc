// Mirror against real members: it has what the store has, whatever happens to its watch.
#include "ipam-server/store/etcd/mirror.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/etcd/etcd_store.h"
#include "ipam-server/store/etcd/testing/etcd_cluster.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam::etcd {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

std::unique_ptr<EtcdStore> OpenStore(const EtcdCluster& cluster) {
  EtcdOptions options;
  options.access = cluster.access();
  options.leadership.name = "server-a";
  options.leadership.address = "127.0.0.1:7446";
  options.upkeep.compact_period = absl::Hours(1);  // Only when the test says so.
  return EtcdStore::Open(options).value();
}

std::unique_ptr<Mirror> OpenMirror(const EtcdCluster& cluster) {
  return Mirror::Open(Connection::Open(cluster.access()).value(), "/spoke/").value();
}

// Whether nobody leads within `time`, as who waits for leader_changed() sees it.
bool AwaitVacancy(const Mirror& mirror, absl::Duration time) {
  const absl::Time end = absl::Now() + time;
  while (mirror.CurrentLeader()) {
    pollfd changed{.fd = mirror.leader_changed(), .events = POLLIN, .revents = 0};
    const auto left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0 || ::poll(&changed, 1, static_cast<int>(left)) == 0) return false;
    uint64_t count = 0;
    EXPECT_EQ(::read(changed.fd, &count, sizeof(count)), ssize_t{sizeof(count)});
  }
  return true;
}

using Records = std::map<std::string, StoredRecord>;

Records Of(const Mirror& mirror, const ListOptions& options = {}) {
  Records records;
  mirror.List(options, [&](std::string_view key, const StoredRecord& record) {
    records.emplace(key, record);
  });
  return records;
}

Records Of(Store& store) {
  Records records;
  const auto status = store.List(
      "", [&](std::string_view key, const StoredRecord& record) { records.emplace(key, record); });
  EXPECT_TRUE(status.ok()) << status;
  return records;
}

// Random puts and removals; the greatest revision.
int64_t Change(Store& store, testing_support::Random& random, int batches) {
  int64_t greatest = 0;
  Records known = Of(store);
  for (int i = 0; i < batches; ++i) {
    const std::string key = "k" + std::to_string(random.Between(0, 30));
    const auto before = known.find(key);
    std::vector<CompareAndPut> batch = {
        {key, std::nullopt, before == known.end() ? 0 : before->second.revision}};
    if (before == known.end() || !random.OneIn(4)) batch[0].value = std::to_string(i);
    const auto revisions = store.Commit(batch);
    EXPECT_TRUE(revisions.ok()) << revisions.status();
    if (!revisions.ok()) return greatest;
    if (batch[0].value) {
      known[key] = {*batch[0].value, revisions->at(0)};
      greatest = std::max(greatest, revisions->at(0));
    } else {
      known.erase(key);
    }
  }
  // Ends with a put, so that the mirror can be waited for.
  const auto last = store.Commit(std::vector<CompareAndPut>{
      {"last", "x", known.contains("last") ? known["last"].revision : 0}});
  EXPECT_TRUE(last.ok()) << last.status();
  return last.ok() ? last->at(0) : greatest;
}

TEST(Mirror, HasWhatTheStoreHasBeforeAndAfterItBegan) {
  testing_support::Random random;
  const EtcdCluster cluster;
  const auto store = OpenStore(cluster);
  Change(*store, random, 50);
  const auto mirror = OpenMirror(cluster);
  EXPECT_EQ(Of(*mirror), Of(*store));
  const int64_t revision = Change(*store, random, 200);
  ASSERT_TRUE(mirror->AwaitRevision(revision, kLong));
  EXPECT_EQ(Of(*mirror), Of(*store));
  EXPECT_EQ(mirror->stats().full_reads, 1);
  EXPECT_EQ(mirror->stats().records, static_cast<int64_t>(Of(*store).size()));
}

TEST(Mirror, ListsAsAStoreDoes) {
  const EtcdCluster cluster;
  const auto store = OpenStore(cluster);
  for (const char* key : {"a", "b/1", "b/2", "c"}) {
    ASSERT_TRUE(store->Commit(std::vector<CompareAndPut>{{key, key, 0}}).ok());
  }
  const auto mirror = OpenMirror(cluster);
  const auto keys = [&](const ListOptions& options) {
    std::vector<std::string> found;
    mirror->List(options,
                 [&](std::string_view key, const StoredRecord&) { found.emplace_back(key); });
    return found;
  };
  using Strings = std::vector<std::string>;
  const auto b = KeyRange::WithPrefix("b/");
  EXPECT_EQ(keys({.range = b}), (Strings{"b/1", "b/2"}));
  EXPECT_EQ(keys({.range = b, .limit = 1, .descending = true}), (Strings{"b/2"}));
  EXPECT_EQ(keys({.limit = 3}), (Strings{"a", "b/1", "b/2"}));
  EXPECT_EQ(keys({.descending = true}), (Strings{"c", "b/2", "b/1", "a"}));
  EXPECT_TRUE(keys({.range = {.first = "c", .end = "b"}}).empty());
}

TEST(Mirror, KnowsWhoLeadsAndWhenNobodyDoes) {
  const EtcdCluster cluster;
  auto store = OpenStore(cluster);
  const int64_t first = store->Fence();
  const auto mirror = OpenMirror(cluster);
  const LeaderRecord record{"server-a", "127.0.0.1:7446"};
  const Leader before = mirror->CurrentLeader().value();
  EXPECT_EQ(before.record, record);
  EXPECT_EQ(before.revision, first);
  EXPECT_FALSE(AwaitVacancy(*mirror, absl::Milliseconds(50)));
  store.reset();
  EXPECT_TRUE(AwaitVacancy(*mirror, kLong));
  store = OpenStore(cluster);
  EXPECT_TRUE(mirror->AwaitRevision(store->Fence(), kLong));
  const Leader after = mirror->CurrentLeader().value();
  EXPECT_EQ(after.record, record);
  EXPECT_EQ(after.revision, store->Fence());
  EXPECT_NE(after.lease, before.lease);
}

// Records are read as the mirror has them, though nobody asks a member: it is stopped meanwhile.
TEST(Mirror, AServerThatTakesOverGoesOnFromIt) {
  testing_support::Random random;
  EtcdCluster cluster;
  auto store = OpenStore(cluster);
  Change(*store, random, 50);
  EtcdOptions options{.access = cluster.access()};
  options.leadership.name = "server-b";
  auto mirror = EtcdStore::Follow(options).value();
  EXPECT_TRUE(absl::IsAlreadyExists(EtcdStore::TakeOver(options, mirror).status()));
  ASSERT_NE(mirror, nullptr);
  Change(*store, random, 50);
  const Records before = Of(*store);
  store.reset();
  ASSERT_TRUE(AwaitVacancy(*mirror, kLong));
  auto next = EtcdStore::TakeOver(options, mirror).value();
  EXPECT_EQ(mirror, nullptr);
  cluster.Stop(0);
  EXPECT_EQ(Of(*next), before);
  EXPECT_EQ(next->Get("last").value(), before.at("last"));
  cluster.Continue(0);
  Change(*next, random, 20);
  EXPECT_NE(Of(*next), before) << "after a commit the members are asked";
}

TEST(Mirror, AServerMayOverthrowTheLeaderThatTheMirrorNames) {
  const EtcdCluster cluster;
  const auto store = OpenStore(cluster);
  EtcdOptions options{.access = cluster.access()};
  options.leadership.name = "server-b";
  auto mirror = EtcdStore::Follow(options).value();
  const Leader before = mirror->CurrentLeader().value();
  options.leadership.depose = before.revision;
  const auto another = EtcdStore::Follow(options).value();
  const auto next = EtcdStore::TakeOver(options, mirror).value();
  // Who follows knows that it is another one, whom it has no reason to overthrow.
  EXPECT_TRUE(another->AwaitRevision(next->Fence(), kLong));
  EXPECT_EQ(another->CurrentLeader()->record.name, "server-b");
  EXPECT_NE(another->CurrentLeader()->lease, before.lease);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      store->Commit(std::vector<CompareAndPut>{{"a", "a", 0}}).status()));
  EXPECT_TRUE(next->Commit(std::vector<CompareAndPut>{{"a", "b", 0}}).ok());
}

TEST(Mirror, GoesOnWithAnotherMemberWhereTheOneItWatchedIsGone) {
  testing_support::Random random;
  EtcdCluster cluster({.members = 3});
  const auto store = OpenStore(cluster);
  const auto mirror = OpenMirror(cluster);
  for (size_t i = 0; i < cluster.size(); ++i) {
    cluster.Kill(i);
    absl::SleepFor(absl::Seconds(2));  // A new leader among the members.
    const int64_t revision = Change(*store, random, 50);
    ASSERT_TRUE(mirror->AwaitRevision(revision, kLong));
    EXPECT_EQ(Of(*mirror), Of(*store));
    cluster.Start(i);
    absl::SleepFor(absl::Seconds(2));
  }
  EXPECT_GT(mirror->stats().broken_watches, 0);
  EXPECT_EQ(mirror->stats().full_reads, 1) << "the history was there";
}

// While the mirror's member cannot be reached, records change and their history is compacted: what
// the mirror has missed cannot be watched any more.
TEST(Mirror, ReadsEverythingAgainWhereItsHistoryWasCompacted) {
  testing_support::Random random;
  EtcdCluster cluster;
  auto store = OpenStore(cluster);
  Change(*store, random, 50);
  const auto mirror = OpenMirror(cluster);
  store.reset();
  const auto restart = [&] {
    cluster.Kill(0);
    cluster.SwapPort(0);
    cluster.Start(0);
    auto connection = Connection::Open(cluster.access());
    const absl::Time end = absl::Now() + kLong;
    while (!connection.ok() && absl::Now() < end) connection = Connection::Open(cluster.access());
    return *std::move(connection);
  };
  {
    const auto unseen = restart();
    store = OpenStore(cluster);
    ASSERT_TRUE(unseen->Compact(Change(*store, random, 50), /*wait=*/true).ok());
    store.reset();
  }
  restart();
  store = OpenStore(cluster);
  ASSERT_TRUE(mirror->AwaitRevision(Change(*store, random, 20), kLong));
  EXPECT_EQ(Of(*mirror), Of(*store));
  EXPECT_EQ(mirror->stats().full_reads, 2);
}

// The member that it watches is silent, which a watch does not notice for long.
TEST(Mirror, KnowsThatNobodyLeadsThoughItsMemberIsSilent) {
  EtcdCluster cluster({.members = 3});
  auto store = OpenStore(cluster);
  const auto mirror = OpenMirror(cluster);
  cluster.Stop(0);
  absl::SleepFor(absl::Seconds(3));  // A new leader among the members.
  const absl::Time begun = absl::Now();
  store.reset();
  EXPECT_TRUE(AwaitVacancy(*mirror, kLong));
  EXPECT_LT(absl::Now() - begun, absl::Seconds(8)) << "a ping would be missed after 12 s";
  cluster.Continue(0);
}

TEST(Mirror, EndsWhileItsMembersAreAway) {
  EtcdCluster cluster;
  auto store = OpenStore(cluster);
  auto mirror = OpenMirror(cluster);
  store.reset();
  cluster.Stop(0);
  const absl::Time begun = absl::Now();
  mirror.reset();
  EXPECT_LT(absl::Now() - begun, absl::Seconds(20));
}

}  // namespace
}  // namespace spoke::ipam::etcd
