// A store that several servers share: what is durable, who leads, and what goes wrong on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipam-server/store/store.h"
#include "tests/sim/process.h"
#include "tests/sim/schedule.h"
#include "tests/sim/trace.h"

namespace spoke::sim {

// What is on the disks of the store's members, and who may write there. Not thread-safe.
class StoreDisks {
 public:
  using Records = std::map<std::string, ipam::StoredRecord, std::less<>>;

  // What one transaction has written, by key, valid while somebody is told; no value: the record is
  // removed.
  using Changes = std::vector<std::pair<std::string_view, std::optional<std::string_view>>>;
  // Called once that is durable.
  using OnChange = std::function<void(const Changes& changes)>;
  void Watch(OnChange on_change) { on_change_ = std::move(on_change); }

  const Records& records() const { return records_; }
  // Whether transactions compare what they rest on: that their writer leads, and that what they
  // replace is what there is.
  bool Compares() const;
  // Writes one transaction, all of it or nothing. Errors: kAborted.
  absl::StatusOr<int64_t> Write(const std::vector<const ipam::CompareAndPut*>& puts);
  // Puts an older copy in place of what there is, as an operator does who restores a backup.
  void Restore(Records records);

  // Begins a term, in which only its leader may write.
  uint64_t BeginTerm() { return ++term_; }
  uint64_t term() const { return term_; }

  // --- Faults. ---

  // From now on what is written is lost with the next power cut; for mutants.
  void LoseUnsynced() { synced_ = records_; }
  bool CutPower();

 private:
  Records records_;
  std::optional<Records> synced_;  // Set: what a power cut leaves.
  int64_t last_revision_ = 0;
  uint64_t term_ = 0;
  OnChange on_change_;
};

// What may go wrong with commits at present.
struct StoreFaults {
  bool unreachable = false;  // This server does not reach the store.
  double refused = 0;        // The share of commits that fail and change nothing.
  double answers_lost = 0;   // The share that happen and answer kUnavailable.
  bool in_parts = false;     // Large commits are divided, as etcd's are, and may fail between.
};

// One server's way to the store. Not thread-safe, unlike stores of the product: there is one
// thread.
class SimStore final : public ipam::Store {
 public:
  struct Edges {
    StoreDisks& disks;
    Life& life;  // The server's.
    const StoreFaults& faults;
    Random& random;
    Trace& trace;
  };
  // Borrows the edges. Writes in `term`, and in no other.
  SimStore(const Edges& edges, uint64_t term) : edges_(edges), term_(term) {}

  absl::StatusOr<std::optional<ipam::StoredRecord>> Get(std::string_view key) override;
  using Store::List;
  absl::Status List(const ipam::ListOptions& options, const Visit& visit) override;
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const ipam::CompareAndPut> batch) override;
  absl::StatusOr<ipam::BackupInfo> Backup(const std::string&) override {
    return absl::UnimplementedError("operators of the simulation copy the disks");
  }
  absl::Status CheckIntegrity() override { return absl::OkStatus(); }
  ipam::StoreStats Stats() const override { return {}; }
  std::string Describe() const override { return "simulated"; }

  // Whether another server has been heard to lead: this one must end.
  bool deposed() const { return deposed_; }

 private:
  absl::Status WhyUnreadable() const;

  const Edges edges_;
  const uint64_t term_;
  bool deposed_ = false;
};

}  // namespace spoke::sim
