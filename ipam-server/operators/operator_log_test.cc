#include "ipam-server/operators/operator_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/testing/memory_store.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;

const Operator kAlice{.name = "alice", .role = Role::kAdmin, .from = "10.0.0.7"};
const Operator kBob{.name = "bob", .role = Role::kOperator, .from = "10.0.0.8"};
const absl::Time kStart = absl::FromUnixMillis(1'700'000'000'000);

class OperatorLogTest : public testing::Test {
 protected:
  void Record(const Operator& who, const std::string& what, absl::Time at, uint64_t policy = 0) {
    v1::OperatorRecord record = RecordOf(who, {.method = "SetNodeMode", .what = what}, at);
    record.set_policy_after(policy);
    ASSERT_TRUE(store_
                    .Commit(std::vector<CompareAndPut>{
                        {.key = keys_.Next(at), .value = record.SerializeAsString()}})
                    .ok());
  }
  std::vector<std::string> Whats(const v1::ListOperatorLogRequest& request = {}) {
    v1::ListOperatorLogResponse response;
    const absl::Status status = QueryOperatorLog(store_, request, 1, response);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> whats;
    for (const auto& record : response.records()) whats.push_back(record.what());
    return whats;
  }

  MemoryStore store_;
  OperatorLogKeys keys_{OperatorLogKeys::Newest(store_).value()};
};

TEST_F(OperatorLogTest, KeysRiseThoughTheClockIsSetBackAndTheServerStartsAgain) {
  const std::string first = keys_.Next(kStart);
  const std::string second = keys_.Next(kStart - absl::Hours(1));
  EXPECT_LT(first, second);
  ASSERT_TRUE(
      store_.Commit(std::vector<CompareAndPut>{{.key = second, .value = std::string("x")}}).ok());
  OperatorLogKeys after(OperatorLogKeys::Newest(store_).value());
  EXPECT_LT(second, after.Next(kStart - absl::Hours(2)));
}

TEST_F(OperatorLogTest, ListsTheNewestFirstAndOnlyWhatIsAsked) {
  Record(kAlice, "a", kStart);
  Record(kBob, "b", kStart + absl::Minutes(1), /*policy=*/7);
  Record(kAlice, "c", kStart + absl::Minutes(2));
  EXPECT_THAT(Whats(), ElementsAre("c", "b", "a"));
  v1::ListOperatorLogRequest request;
  request.set_limit(1);
  EXPECT_THAT(Whats(request), ElementsAre("c"));
  request.Clear();
  request.set_who("alice");
  EXPECT_THAT(Whats(request), ElementsAre("c", "a"));
  request.Clear();
  request.set_since_unix_ms(absl::ToUnixMillis(kStart + absl::Minutes(1)));
  EXPECT_THAT(Whats(request), ElementsAre("c", "b"));
  request.Clear();
  request.set_policy_only(true);
  EXPECT_THAT(Whats(request), ElementsAre("b"));
}

TEST_F(OperatorLogTest, ADamagedRecordIsNamed) {
  ASSERT_TRUE(store_
                  .Commit(std::vector<CompareAndPut>{
                      {.key = keys_.Next(kStart), .value = std::string("\xff")}})
                  .ok());
  v1::ListOperatorLogResponse response;
  EXPECT_EQ(QueryOperatorLog(store_, {}, 1, response).code(), absl::StatusCode::kDataLoss);
}

TEST_F(OperatorLogTest, KeepsTheNewestRecordsAndVersionsAlone) {
  for (int i = 0; i < 10; ++i) Record(kAlice, std::to_string(i), kStart + absl::Minutes(i));
  for (uint64_t version = 1; version <= 5; ++version) {
    for (const char* piece : {"000000", "000001"}) {
      ASSERT_TRUE(store_
                      .Commit(std::vector<CompareAndPut>{
                          {.key = PolicyHistoryPrefix(version) + piece, .value = std::string()}})
                      .ok());
    }
  }
  const OperatorLogLimits limits{.records = 4, .keep = absl::Hours(1), .policy_versions = 2};
  ASSERT_TRUE(TrimOperatorLog(store_, limits, kStart + absl::Minutes(10)).ok());
  EXPECT_THAT(Whats(), ElementsAre("9", "8", "7", "6"));
  std::vector<uint64_t> versions;
  ASSERT_TRUE(store_
                  .List(kPolicyHistoryPrefix,
                        [&](std::string_view key, const StoredRecord&) {
                          versions.push_back(*ParsePolicyHistoryKey(key));
                        })
                  .ok());
  EXPECT_THAT(versions, ElementsAre(4, 4, 5, 5));
  ASSERT_TRUE(TrimOperatorLog(store_, limits, kStart + absl::Hours(1) + absl::Minutes(8)).ok());
  EXPECT_THAT(Whats(), ElementsAre("9", "8"));
}

TEST_F(OperatorLogTest, ALongTextIsCutBetweenCharacters) {
  std::string text(kMaxSummaryBytes - 1, 'x');
  text += "\xc3\xa4 and more";
  const std::string kept = RecordOf(kAlice, {.method = "m", .what = text}, kStart).what();
  EXPECT_EQ(kept, std::string(kMaxSummaryBytes - 1, 'x') + "...");
}

}  // namespace
}  // namespace spoke::ipam
