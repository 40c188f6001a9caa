#include "tests/sim/sim_store.h"

#include <algorithm>
#include <utility>

#include "ipam-server/store/etcd/chunks.h"
#include "lib/base/status.h"
#include "tests/sim/mutant.h"

namespace spoke::sim {

bool StoreDisks::Compares() const { return !Mutant(35); }

absl::StatusOr<int64_t> StoreDisks::Write(const std::vector<const ipam::CompareAndPut*>& puts) {
  std::vector<Records::iterator> places;  // Where each key is; the end: it is not there.
  places.reserve(puts.size());
  for (const ipam::CompareAndPut* put : puts) {
    const auto it = places.emplace_back(records_.find(put->key));
    const int64_t found = it == records_.end() ? 0 : it->second.revision;
    if (Compares() && found != put->expected) return ipam::Changed(*put, found);
  }
  ++last_revision_;
  Changes changes;
  changes.reserve(puts.size());
  for (size_t i = 0; i < puts.size(); ++i) {
    const ipam::CompareAndPut& put = *puts[i];
    changes.emplace_back(put.key, put.value);
    if (places[i] == records_.end()) {
      if (put.value) records_.try_emplace(put.key, ipam::StoredRecord{*put.value, last_revision_});
    } else if (put.value) {
      places[i]->second = {*put.value, last_revision_};
    } else {
      records_.erase(places[i]);
    }
  }
  if (on_change_) on_change_(changes);
  return last_revision_;
}

void StoreDisks::Restore(Records records) {
  const Records before = std::exchange(records_, std::move(records));
  if (!on_change_) return;
  Changes changes;
  for (const auto& [key, record] : before) {
    if (!records_.contains(key)) changes.emplace_back(key, std::nullopt);
  }
  for (const auto& [key, record] : records_) changes.emplace_back(key, record.value);
  on_change_(changes);
}

bool StoreDisks::CutPower() {
  if (!synced_) return false;
  Restore(*std::exchange(synced_, std::nullopt));
  return true;
}

absl::Status SimStore::WhyUnreadable() const {
  if (edges_.life.dead()) return absl::UnavailableError("the process is dead");
  if (edges_.faults.unreachable) return absl::UnavailableError("the store does not answer");
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ipam::StoredRecord>> SimStore::Get(std::string_view key) {
  RETURN_IF_ERROR(WhyUnreadable());
  const auto it = edges_.disks.records().find(key);
  if (it == edges_.disks.records().end()) return std::nullopt;
  return it->second;
}

absl::Status SimStore::List(const ipam::ListOptions& options, const Visit& visit) {
  RETURN_IF_ERROR(WhyUnreadable());
  const StoreDisks::Records& records = edges_.disks.records();
  std::vector<StoreDisks::Records::const_iterator> found;
  for (auto it = records.lower_bound(options.range.first);
       it != records.end() && options.range.Contains(it->first); ++it) {
    found.push_back(it);
  }
  if (options.descending) std::reverse(found.begin(), found.end());
  if (options.limit != 0 && found.size() > options.limit) found.resize(options.limit);
  for (const auto& it : found) visit(it->first, it->second);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> SimStore::Commit(std::span<const ipam::CompareAndPut> batch) {
  RETURN_IF_ERROR(ipam::ValidateBatch(batch));
  if (batch.empty()) return std::vector<int64_t>();
  RETURN_IF_ERROR(WhyUnreadable());
  // A process may die before its commit, or with the commit on its way.
  const bool dies = !edges_.life.Acts();
  if (dies && edges_.random.Chance(0.5)) return absl::UnavailableError("the process is dead");
  if (edges_.disks.Compares() && edges_.disks.term() != term_) {
    deposed_ = true;
    return absl::FailedPreconditionError("another server leads");
  }
  if (edges_.random.Chance(edges_.faults.refused)) {
    edges_.trace.Count("commit refused");
    return absl::UnavailableError("the store refuses");
  }
  ASSIGN_OR_RETURN(auto steps, ipam::etcd::PlanChunks(batch));
  const bool in_parts = steps.size() > 1 || steps.front().size() > 1;
  if (in_parts) edges_.trace.Count("commit in parts");
  std::vector<int64_t> revisions(batch.size());
  for (auto& step : steps) {
    // The chunks of a step are written side by side: any of them may be the last that succeeds.
    for (size_t i = step.size(); i > 1; --i) std::swap(step[i - 1], step[edges_.random.Below(i)]);
    for (const ipam::etcd::Chunk& chunk : step) {
      if (in_parts && (dies || edges_.faults.in_parts) && edges_.random.Chance(0.2)) {
        edges_.trace.Count("commit cut short");
        return absl::UnavailableError("the store has taken a part");
      }
      std::vector<const ipam::CompareAndPut*> puts;
      for (const size_t i : chunk) puts.push_back(&batch[i]);
      if (Mutant(36) && edges_.random.Chance(0.1)) edges_.disks.LoseUnsynced();
      ASSIGN_OR_RETURN(const int64_t revision, edges_.disks.Write(puts));
      for (const size_t i : chunk) revisions[i] = batch[i].value ? revision : 0;
    }
  }
  if (dies) {
    edges_.trace.Count("server died with its commit");
    return absl::UnavailableError("the process is dead");
  }
  if (edges_.random.Chance(edges_.faults.answers_lost)) {
    edges_.trace.Count("commit answer lost");
    return absl::UnavailableError("the answer to a commit was lost");
  }
  return revisions;
}

}  // namespace spoke::sim
