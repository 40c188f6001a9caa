// The promises of Store, as tests. Each back end's *_test.cc instantiates them with its own
// factory.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/store/store.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {

struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<Store>(const std::string& directory)> open;
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

  Store& store() { return *store_; }

 private:
  const testing_support::TempDir directory_;
  const std::unique_ptr<Store> store_ = GetParam().open(directory_.path());
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

}  // namespace spoke::ipam
