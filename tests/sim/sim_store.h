// The store of the simulated servers: one database, which outlives them, and a client in each.
//
// As etcd it refuses a commit whose fence is not the leader's, and divides a large batch into
// transactions (the real plan, with fewer writes in each). As SQLite it has one server, and a
// commit happens as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/store/store.h"
#include "tests/sim/basis.h"
#include "tests/sim/process.h"

namespace spoke::sim {

struct Database {
  using Records = std::map<std::string, ipam::StoredRecord, std::less<>>;

  Records records;
  int64_t last_revision = 0;

  // --- The leader's key, where there are several servers. ---
  bool fenced = false;
  int64_t fence = 0;   // Rises with each leader.
  std::string leader;  // Empty: nobody leads.
  absl::Time lease_ends = absl::InfinitePast();

  // The most writes in one transaction.
  size_t most_writes = ipam::kAtomicWrites;
  // What a crash takes back; only a mutant loses anything.
  std::optional<Records> synced = std::nullopt;
};

// Tells the judge all that `database` has. `replaced`: it is another one now, as after a restore,
// so that what was acknowledged before is not to be found.
void TellAll(const Database& database, bool replaced, Invariants& judge);

class StoreClient final : public ipam::Store {
 public:
  struct Edges {
    Basis& basis;
    Process& process;  // Dies at steps of a commit.
    Database& database;
    std::function<bool()> reachable;  // Whether the database can be asked now.
    std::function<void()> on_lost;    // Another server leads.
  };
  // `fence`: the leadership under which this client writes.
  StoreClient(Edges edges, int64_t fence) : edges_(std::move(edges)), fence_(fence) {}

  absl::StatusOr<std::optional<ipam::StoredRecord>> Get(std::string_view key) override;
  using ipam::Store::List;
  absl::Status List(const ipam::ListOptions& options, const Visit& visit) override;
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const ipam::CompareAndPut> batch) override;
  absl::StatusOr<ipam::BackupInfo> Backup(const std::string& path) override;
  absl::Status CheckIntegrity() override { return absl::OkStatus(); }
  ipam::StoreStats Stats() const override { return {}; }
  std::string Describe() const override { return "simulated"; }

  // Makes commits fail until then.
  void FailUntil(absl::Time until) { fails_until_ = until; }

 private:
  absl::Status CheckFence();
  absl::Status Apply(std::span<const ipam::CompareAndPut> batch, const std::vector<size_t>& chunk,
                     std::vector<int64_t>& revisions);
  absl::Status ApplyChunks(std::span<const ipam::CompareAndPut> batch,
                           std::vector<int64_t>& revisions);

  const Edges edges_;
  const int64_t fence_;
  absl::Time fails_until_ = absl::InfinitePast();
};

}  // namespace spoke::sim
