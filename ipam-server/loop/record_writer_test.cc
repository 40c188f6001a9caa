#include "ipam-server/loop/record_writer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/history/history_codec.h"
#include "ipam-server/ledger/decisions/inventory.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"
#include "ipam-server/operators/operator_keys.h"
#include "ipam-server/store/record_codec.h"
#include "ipam-server/store/testing/memory_store.h"

namespace spoke::ipam {
namespace {

// A store that takes no more at once than every store does, and dies after any write of the rest.
class StoreInStages final : public Store {
 public:
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) override {
    if (batch.size() <= kAtomicWrites) {
      auto revisions = all_.Commit(batch);
      if (after_each_) after_each_();
      return revisions;
    }
    std::vector<int64_t> revisions(batch.size());
    for (const Stage stage : {Stage::kHold, Stage::kRelease, Stage::kTake, Stage::kFinish}) {
      for (size_t i = batch.size(); i-- > 0;) {
        if (batch[i].stage != stage) continue;
        EXPECT_FALSE(batch[i].joined) << "not played here";
        auto revision = all_.Commit(batch.subspan(i, 1));
        if (!revision.ok()) return revision.status();
        revisions[i] = revision->front();
        if (after_each_) after_each_();
      }
    }
    return revisions;
  }
  absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) override {
    return all_.Get(key);
  }
  using Store::List;
  absl::Status List(const ListOptions& options, const Visit& visit) override {
    return all_.List(options, visit);
  }
  absl::StatusOr<BackupInfo> Backup(const std::string& path) override { return all_.Backup(path); }
  absl::Status CheckIntegrity() override { return all_.CheckIntegrity(); }
  StoreStats Stats() const override { return all_.Stats(); }
  std::string Describe() const override { return "stages"; }

  // Called after whatever happens as a whole.
  void AfterEach(std::function<void()> visit) { after_each_ = std::move(visit); }

 private:
  MemoryStore all_;
  std::function<void()> after_each_;
};

constexpr int kNodes = 150;  // More than fit into one transaction.

NodeKey KeyOf(int node) { return {"node" + std::to_string(node), "vm"}; }
ip::Address AddressOf(int node) {
  return ip::Address::V4(0x0a010010U + static_cast<uint32_t>(node));
}

class RecordWriterTest : public testing::Test {
 protected:
  RecordWriterTest() {
    for (int i = 0; i < kNodes; ++i) {
      NodeRecord& record = *fleet_.ledger.Upsert({.key = KeyOf(i)}).value();
      fleet_.ledger.Hold(record, ip::Prefix::Host(AddressOf(i)), AddressState::kAttached, kNow);
    }
    Effects all;
    for (int i = 0; i < kNodes; ++i) all.changed.insert(KeyOf(i));
    EXPECT_TRUE(Commit(all, {}).ok());
  }

  absl::StatusOr<size_t> Commit(const Effects& effects, const RecoveryState& next) {
    return writer_.Commit({effects, {}, fleet_, next}, kNow);
  }

  // Every node says that it has what the next one had.
  Effects TakeInACircle() {
    fleet_.hold.active = true;
    Effects effects;
    std::set<NodeKey> spoken;
    for (int i = 0; i < kNodes; ++i) {
      effects.Merge(OnInventory(fleet_, KeyOf(i), {.held = {AddressOf((i + 1) % kNodes)}}, kNow));
      spoken.insert(KeyOf(i));
    }
    effects.Merge(EndHold(fleet_, spoken, kNow));
    effects.recovery = true;
    return effects;
  }

  // Looks what a server would begin from: nothing is held twice, and the recovery is over only once
  // everybody has what it said.
  void CheckWhatIsStored() {
    std::map<ip::Address, std::string> holders;
    int settled = 0;
    ASSERT_TRUE(store_
                    .List(kNodeKeyPrefix,
                          [&](std::string_view, const StoredRecord& stored) {
                            const NodeRecord record = *DecodeNode(stored.value);
                            for (const auto& [base, configuration] : record.configurations) {
                              const auto [it, first] = holders.emplace(base, record.key.name);
                              EXPECT_TRUE(first) << base.ToString() << ": " << it->second << " and "
                                                 << record.key.name;
                            }
                          })
                    .ok());
    for (int i = 0; i < kNodes; ++i) {
      const auto holder = holders.find(AddressOf((i + 1) % kNodes));
      if (holder != holders.end() && holder->second == KeyOf(i).name) ++settled;
    }
    const auto mark = store_.Get(kStoreKey);
    ASSERT_TRUE(mark.ok());
    if (!DecodeStore((*mark)->value)->cause) EXPECT_EQ(settled, kNodes);
    ++looks_;
  }

  StoreInStages store_;
  RecordWriter writer_{store_};
  Fleet fleet_{{Pool("default", "10.1.0.0/16")}, Policy()};
  int looks_ = 0;
};

TEST_F(RecordWriterTest, NothingIsHeldTwiceWhereverAServerDiesWhileAllTakeFromEachOther) {
  RecoveryState next{.store_id = "s", .epoch = 2, .cause = RecoveryState::Cause{.reason = "old"}};
  Effects begins;
  begins.recovery = true;
  ASSERT_TRUE(Commit(begins, next).ok());
  const Effects effects = TakeInACircle();
  store_.AfterEach([this] { CheckWhatIsStored(); });
  next.cause.reset();
  ++next.epoch;
  const auto written = Commit(effects, next);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_GT(looks_, 2 * kNodes) << "each is written twice";
  for (int i = 0; i < kNodes; ++i) {
    EXPECT_EQ(*DecodeNode((*store_.Get(StoreKeyOf(KeyOf(i))))->value),
              *fleet_.ledger.Find(KeyOf(i)));
  }
  // It knows what it has stored.
  Effects again;
  for (int i = 0; i < kNodes; ++i) again.changed.insert(KeyOf(i));
  EXPECT_TRUE(Commit(again, next).ok());
}

TEST_F(RecordWriterTest, ARecoveryIsStoredBeforeWhatItDecides) {
  Effects effects = TakeInACircle();
  bool begun = false;
  store_.AfterEach([&] {
    if (!std::exchange(begun, true)) {
      EXPECT_TRUE(DecodeStore((*store_.Get(kStoreKey))->value)->cause);
    }
  });
  const RecoveryState next{
      .store_id = "s", .epoch = 2, .cause = RecoveryState::Cause{.reason = "old"}};
  ASSERT_TRUE(Commit(effects, next).ok());
  EXPECT_TRUE(begun);
}

// The history has room for so much: what is known of others must not be pushed out of it.
TEST_F(RecordWriterTest, OneNodesPodsFillTheHistoryWithinTheirRateAlone) {
  const RecoveryState next{.store_id = "s", .epoch = 2};
  const auto entry = [](const std::string& node, HistoryEvent event) {
    return HistoryEntry{.at = kNow, .event = event, .address = AddressOf(1), .node = node};
  };
  constexpr size_t kEach = 1000;
  for (size_t i = 0; i < 2 * RecordWriter::kHistoryOfNode.burst; i += kEach) {
    Effects effects;
    effects.changed.insert(KeyOf(1));
    effects.history.assign(kEach, entry("hostile", HistoryEvent::kInUse));
    effects.history.push_back(entry("hostile", HistoryEvent::kDetached));
    effects.history.push_back(entry("honest", HistoryEvent::kInUse));
    ASSERT_TRUE(Commit(effects, next).ok());
  }
  EXPECT_THAT(writer_.TakeOmitted(), testing::ElementsAre("hostile")) << "it is told once";
  EXPECT_THAT(writer_.TakeOmitted(), testing::IsEmpty());
  std::map<std::pair<std::string, HistoryEvent>, size_t> kept;
  ASSERT_TRUE(store_
                  .List(kHistoryPrefix,
                        [&](std::string_view, const StoredRecord& stored) {
                          const auto entries = DecodeHistory(stored.value);
                          for (const HistoryEntry& found : entries.value()) {
                            ++kept[{found.node, found.event}];
                          }
                        })
                  .ok());
  constexpr size_t kCommits = 2 * RecordWriter::kHistoryOfNode.burst / kEach;
  EXPECT_EQ((kept[{"hostile", HistoryEvent::kInUse}]), RecordWriter::kHistoryOfNode.burst);
  EXPECT_EQ((kept[{"hostile", HistoryEvent::kDetached}]), kCommits) << "not its agent's to say";
  EXPECT_EQ((kept[{"honest", HistoryEvent::kInUse}]), kCommits);
}

}  // namespace
}  // namespace spoke::ipam
