#include "tests/sim/sim_store.h"

#include <algorithm>

#include "fmt/core.h"
#include "ipam-server/store/etcd/chunks.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"

namespace spoke::sim {
namespace {

constexpr double kChanceOfFailure = 0.004;
constexpr double kChanceOfLostAnswer = 0.004;

// "node/<name>/<vm id>".
std::optional<NodeKey> NodeOfKey(std::string_view key) {
  if (!key.starts_with(ipam::kNodeKeyPrefix)) return std::nullopt;
  key.remove_prefix(ipam::kNodeKeyPrefix.size());
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return NodeKey{std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

void TellStored(std::string_view key, const std::optional<std::string>& value, Invariants& judge) {
  const auto node = NodeOfKey(key);
  if (!node) return;
  if (!value) return judge.Stored(*node, std::nullopt);
  auto record = ipam::DecodeNode(*value);
  if (!record.ok()) return judge.Broken(6, fmt::format("{}: {}", key, record.status().ToString()));
  judge.Stored(*node, *std::move(record));
}

}  // namespace

void TellAll(const Database& database, bool replaced, Invariants& judge) {
  if (replaced) judge.StoreReplaced();
  judge.StoreBegins();
  for (const auto& [key, record] : database.records) TellStored(key, record.value, judge);
  judge.StoreEnds();
}

absl::StatusOr<std::optional<ipam::StoredRecord>> StoreClient::Get(std::string_view key) {
  if (!edges_.reachable()) return absl::UnavailableError("no member of the store answers");
  const auto& records = edges_.database.records;
  const auto it = records.find(key);
  if (it == records.end()) return std::nullopt;
  return it->second;
}

absl::Status StoreClient::List(const ipam::ListOptions& options, const Visit& visit) {
  if (!edges_.reachable()) return absl::UnavailableError("no member of the store answers");
  std::vector<std::pair<std::string, ipam::StoredRecord>> found;
  const auto& records = edges_.database.records;
  for (auto it = records.lower_bound(options.range.first);
       it != records.end() && options.range.Contains(it->first); ++it) {
    found.emplace_back(*it);
  }
  if (options.descending) std::reverse(found.begin(), found.end());
  if (options.limit != 0 && found.size() > options.limit) found.resize(options.limit);
  for (const auto& [key, record] : found) visit(key, record);
  return absl::OkStatus();
}

absl::Status StoreClient::CheckFence() {
  Database& database = edges_.database;
  if (!database.fenced || database.fence == fence_) return absl::OkStatus();
  edges_.basis.Happened(Fault::kDeposedLeaderRefused, edges_.process.who());
  if (edges_.basis.Has(Mutant::kStoreWithoutFence)) return absl::OkStatus();
  edges_.on_lost();
  return absl::FailedPreconditionError("another server leads");
}

absl::Status StoreClient::Apply(std::span<const ipam::CompareAndPut> batch,
                                const std::vector<size_t>& chunk, std::vector<int64_t>& revisions) {
  RETURN_IF_ERROR(CheckFence());
  Database& database = edges_.database;
  for (const size_t i : chunk) {
    const auto it = database.records.find(batch[i].key);
    const int64_t found = it == database.records.end() ? 0 : it->second.revision;
    const bool compares = !edges_.basis.Has(Mutant::kStoreIgnoresRevisions) &&
                          !edges_.basis.Has(Mutant::kStoreWithoutFence);
    if (compares && found != batch[i].expected) return ipam::Changed(batch[i], found);
  }
  const int64_t revision = ++database.last_revision;
  edges_.basis.judge.StoreBegins();
  for (const size_t i : chunk) {
    TellStored(batch[i].key, batch[i].value, edges_.basis.judge);
    if (batch[i].value) {
      database.records.insert_or_assign(batch[i].key,
                                        ipam::StoredRecord{*batch[i].value, revision});
      revisions[i] = revision;
    } else {
      database.records.erase(batch[i].key);
    }
  }
  edges_.basis.judge.StoreEnds();
  return absl::OkStatus();
}

absl::Status StoreClient::ApplyChunks(std::span<const ipam::CompareAndPut> batch,
                                      std::vector<int64_t>& revisions) {
  Basis& basis = edges_.basis;
  ASSIGN_OR_RETURN(auto steps, ipam::etcd::PlanChunks(batch, edges_.database.most_writes));
  if (basis.Has(Mutant::kStagesReversed)) std::reverse(steps.begin(), steps.end());
  size_t chunks = 0;
  for (const auto& step : steps) chunks += step.size();
  if (chunks > 1) basis.Happened(Fault::kCommitInChunks, edges_.process.who());
  for (auto& step : steps) {
    // Those of one step may be written in any order.
    for (size_t i = step.size(); i > 1; --i) std::swap(step[i - 1], step[basis.random.Below(i)]);
    for (const auto& chunk : step) {
      edges_.process.Step("commit of a transaction");
      if (chunks > 1 && basis.random.Chance(0.01 * basis.faults)) {
        basis.Happened(Fault::kStoreFails, edges_.process.who());
        return absl::UnavailableError("the store did not answer in time");
      }
      RETURN_IF_ERROR(Apply(batch, chunk, revisions));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> StoreClient::Commit(
    std::span<const ipam::CompareAndPut> batch) {
  Basis& basis = edges_.basis;
  RETURN_IF_ERROR(ipam::ValidateBatch(batch));
  if (batch.empty()) return std::vector<int64_t>();
  const bool dies = edges_.process.dies_next();
  if (dies) basis.coverage.Count(Fault::kServerKilledInACommit);
  edges_.process.Step("commit");
  const bool lies = basis.Has(Mutant::kAcknowledgedBeforeCommit);
  if (!edges_.reachable()) {
    basis.Happened(Fault::kStoreUnreachable, edges_.process.who());
    return absl::UnavailableError("no member of the store answers");
  }
  if (basis.schedule.now() < fails_until_ || basis.random.Chance(kChanceOfFailure * basis.faults)) {
    basis.Happened(Fault::kStoreFails, edges_.process.who());
    if (lies) return std::vector<int64_t>(batch.size(), edges_.database.last_revision);
    return absl::ResourceExhaustedError("the disk is full");
  }
  std::vector<int64_t> revisions(batch.size());
  if (basis.Has(Mutant::kStoreLosesTail) && basis.random.Chance(0.2)) {
    edges_.database.synced = edges_.database.records;
  }
  RETURN_IF_ERROR(ApplyChunks(batch, revisions));
  edges_.process.Step("answer to a commit");
  if (basis.random.Chance(kChanceOfLostAnswer * basis.faults)) {
    basis.Happened(Fault::kStoreAnswerLost, edges_.process.who());
    return absl::UnavailableError("the answer to a commit was lost");
  }
  return revisions;
}

absl::StatusOr<ipam::BackupInfo> StoreClient::Backup(const std::string& /*path*/) {
  return absl::UnimplementedError("the world copies the database itself");
}

}  // namespace spoke::sim
