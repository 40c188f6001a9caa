// A machine with a server, which is started again whenever it has ended, and the files beside it.
#pragma once

#include <memory>
#include <string>

#include "ipam-server/loop/store_witness.h"
#include "tests/sim/server.h"
#include "tests/support/temp_dir.h"

namespace spoke::sim {

class ServerHost {
 public:
  struct Edges {
    Basis& basis;
    Database& database;
    Fabric& fabric;
    // Whether the process on that machine has ended, as the kernel there would say.
    std::function<bool(const std::string& server)> has_ended;
  };
  ServerHost(const std::string& name, int64_t drift, const ipam::ServerSettings& settings,
             Edges edges)
      : edges_(std::move(edges)),
        settings_(settings),
        machine_(edges_.basis.schedule, name, drift) {
    StartIn(absl::ZeroDuration());
  }

  const std::string& name() const { return machine_.name(); }
  Machine& machine() { return machine_; }
  // nullptr: it is not running.
  ServerProcess* process() {
    return process_ != nullptr && process_->alive() ? process_.get() : nullptr;
  }
  ServerProcess* leader() {
    ServerProcess* running = process();
    return running != nullptr && running->leads() ? running : nullptr;
  }
  bool has_ended() const { return process_ == nullptr || !process_->alive(); }
  void CutFromStoreUntil(absl::Time until) { cut_until_ = until; }
  // Keeps it from being started until then.
  void HoldUntil(absl::Time until) { held_until_ = until; }
  // Loses what lies beside the store, as when it is moved to another machine.
  void Replace() {
    machine_.CountBoot();
    directory_ = std::make_unique<testing_support::TempDir>();
  }

 private:
  void OnDeath() {
    edges_.basis.schedule.After(absl::ZeroDuration(), [this] {
      process_.reset();
      StartIn(edges_.basis.random.Between(absl::Milliseconds(300), absl::Seconds(6)));
    });
  }
  void StartIn(absl::Duration wait) {
    edges_.basis.schedule.After(wait, [this] {
      const absl::Time now = edges_.basis.schedule.now();
      if (now < held_until_) return StartIn(held_until_ - now);
      if (edges_.database.synced) {
        edges_.database.records = *std::exchange(edges_.database.synced, std::nullopt);
        TellAll(edges_.database, /*replaced=*/false, edges_.basis.judge);
      }
      process_ = std::make_unique<ServerProcess>(
          settings_,
          ServerProcess::Edges{
              .basis = edges_.basis,
              .machine = machine_,
              .database = edges_.database,
              .fabric = edges_.fabric,
              .reaches_store = [this] { return edges_.basis.schedule.now() >= cut_until_; },
              .has_ended = edges_.has_ended,
              .on_death = [this] { OnDeath(); },
              .open_witness = [this] { return OpenWitness(); }});
      ServerProcess* process = process_.get();
      process->Enter([process] { process->Start(); });
    });
  }
  absl::StatusOr<ipam::StoreWitness> OpenWitness() {
    // All servers of a cluster have the same key.
    const bool is_first = edges_.database.records.empty();
    return ipam::StoreWitness::Open(
        directory_->path(), machine_.boot_id(),
        ipam::MarkKeys{.present = std::string(32, 'k'), .made = is_first});
  }

  const Edges edges_;
  const ipam::ServerSettings settings_;
  Machine machine_;
  std::unique_ptr<testing_support::TempDir> directory_ =
      std::make_unique<testing_support::TempDir>();
  std::unique_ptr<ServerProcess> process_;
  absl::Time cut_until_ = absl::InfinitePast();
  absl::Time held_until_ = absl::InfinitePast();
};

}  // namespace spoke::sim
