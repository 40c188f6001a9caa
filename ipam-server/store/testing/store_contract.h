// The promises of Store, as tests. Each back end's *_test.cc instantiates them with its own
// factory.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "ipam-server/store/record_codec.h"
#include "ipam-server/store/store.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {

struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<Store>(const std::string& directory)> open;
  // A store with the content of a backup.
  std::function<absl::StatusOr<std::unique_ptr<Store>>(const std::string& backup)> restore;
  bool durable = false;  // What open() gives for the same directory again has what was committed.
};

class StoreContract : public testing::TestWithParam<StoreFactory> {
 protected:
  std::map<std::string, std::string> ListAll(const std::string& prefix) {
    std::map<std::string, std::string> found;
    const auto status = store().List(prefix, [&](std::string_view key, const StoredRecord& record) {
      EXPECT_NE(record.revision, 0);
      found.emplace(key, record.value);
    });
    EXPECT_TRUE(status.ok()) << status;
    return found;
  }

  absl::StatusOr<int64_t> Put(const std::string& key, std::string value, int64_t expected) {
    const std::vector<CompareAndPut> batch = {{key, std::move(value), expected}};
    auto revisions = store().Commit(batch);
    if (!revisions.ok()) return revisions.status();
    return revisions->at(0);
  }

  // The keys in the order in which they were visited.
  std::vector<std::string> Keys(const ListOptions& options) {
    std::vector<std::string> keys;
    const auto status = store().List(
        options, [&](std::string_view key, const StoredRecord&) { keys.emplace_back(key); });
    EXPECT_TRUE(status.ok()) << status;
    return keys;
  }

  static std::map<std::string, StoredRecord> Records(Store& store) {
    std::map<std::string, StoredRecord> records;
    const auto status = store.List("", [&](std::string_view key, const StoredRecord& record) {
      records.emplace(key, record);
    });
    EXPECT_TRUE(status.ok()) << status;
    return records;
  }

  // Ends the process, as far as the store can tell, and starts it anew.
  void Reopen() {
    store_.reset();
    store_ = GetParam().open(directory_.path());
  }

  Store& store() { return *store_; }
  std::string File(const std::string& name) const { return directory_.File(name); }

 private:
  const testing_support::TempDir directory_;
  std::unique_ptr<Store> store_ = GetParam().open(directory_.path());
};

TEST_P(StoreContract, ReadsBackWhatItCommitted) {
  const auto revision = Put("node/a", std::string("bin\0ary", 7), 0);
  ASSERT_TRUE(revision.ok()) << revision.status();
  EXPECT_NE(*revision, 0);
  const auto got = store().Get("node/a");
  ASSERT_TRUE(got.ok() && got->has_value());
  EXPECT_EQ(**got, (StoredRecord{std::string("bin\0ary", 7), *revision}));
  EXPECT_FALSE(store().Get("node/b")->has_value());
}

TEST_P(StoreContract, TheSecondWriterOnOneRevisionIsAborted) {
  const int64_t first = Put("node/a", "one", 0).value();
  EXPECT_EQ(Put("node/a", "two", 0).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Put("node/a", "two", first + 1).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store().Get("node/a")->value().value, "one");
  EXPECT_GT(Put("node/a", "two", first).value(), first);
}

TEST_P(StoreContract, ABatchIsAllOrNothing) {
  ASSERT_TRUE(Put("node/b", "old", 0).ok());
  const std::vector<CompareAndPut> batch = {{"node/a", "new", 0}, {"node/b", "new", 0}};
  const auto result = store().Commit(batch);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);
  EXPECT_NE(std::string(result.status().message()).find("node/b"), std::string::npos);
  EXPECT_EQ(ListAll(""), (std::map<std::string, std::string>{{"node/b", "old"}}));
}

TEST_P(StoreContract, ARemovedKeyIsGoneAndNeverComesBackAsTheOldRevision) {
  const int64_t first = Put("node/a", "one", 0).value();
  const std::vector<CompareAndPut> removal = {{"node/a", std::nullopt, first}};
  EXPECT_EQ(store().Commit(removal).value(), std::vector<int64_t>{0});
  EXPECT_FALSE(store().Get("node/a")->has_value());
  EXPECT_GT(Put("node/a", "again", 0).value(), first);
}

TEST_P(StoreContract, ListsByPrefixInKeyOrder) {
  for (const char* key : {"node/b", "node/a", "nodf", "nod", "pool/x"}) {
    ASSERT_TRUE(Put(key, key, 0).ok());
  }
  EXPECT_EQ(ListAll("node/"),
            (std::map<std::string, std::string>{{"node/a", "node/a"}, {"node/b", "node/b"}}));
  EXPECT_EQ(ListAll("").size(), 5U);
  std::vector<std::string> order;
  ASSERT_TRUE(
      store()
          .List("", [&](std::string_view key, const StoredRecord&) { order.emplace_back(key); })
          .ok());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(StoreContract, AMalformedBatchChangesNothing) {
  const std::vector<CompareAndPut> twice = {{"node/a", "1", 0}, {"node/a", "2", 0}};
  EXPECT_EQ(store().Commit(twice).status().code(), absl::StatusCode::kInvalidArgument);
  const std::vector<CompareAndPut> nameless = {{"", "1", 0}};
  EXPECT_EQ(store().Commit(nameless).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ListAll("").empty());
  EXPECT_TRUE(store().Commit({})->empty());
}

TEST_P(StoreContract, ARemovalComparesAsAPutDoes) {
  const int64_t first = Put("node/a", "one", 0).value();
  const auto remove = [&](const std::string& key, int64_t expected) {
    const std::vector<CompareAndPut> batch = {{key, std::nullopt, expected}};
    return store().Commit(batch).status().code();
  };
  EXPECT_EQ(remove("node/a", 0), absl::StatusCode::kAborted);
  EXPECT_EQ(remove("node/a", first + 1), absl::StatusCode::kAborted);
  EXPECT_EQ(remove("node/b", first), absl::StatusCode::kAborted);
  EXPECT_EQ(ListAll("").size(), 1U);
  EXPECT_EQ(remove("node/b", 0), absl::StatusCode::kOk);
  EXPECT_EQ(remove("node/a", first), absl::StatusCode::kOk);
  EXPECT_TRUE(ListAll("").empty());
}

TEST_P(StoreContract, ABatchMayCreateChangeAndRemove) {
  const int64_t a = Put("a", "1", 0).value();
  const int64_t b = Put("b", "1", 0).value();
  const std::vector<CompareAndPut> batch = {{"c", "2", 0}, {"a", std::nullopt, a}, {"b", "2", b}};
  const auto revisions = store().Commit(batch);
  ASSERT_TRUE(revisions.ok()) << revisions.status();
  ASSERT_EQ(revisions->size(), 3U);
  EXPECT_EQ(revisions->at(1), 0);
  EXPECT_EQ(Records(store()), (std::map<std::string, StoredRecord>{
                                  {"b", {"2", revisions->at(2)}}, {"c", {"2", revisions->at(0)}}}));
  EXPECT_GT(revisions->at(2), b);
}

TEST_P(StoreContract, KeysAndValuesAreBytes) {
  const std::vector<std::string> keys = {
      std::string("\0", 1), std::string("a\0b", 3), "a", "\x7f", "\xc3\xa9", "\xff", "\xff\xff"};
  for (const std::string& key : keys) ASSERT_TRUE(Put(key, key, 0).ok());
  ASSERT_TRUE(Put("empty", "", 0).ok());
  std::vector<std::string> sorted = keys;
  sorted.emplace_back("empty");
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(Keys({}), sorted);
  for (const std::string& key : keys) EXPECT_EQ(store().Get(key)->value().value, key);
  EXPECT_EQ(store().Get("empty")->value().value, "");
  EXPECT_EQ(Keys({.range = KeyRange::WithPrefix("\xff")}),
            (std::vector<std::string>{"\xff", "\xff\xff"}));
}

TEST_P(StoreContract, ListsARangeFromEitherEndUpToALimit) {
  for (const char* key : {"a", "b/1", "b/2", "b/3", "c"}) ASSERT_TRUE(Put(key, key, 0).ok());
  const auto b = KeyRange::WithPrefix("b/");
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Keys({.range = b}), (Strings{"b/1", "b/2", "b/3"}));
  EXPECT_EQ(Keys({.range = b, .limit = 2}), (Strings{"b/1", "b/2"}));
  EXPECT_EQ(Keys({.range = b, .limit = 2, .descending = true}), (Strings{"b/3", "b/2"}));
  EXPECT_EQ(Keys({.range = b, .limit = 9, .descending = true}), (Strings{"b/3", "b/2", "b/1"}));
  EXPECT_EQ(Keys({.range = {.first = "b/2", .end = "c"}}), (Strings{"b/2", "b/3"}));
  EXPECT_EQ(Keys({.range = {.first = "b/2"}}), (Strings{"b/2", "b/3", "c"}));
  EXPECT_EQ(Keys({.range = {.end = "b/2"}}), (Strings{"a", "b/1"}));
  EXPECT_EQ(Keys({.limit = 1, .descending = true}), (Strings{"c"}));
  EXPECT_TRUE(Keys({.range = {.first = "b/3", .end = "b/3"}}).empty());
  EXPECT_TRUE(Keys({.range = {.first = "c", .end = "b"}}).empty());
}

TEST_P(StoreContract, ThousandsOfRecordsFitOneBatch) {
  std::vector<CompareAndPut> batch;
  for (int i = 0; i < 2000; ++i) {
    batch.push_back({"node/" + std::to_string(i),
                     std::string(2000 + 3 * static_cast<size_t>(i), static_cast<char>(i)), 0});
  }
  const auto revisions = store().Commit(batch);
  ASSERT_TRUE(revisions.ok()) << revisions.status();
  ASSERT_EQ(revisions->size(), batch.size());
  const auto found = Records(store());
  ASSERT_EQ(found.size(), batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_EQ(found.at(batch[i].key), (StoredRecord{*batch[i].value, revisions->at(i)}));
  }
}

// A batch that no store need take at once, with one write in it that is refused.
inline std::vector<CompareAndPut> LargeBatch(Stage refused) {
  std::vector<CompareAndPut> batch;
  for (const Stage stage : {Stage::kFinish, Stage::kTake, Stage::kRelease, Stage::kHold}) {
    for (size_t i = 0; i < 3 * kAtomicWrites; ++i) {
      CompareAndPut put{std::to_string(static_cast<int>(stage)) + "/" + std::to_string(i), "new"};
      put.stage = stage;
      if (stage == refused && i == 200) put.expected = 1'000'000;
      batch.push_back(std::move(put));
    }
  }
  return batch;
}

TEST_P(StoreContract, OfALargeBatchThatFailsNothingIsStoredAfterTheStageThatFailed) {
  const std::vector<CompareAndPut> batch = LargeBatch(Stage::kRelease);
  EXPECT_EQ(store().Commit(batch).status().code(), absl::StatusCode::kAborted);
  const auto held = ListAll("0/");
  const auto released = ListAll("1/");
  EXPECT_TRUE(held.empty() || held.size() == 3 * kAtomicWrites) << held.size();
  EXPECT_TRUE(released.empty() || !held.empty());
  EXPECT_LT(released.size(), 3 * kAtomicWrites);
  EXPECT_TRUE(ListAll("2/").empty());
  EXPECT_TRUE(ListAll("3/").empty());
}

TEST_P(StoreContract, AfterALargeBatchThatFailedTheStoreIsReadAnewAndTakesIt) {
  std::vector<CompareAndPut> batch = LargeBatch(Stage::kTake);
  ASSERT_EQ(store().Commit(batch).status().code(), absl::StatusCode::kAborted);
  const auto found = Records(store());
  for (CompareAndPut& put : batch) {
    const auto known = found.find(put.key);
    put.expected = known == found.end() ? 0 : known->second.revision;
    put.value = "newer";
  }
  const auto revisions = store().Commit(batch);
  ASSERT_TRUE(revisions.ok()) << revisions.status();
  const auto after = Records(store());
  ASSERT_EQ(after.size(), batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_EQ(after.at(batch[i].key), (StoredRecord{"newer", revisions->at(i)}));
  }
}

TEST_P(StoreContract, UpToTheLimitsABatchIsAllOrNothing) {
  std::vector<CompareAndPut> batch;
  for (size_t i = 0; i < kAtomicWrites; ++i) {
    batch.push_back(
        {"key/" + std::to_string(i), std::string(kAtomicBytes / kAtomicWrites / 2, 'x'), 0});
  }
  batch.back().expected = 1'000'000;
  EXPECT_EQ(store().Commit(batch).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(ListAll("").empty());
  batch.back().expected = 0;
  EXPECT_TRUE(store().Commit(batch).ok());
  EXPECT_EQ(ListAll("").size(), kAtomicWrites);
}

TEST_P(StoreContract, AListIsOneSnapshotAndCommitsDoNotWaitForIt) {
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(Put(key, "old", 0).ok());
  std::map<std::string, std::string> seen;
  // The commit happens while the list is under way: it would never end if the list held it up.
  absl::Notification first_visited;
  absl::Notification committed;
  std::thread writer([&] {
    first_visited.WaitForNotification();
    EXPECT_TRUE(Put("d", "new", 0).ok());
    const auto b = store().Get("b");
    const std::vector<CompareAndPut> batch = {{"b", "new", b->value().revision}};
    EXPECT_TRUE(store().Commit(batch).ok());
    committed.Notify();
  });
  const auto status = store().List("", [&](std::string_view key, const StoredRecord& record) {
    if (seen.empty()) {
      first_visited.Notify();
      committed.WaitForNotification();
    }
    seen.emplace(key, record.value);
  });
  writer.join();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, (std::map<std::string, std::string>{{"a", "old"}, {"b", "old"}, {"c", "old"}}));
  EXPECT_EQ(ListAll("").size(), 4U);
  EXPECT_EQ(ListAll("b").at("b"), "new");
}

// Every batch gives all its keys one value, so a list that shows two values saw half a batch.
TEST_P(StoreContract, ReadersNeverSeeHalfABatch) {
  constexpr int kKeys = 20;
  constexpr int kBatches = 100;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    std::vector<int64_t> revisions(kKeys, 0);
    for (int n = 0; n < kBatches; ++n) {
      std::vector<CompareAndPut> batch;
      for (size_t k = 0; k < kKeys; ++k) {
        batch.push_back({"key/" + std::to_string(k), std::to_string(n), revisions[k]});
      }
      auto committed = store().Commit(batch);
      EXPECT_TRUE(committed.ok()) << committed.status();
      if (!committed.ok()) break;
      revisions = *std::move(committed);
    }
    done = true;
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const auto all = ListAll("key/");
        if (all.empty()) continue;
        EXPECT_EQ(all.size(), size_t{kKeys});
        for (const auto& [key, value] : all) EXPECT_EQ(value, all.begin()->second);
        EXPECT_TRUE(store().Get("key/7").ok());
      }
    });
  }
  writer.join();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(ListAll("key/").at("key/0"), std::to_string(kBatches - 1));
}

// Compare-and-put is what keeps two writers from losing each other's change.
TEST_P(StoreContract, NoIncrementIsLostBetweenWriters) {
  constexpr int kWriters = 4;
  constexpr int kEach = 25;
  ASSERT_TRUE(Put("count", "0", 0).ok());
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        const auto now = store().Get("count");
        const auto next =
            Put("count", std::to_string(std::stoi(now->value().value) + 1), now->value().revision);
        if (next.ok()) ++done;
        if (!next.ok() && !absl::IsAborted(next.status())) {
          ADD_FAILURE() << next.status();
          return;
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(store().Get("count")->value().value, std::to_string(kWriters * kEach));
}

// The store against a map, over random batches, lists and restarts.
TEST_P(StoreContract, BehavesAsAMapDoes) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<std::string, StoredRecord> model;
  int64_t greatest = 0;
  for (int step = 0; step < 300; ++step) {
    std::map<std::string, CompareAndPut> chosen;
    bool stale = false;
    for (unsigned i = 0; i <= random() % 5; ++i) {
      const std::string key = "k" + std::to_string(random() % 20);
      const auto known = model.find(key);
      CompareAndPut put{key, std::nullopt, known == model.end() ? 0 : known->second.revision};
      if (random() % 4 != 0) put.value = std::string(random() % 6000, static_cast<char>(random()));
      if (random() % 10 == 0) ++put.expected;
      chosen[key] = std::move(put);
    }
    std::vector<CompareAndPut> batch;
    for (const auto& [key, put] : chosen) {
      const auto known = model.find(key);
      stale |= put.expected != (known == model.end() ? 0 : known->second.revision);
      batch.push_back(put);
    }
    const auto revisions = store().Commit(batch);
    ASSERT_EQ(revisions.status().code(),
              stale ? absl::StatusCode::kAborted : absl::StatusCode::kOk);
    if (!stale) {
      for (size_t i = 0; i < batch.size(); ++i) {
        if (batch[i].value) {
          ASSERT_GT(revisions->at(i), greatest);
          model[batch[i].key] = {*batch[i].value, revisions->at(i)};
        } else {
          model.erase(batch[i].key);
        }
      }
      for (const int64_t revision : *revisions) greatest = std::max(greatest, revision);
    }
    if (GetParam().durable && random() % 50 == 0) Reopen();
  }
  EXPECT_EQ(Records(store()), model);
  EXPECT_TRUE(store().CheckIntegrity().ok()) << store().CheckIntegrity();
}

TEST_P(StoreContract, WhatWasCommittedSurvivesARestart) {
  if (!GetParam().durable) return;
  ASSERT_TRUE(Put("gone", "x", 0).ok());
  const int64_t a = Put("a", "one", 0).value();
  const int64_t gone = Put("gone", "y", store().Get("gone")->value().revision).value();
  const std::vector<CompareAndPut> removal = {{"gone", std::nullopt, gone}};
  ASSERT_TRUE(store().Commit(removal).ok());
  Reopen();
  EXPECT_EQ(Records(store()), (std::map<std::string, StoredRecord>{{"a", {"one", a}}}));
  // The greatest revision was that of a record that is gone: it is not given again all the same.
  EXPECT_GT(Put("gone", "z", 0).value(), gone);
}

TEST_P(StoreContract, ABackupHoldsOneSnapshotAndCanBeRestored) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Put("node/" + std::to_string(i), std::string(3000, 'a'), 0).ok());
  }
  const auto before = Records(store());
  const auto info = store().Backup(File("backup"));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->records, 50);
  EXPECT_EQ(static_cast<uintmax_t>(info->bytes), std::filesystem::file_size(File("backup")));
  // What comes after is not in it.
  ASSERT_TRUE(Put("later", "x", 0).ok());
  auto restored = GetParam().restore(File("backup"));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(Records(**restored), before);
  EXPECT_TRUE((*restored)->CheckIntegrity().ok());
  // It goes on where the original was: no revision is given twice.
  const std::vector<CompareAndPut> batch = {{"node/1", "changed", before.at("node/1").revision},
                                            {"new", "x", 0}};
  const auto revisions = (*restored)->Commit(batch);
  ASSERT_TRUE(revisions.ok()) << revisions.status();
  for (const auto& [key, record] : before) EXPECT_GT(revisions->at(1), record.revision);
}

TEST_P(StoreContract, ABackupSaysThatItIsOne) {
  const RecoveryState state{.store_id = "ours", .epoch = 7, .former = {"a former one"}};
  ASSERT_TRUE(Put(std::string(kStoreKey), EncodeStore(state), 0).ok());
  ASSERT_TRUE(Put("node/1", "as it was", 0).ok());
  const auto before = Records(store());
  ASSERT_TRUE(store().Backup(File("backup")).ok());
  EXPECT_EQ(Records(store()), before) << "the store itself is none";
  auto restored = GetParam().restore(File("backup"));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_TRUE((*restored)->CheckIntegrity().ok());
  const auto there = Records(**restored);
  EXPECT_EQ(there.at("node/1"), before.at("node/1"));
  RecoveryState expected = state;
  expected.backup = true;
  EXPECT_EQ(DecodeStore(there.at(std::string(kStoreKey)).value).value(), expected);
}

TEST_P(StoreContract, AnEmptyStoreCanBeBackedUp) {
  ASSERT_EQ(store().Backup(File("backup"))->records, 0);
  auto restored = GetParam().restore(File("backup"));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_TRUE(Records(**restored).empty());
}

TEST_P(StoreContract, ABackupNeverOverwritesAndLeavesNothingBehindWhenItFails) {
  ASSERT_TRUE(Put("a", "x", 0).ok());
  std::ofstream(File("precious")) << "not a backup";
  EXPECT_EQ(store().Backup(File("precious")).status().code(), absl::StatusCode::kAlreadyExists);
  std::filesystem::create_symlink(File("nowhere"), File("link"));
  EXPECT_EQ(store().Backup(File("link")).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store().Backup(File("none/backup")).status().code(), absl::StatusCode::kNotFound);
  std::string content;
  std::getline(std::ifstream(File("precious")), content);
  EXPECT_EQ(content, "not a backup");
  for (const auto& entry : std::filesystem::directory_iterator(File(""))) {
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  }
}

TEST_P(StoreContract, BackupsTakenWhileCommitsGoOnAreEachASnapshot) {
  std::atomic<bool> done = false;
  std::thread writer([&] {
    int64_t a = 0;
    int64_t b = 0;
    for (int n = 0; !done; ++n) {
      const std::vector<CompareAndPut> batch = {{"a", std::to_string(n), a},
                                                {"b", std::to_string(n), b}};
      const auto revisions = store().Commit(batch);
      EXPECT_TRUE(revisions.ok()) << revisions.status();
      if (!revisions.ok()) return;
      a = revisions->at(0);
      b = revisions->at(1);
    }
  });
  for (int i = 0; i < 5; ++i) {
    const std::string path = File("backup" + std::to_string(i));
    const auto info = store().Backup(path);
    EXPECT_TRUE(info.ok()) << info.status();
    auto restored = GetParam().restore(path);
    EXPECT_TRUE(restored.ok()) << restored.status();
    if (!restored.ok()) break;
    const auto records = Records(**restored);
    if (records.empty()) continue;
    EXPECT_EQ(records.at("a").value, records.at("b").value);
  }
  done = true;
  writer.join();
}

TEST_P(StoreContract, CountsWhatItDid) {
  ASSERT_TRUE(Put("a", "x", 0).ok());
  const std::vector<CompareAndPut> batch = {{"b", "x", 0}, {"c", "x", 0}};
  ASSERT_TRUE(store().Commit(batch).ok());
  ASSERT_FALSE(store().Commit(batch).ok());  // Aborted, which is no failure.
  EXPECT_EQ(store().Stats().commits, 2);
  EXPECT_EQ(store().Stats().records_written, 3);
  EXPECT_EQ(store().Stats().failed_commits, 0);
}

}  // namespace spoke::ipam
