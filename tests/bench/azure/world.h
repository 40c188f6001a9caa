// A cluster on a simulated clock: the server's own loop, store records included, its Azure client,
// a simulated Azure, and agents that do as they are told.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/store/testing/memory_store.h"
#include "tests/bench/azure/simulated_azure.h"

namespace spoke::azure_bench {

struct WorldOptions {
  int nodes = 7500;
  int scale_sets = 8;
  uint32_t addresses = 27;  // The target of a node while it has no pods.
  uint32_t batch = 9;       // The steps in which it grows.
  bool blocks = false;      // Whether blocks of /28 are used.
  int baked = 0;            // The entries in the model of the scale sets.
  int identities = 1;
  double share_for_others = 0.1;
  absl::Duration round_trip = absl::Milliseconds(60);
  absl::Duration listing = absl::Minutes(5);
  absl::Duration audit = absl::Minutes(10);
  uint64_t seed = 1;
  azure_sim::Knobs knobs;
};

// The agents: what they were told, and what they do.
class Agents final : public ipam::AgentLink {
 public:
  void Send(ipam::SessionId session, ipam::ToAgent message) override;
  void ReadNext(ipam::SessionId) override {}
  void Close(ipam::SessionId, absl::Status) override { ++closed; }

  // The addresses that each node may assign now, by session.
  std::vector<std::map<ip::Address, bool>> assignable;  // The value says whether a pod has it.
  std::vector<std::pair<ipam::SessionId, node_api::ReclaimRequest>> reclaims;
  uint64_t total = 0;    // The addresses over all nodes.
  uint64_t doubled = 0;  // The addresses told to a node while another had them.
  uint64_t closed = 0;

 private:
  void Add(ipam::SessionId session, const ip::Prefix& range);
  void Remove(ipam::SessionId session, const ip::Prefix& range);

  absl::flat_hash_map<std::string, ipam::SessionId> holders_;
};

class World {
 public:
  static absl::StatusOr<std::unique_ptr<World>> Create(const WorldOptions& options);

  // All nodes say hello at this moment.
  void Hello();
  // Lets time pass until `until`, or until `done` holds.
  void Run(absl::Time until, const std::function<bool()>& done);

  void Report(int node, node_api::AssignmentReport report);
  // Answers what the server asked back: all that no pod has is given.
  void AnswerReclaims();

  // Returns the addresses that are assignable at a node but not on its NIC's wire at this moment: a
  // fault.
  uint64_t NotOnTheWire() const;

  absl::Time now() const { return clock_.Now(); }
  absl::Time began() const { return began_; }
  Agents& agents() { return agents_; }
  SimulatedAzure& azure() { return *azure_; }
  azure_sim::ArmModel& arm() { return *arm_; }
  const WorldOptions& options() const { return options_; }
  uint64_t problems() const { return log_.problems; }

 private:
  class CountingLog final : public telemetry::Log {
   public:
    void Write(telemetry::Level level, std::string_view event,
               std::initializer_list<telemetry::Field> fields) override;
    uint64_t problems = 0;
  };

  explicit World(const WorldOptions& options) : options_(options) {}
  absl::Status SetUp();
  void List();
  void OnListing(ipam::CloudListing listing);
  ipam::ServerSettings Settings() const;
  ipam::azure::Settings AzureSettings() const;
  azure_sim::SimSpec Spec() const;
  std::string SetId(int set) const;
  int SetOf(int node) const { return node % options_.scale_sets; }

  const WorldOptions options_;
  // The time is a whole minute, so that a phase of the limits means what it says.
  os::SimClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  const absl::Time began_ = clock_.Now();
  CountingLog log_;
  Agents agents_;
  ipam::MemoryStore store_;
  std::unique_ptr<azure_sim::ArmModel> arm_;
  ipam::Mailbox mailbox_;
  std::unique_ptr<SimulatedAzure> azure_;
  std::unique_ptr<ipam::FleetLoop> loop_;
  std::vector<node_api::Hello> hellos_;
  // The times are as AuditJob has them: an audit follows a listing with one of its own, and the
  // pause till the next begins when all is there.
  absl::Time next_listing_;
  absl::Time next_audit_;
  bool auditing_ = false;
  absl::Time next_turn_;
};

}  // namespace spoke::azure_bench
