// What a plan does to the fleet: faults, and what operators want.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/reservations.h"
#include "ipam-server/loop/server_state.h"
#include "ipam-server/operators/policy_change.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/policy/policy_file.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/sim/world.h"

namespace spoke::sim {
namespace {

// The share of what fails while something fails.
double ShareOf(const PlannedEvent& event) {
  return event.amount > 0 ? static_cast<double>(event.amount) / 100 : 0.3;
}

}  // namespace

// For a while the share is `value`, and then nothing, whoever else has changed it.
void World::For(absl::Duration lasts, double& share, double value) {
  share = value;
  schedule_.After(lasts, [&share] { share = 0; });
}

void World::Do(const PlannedEvent& event) {
  switch (TargetOf(event.act)) {
    case Target::kMachine:
      return DoToMachine(TargetNode(event), event);
    case Target::kAllAgents:
      for (const auto& node : nodes_) {
        if (node->agent) node->agent->life().DieAfter(static_cast<int>(event.amount));
      }
      return;
    case Target::kServer:
      return DoToServer(event);
    case Target::kEdges:
      return DoToEdges(event);
    case Target::kOperator:
      return DoAsOperator(event);
  }
}

void World::DoToMachine(Node& node, const PlannedEvent& event) {
  const auto amount = static_cast<uint64_t>(std::max<int64_t>(1, event.amount));
  if (event.act == Act::kStartPods) node.runtime->Start(amount);
  if (event.act == Act::kStopPods) node.runtime->Stop(amount);
  if (event.act == Act::kRestartPods) node.runtime->Restart(amount);
  if (event.act == Act::kReplace) Replace(node);
  if (event.act == Act::kScaleIn && node.machine.exists) ScaleIn(node, event.lasts);
  if (event.act == Act::kAnnounce && node.machine.exists) {
    Announce(node, event.lasts, /*is_deleted=*/event.amount == 1);
  }
  if (event.act == Act::kLie && node.machine.exists) Lie(node, event.lasts);
  if (event.act == Act::kReboot && node.machine.exists) Reboot(node);
  if (event.act == Act::kReimage && node.machine.exists) Reimage(node);
  if (event.act == Act::kDouble) AddDouble(node, event);
  if (event.act == Act::kTakeOff) {
    provider_->TakeOff(node.machine.vm_id, static_cast<size_t>(event.amount));
  }
  if (event.act == Act::kWriteBack) provider_->WriteBack(node.machine.vm_id, event.lasts);
  if (event.act == Act::kCutNode) {
    network_.CutOffNode(node.machine.index, schedule_.now() + event.lasts);
    trace_.Count("machine cut off");
  }
  if (event.act == Act::kKillAgent && node.agent) {
    node.agent->life().DieAfter(static_cast<int>(event.amount));
  }
}

void World::OnChangedByOthers(const std::string& vm, const std::vector<ip::Prefix>& lost) {
  laws_.OnChangedByOthers(vm, lost);
  schedule_.After(Laws::kMending - Laws::kUnderWay, [this, vm] { CheckMended(vm); });
}

// A server that has just begun has to look twice at what another had seen.
void World::CheckMended(const std::string& vm) {
  schedule_.After(Laws::kUnderWay,
                  [this, vm, began = schedule_.now(), before = laws_.UnmendedOn(vm)] {
                    if (leads_since_ > began - Laws::kUnderWay) return CheckMended(vm);
                    laws_.CheckMended(vm, before);
                  });
}

void World::DoToServer(const PlannedEvent& event) {
  if (event.act == Act::kServerClock) {
    hosts_[event.target % hosts_.size()]->ahead += absl::Seconds(event.amount);
    return;
  }
  Host* const leader = Leader();
  if (leader == nullptr) return;
  StoreFaults& faults = leader->store_faults;
  if (event.act == Act::kCutServer) {
    network_.CutOffServer(leader->index, schedule_.now() + event.lasts);
    trace_.Count("server cut off");
  } else if (event.act == Act::kKillServer) {
    leader->server->life().DieAfter(static_cast<int>(event.amount));
    Tend(*leader);
  } else if (event.act == Act::kRebootServer) {
    ++leader->boots;
    disks_.CutPower();
    BuryServer(*leader, /*silent=*/true, absl::Seconds(5));
  } else if (event.act == Act::kStandStill) {
    leader->server->life().StandStillUntil(schedule_.now() + event.lasts);
    network_.CutOffServer(leader->index, schedule_.now() + event.lasts);
    trace_.Count("server stood still");
  } else if (event.act == Act::kCutStore) {
    faults.unreachable = true;
    schedule_.After(event.lasts, [&faults] { faults.unreachable = false; });
    trace_.Count("server cut off from the store");
  } else if (event.act == Act::kStoreRefuses) {
    For(event.lasts, faults.refused, ShareOf(event));
    faults.in_parts = true;
  } else if (event.act == Act::kStoreForgets) {
    For(event.lasts, faults.answers_lost, ShareOf(event));
  }
}

void World::DoToEdges(const PlannedEvent& event) {
  if (event.act == Act::kCloudRefuses) For(event.lasts, cloud_faults_.refused, ShareOf(event));
  if (event.act == Act::kCloudForgets) For(event.lasts, cloud_faults_.answers_lost, ShareOf(event));
  if (event.act == Act::kStaleListings) For(event.lasts, cloud_faults_.listings_stale, 1);
  if (event.act == Act::kNetworkSlow) For(event.lasts, network_faults_.slow, ShareOf(event));
  if (event.act == Act::kJournalFull)
    For(event.lasts, machine_faults_.journal_full, ShareOf(event));
  if (event.act == Act::kKernelRefuses)
    For(event.lasts, machine_faults_.kernel_refuses, ShareOf(event));
  if (event.act == Act::kCloudSlow) {
    cloud_faults_.most = absl::Seconds(90);
    schedule_.After(event.lasts, [this] { cloud_faults_.most = CloudFaults().most; });
  }
  if (event.act == Act::kLoseDels) {
    For(event.lasts, runtime_faults_.del_lost, ShareOf(event));
    For(event.lasts, runtime_faults_.del_doubled, ShareOf(event));
    For(event.lasts, runtime_faults_.plugin_killed, ShareOf(event));
  }
  if (event.act == Act::kKillPlugins) {
    For(event.lasts, runtime_faults_.plugin_killed, ShareOf(event));
    For(event.lasts, runtime_faults_.late_hang_up, 1);
  }
}

void World::Change(
    std::string what,
    std::function<absl::StatusOr<ipam::Effects>(ipam::ServerState&, absl::Time)> change) {
  Host* const leader = Leader();
  if (leader == nullptr) return;
  // A server that stands still looks at the clock once it goes on.
  leader->server->Change(
      [change = std::move(change), &clock = leader->server->clock()](
          ipam::ServerState& state, ipam::RawRecords&) { return change(state, clock.Now()); },
      [this, what](const absl::Status& done) {
        trace_.Say("operator {}: {}", what, base::MessageOf(done));
        if (done.ok()) trace_.Count(what);
      });
  Tend(*leader);
}

void World::SetMode(const std::string& node, ipam::NodeMode mode, std::string what) {
  Change(std::move(what), [node, mode](ipam::ServerState& state, absl::Time now) {
    return ipam::SetMode(state.fleet, node, mode, now);
  });
}

void World::DoToNodeAsOperator(const Node& target, const PlannedEvent& event) {
  const std::string& node = target.machine.name;
  if (event.act == Act::kDrain) SetMode(node, ipam::NodeMode::kDraining, "drain");
  if (event.act == Act::kUndrain) SetMode(node, ipam::NodeMode::kActive, "undrain");
  if (event.act == Act::kFreeze) {
    SetMode(node, ipam::NodeMode::kFrozen, "freeze");
    schedule_.After(event.lasts, [this, node] { SetMode(node, ipam::NodeMode::kActive, "thaw"); });
  }
  if (event.act == Act::kRetry) {
    Change("retry",
           [node](ipam::ServerState& state, absl::Time) { return ipam::Retry(state.fleet, node); });
  }
  if (event.act == Act::kRelease) Release(target, /*by_force=*/event.amount == 1);
  if (event.act == Act::kForget) ForgetFormer(target);
  if (event.act == Act::kQuarantine) QuarantineOneOf(node, event.amount);
}

// By force what a container has that the runtime knows no more: its DEL was lost, or is late.
void World::Release(const Node& node, bool by_force) {
  Change(by_force ? "release by force" : "release",
         [this, &node, by_force](ipam::ServerState& state,
                                 absl::Time /*now*/) -> absl::StatusOr<ipam::Effects> {
           const std::string& name = node.machine.name;
           const ipam::NodeRecord* record = state.fleet.ledger.Find({name, node.machine.vm_id});
           if (record == nullptr) return absl::NotFoundError("it is not there");
           for (const auto& [base, configuration] : record->configurations) {
             for (size_t i = 0; i < configuration.slots.size(); ++i) {
               const ip::Address address = configuration.AddressAt(i);
               const auto& lessee = configuration.slots[i].lessee;
               if (!by_force && configuration.IsAvailable()) {
                 auto released = ipam::Release(state.fleet, address, name);
                 if (released.ok()) laws_.OnPardon(configuration.range.size());
                 return released;
               }
               if (by_force && lessee && !node.runtime->Has(lessee->container_id)) {
                 return ipam::ForceRelease(state.fleet, address, name, "its pod is gone");
               }
             }
           }
           return absl::NotFoundError("it has none");
         });
}

void World::DoAsOperator(const PlannedEvent& event) {
  const Node& target = TargetNode(event);
  const std::string& node = target.machine.name;
  DoToNodeAsOperator(target, event);
  if (event.act == Act::kReserve) {
    const ipam::ReservationRequest request{
        .name = fmt::format("job-{}", schedule_.steps()),
        .nodes = {node},
        .addresses_per_node = static_cast<uint32_t>(event.amount),
        .ttl = absl::Minutes(10)};
    Change("reserve", [request](ipam::ServerState& state, absl::Time now) {
      return ipam::Reserve(state.fleet, request, now, /*dry_run=*/false);
    });
  } else if (event.act == Act::kEndReservations) {
    Change("end reservations",
           [](ipam::ServerState& state, absl::Time) -> absl::StatusOr<ipam::Effects> {
             ipam::Effects effects;
             while (!state.fleet.reservations.all().empty()) {
               const std::string name = state.fleet.reservations.all().begin()->first;
               auto ended = ipam::EndReservation(state.fleet, name);
               if (!ended.ok()) return ended.status();
               effects.Merge(*std::move(ended));
             }
             return effects;
           });
  } else if (event.act == Act::kAudit) {
    AuditAndRepair();
  } else if (event.act == Act::kApplyPolicy) {
    ApplyPolicy(event);
  } else if (event.act == Act::kResizePool) {
    ResizePool(event);
  } else if (event.act == Act::kConfirm) {
    ConfirmRecovery(/*once_all_spoke=*/event.amount > 0);
  } else if (event.act == Act::kBackup) {
    backup_ = disks_.records();
    const auto own = backup_->find(ipam::kStoreKey);
    if (event.amount > 0 && own != backup_->end()) {
      own->second.value = ipam::MarkedAsBackup(own->second.value).value();
    }
    trace_.Count("backup");
  } else if (event.act == Act::kRestore) {
    Restore(/*on_other_machines=*/event.amount > 0);
  } else if (event.act == Act::kLift) {
    Change("lift", [](ipam::ServerState& state, absl::Time now) -> absl::StatusOr<ipam::Effects> {
      ipam::Effects effects;
      const auto entries = state.fleet.ledger.quarantine().entries;
      for (const auto& [address, quarantine] : entries) {
        if (quarantine.until) continue;
        auto lifted = ipam::SetQuarantine(state.fleet, address, std::nullopt, now);
        if (!lifted.ok()) return lifted.status();
        effects.Merge(*std::move(lifted));
      }
      return effects;
    });
  } else if (event.act == Act::kUnfreeze) {
    Unfreeze();
  }
}

std::string TextOf(const ipam::ObjectSet& objects) {
  std::string text;
  for (const auto& [key, object] : objects.objects()) {
    text += fmt::format("{}/{} {}\n", key.kind, key.name, ipam::EncodeObject(*object));
  }
  return text;
}

void World::ApplyPolicy(const PlannedEvent& event) {
  std::string file;
  const int64_t count = std::max<int64_t>(1, event.amount);
  for (int64_t i = 0; i < count; ++i) {
    file += fmt::format(
        "---\napiVersion: spoke/v1\nkind: DestinationGroup\nmetadata: {{name: g-{}}}\n"
        "spec: {{cidrs: [198.{}.{}.{}/32]}}\n",
        i, 18 + event.target % 2, i / 256, i % 256);
  }
  std::vector<ipam::ObjectKey> gone;
  for (int64_t i = count; i < count + 40; ++i) {
    gone.push_back({"DestinationGroup", fmt::format("g-{}", i)});
  }
  ChangeObjects(file, gone, "policy applied");
}

// A pool that nodes have addresses of neither goes nor leaves any of these out: that is refused.
void World::ResizePool(const PlannedEvent& event) {
  if (settings_.azure) return;  // There pools have to cover the whole subnet.
  const uint64_t which = event.target % kMorePools;
  const std::string name = fmt::format("more-{}", which);
  if (event.amount == 1) return ChangeObjects("", {{"Pool", name}}, "pool deleted");
  const ip::Address first = ip::Prefix::Parse(kMorePoolsCidr).value().base();
  const ip::Prefix cidr =
      ip::Prefix::Of(ip::Advance(first, which << 9U), 27 - static_cast<int>(event.amount)).value();
  std::string spec = fmt::format("cidr: {}", cidr.ToString());
  if (settings_.block_length != 0) {
    spec += fmt::format(", blockPrefixLength: {}", settings_.block_length);
  }
  ChangeObjects(fmt::format("apiVersion: spoke/v1\nkind: Pool\nmetadata: {{name: {}}}\n"
                            "spec: {{{}}}\n",
                            name, spec),
                {}, "pool resized");
}

// As `spokectl apply` and `spokectl delete` do it: planned with what is in force, put into force if
// that still is. With many objects the store needs several transactions.
void World::ChangeObjects(const std::string& file, const std::vector<ipam::ObjectKey>& gone,
                          const std::string& what) {
  Host* const leader = Leader();
  if (leader == nullptr) return;
  struct InForce {
    ipam::ObjectSet set;
    ipam::PolicyWorld world;
  };
  // Shared: what a server does not answer at once it may answer later.
  const auto found = std::make_shared<std::optional<InForce>>();
  leader->server->Look([found](const ipam::FleetView& view) {
    found->emplace(InForce{.set = view.state.objects, .world = {}});
    (*found)->world.configured = view.state.configured;
    (*found)->world.used = ipam::PoolUses(view.fleet);
  });
  if (!*found) return;
  const auto& [set, world] = **found;
  laws_.CheckPolicy(set.version(), TextOf(set));
  const absl::Time now = leader->server->clock().Now();
  const std::vector<ipam::PolicyFileText> files{{"policy.yaml", file}};
  auto plan = file.empty() ? ipam::PlanDelete(set, gone, world, now)
                           : ipam::PlanApply(set, ipam::ParsePolicyFiles(files), world, now, gone);
  if (!plan.ok()) {
    trace_.Say("operator changes objects: {}", base::MessageOf(plan.status()));
    return trace_.Count("objects refused");
  }
  if (plan->next.version() == set.version()) return;
  const uint64_t version = plan->next.version();
  laws_.OnPolicyAsked(version, TextOf(plan->next));
  const auto change =
      std::make_shared<ipam::PolicyChange>(ServerSettingsOf(), *plan, set.version());
  leader->server->Change(
      [change, &clock = leader->server->clock()](
          ipam::ServerState& state, ipam::RawRecords& raw) -> absl::StatusOr<ipam::Effects> {
        ASSIGN_OR_RETURN(auto effects, change->PutIntoForce(state, raw, clock.Now()));
        if (!effects) return absl::AbortedError("others have changed it");
        return *std::move(effects);
      },
      [this, version, what](const absl::Status& done) {
        trace_.Say("{}, version {}: {}", what, version, base::MessageOf(done));
        if (!done.ok()) return;
        trace_.Count(what);
        laws_.OnPolicyInForce(version);
      });
  Tend(*leader);
}

void World::AuditAndRepair() {
  Host* const leader = Leader();
  if (leader == nullptr) return;
  leader->server->AuditAndRepair(absl::Seconds(10), [this](size_t repaired) {
    trace_.Say("audit repairs {}", repaired);
    trace_.Count("audit");
    if (repaired > 0) trace_.Count("audit that repairs something");
  });
}

void World::Unfreeze() {
  Change("unfreeze",
         [this](ipam::ServerState& state, absl::Time now) -> absl::StatusOr<ipam::Effects> {
           // What was refused may go, and what went before counts no more.
           const ipam::BreakerState& breaker = state.fleet.breaker.state();
           if (breaker.freeze) {
             laws_.OnPardon(breaker.freeze->refused.addresses);
             for (const auto& freed : breaker.freed) laws_.OnPardon(freed.addresses);
           }
           return ipam::LiftFreeze(state.fleet, now);
         });
}

void World::ConfirmRecovery(bool once_all_spoke) {
  Change("confirm recovery",
         [this, once_all_spoke](ipam::ServerState& state,
                                absl::Time now) -> absl::StatusOr<ipam::Effects> {
           if (state.recovery.phase() != ipam::Recovery::Phase::kRecovering) {
             const bool ended = state.recovery.state().recovered != absl::InfinitePast();
             if (ended && !confirmed_) trace_.Count("recovery over without an operator");
             return absl::FailedPreconditionError("nothing to confirm");
           }
           const auto& spoken = state.recovery.spoken();
           const bool all_spoke = std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
             const Machine& machine = node->machine;
             return !machine.exists || node->runtime->running() == 0 ||
                    spoken.contains({machine.name, machine.vm_id});
           });
           if (once_all_spoke && !all_spoke) {
             return absl::FailedPreconditionError("machines with pods have yet to speak");
           }
           const uint64_t silent =
               state.recovery.Silent(ipam::NodesWithAddresses(state.fleet.ledger));
           confirmed_ = true;
           return ipam::ConfirmRecovery(state, silent, now);
         });
}

// Of the addresses that the node has, those in use come first; `which` chooses one.
void World::QuarantineOneOf(const std::string& node, int64_t which) {
  Change("quarantine",
         [this, node, which](ipam::ServerState& state,
                             absl::Time now) -> absl::StatusOr<ipam::Effects> {
           const ipam::NodeRecord* record = ipam::FindByName(state.fleet.ledger, node);
           if (record == nullptr) return absl::NotFoundError("it is not there");
           std::vector<ip::Address> in_use;
           std::vector<ip::Address> others;
           for (const auto& [base, configuration] : record->configurations) {
             for (size_t i = 0; i < configuration.slots.size(); ++i) {
               const bool used = configuration.slots[i].use == node_api::Use::kInUse;
               (used ? in_use : others).push_back(configuration.AddressAt(i));
             }
           }
           in_use.insert(in_use.end(), others.begin(), others.end());
           if (in_use.empty()) return absl::NotFoundError("it has none");
           const ip::Address& address = in_use[static_cast<size_t>(which) % in_use.size()];
           laws_.OnPardon(record->Holding(address)->range.size());
           return ipam::SetQuarantine(
               state.fleet, address,
               ipam::Quarantine{.reason = "an operator said so", .since = now}, now);
         });
}

// The operator deletes the machines that had the node's name before, which the cloud takes off its
// NICs at once, reads how many addresses their pods used, and ends their records.
void World::ForgetFormer(const Node& node) {
  for (const std::string& vm : node.former) {
    provider_->RemoveVm(vm);
    Change("forget",
           [key = ipam::NodeKey{node.machine.name, vm}](
               ipam::ServerState& state, absl::Time now) -> absl::StatusOr<ipam::Effects> {
             const ipam::NodeRecord* record = state.fleet.ledger.Find(key);
             if (record == nullptr) return absl::NotFoundError("it is forgotten");
             ASSIGN_OR_RETURN(ipam::Forgotten forgotten,
                              ipam::Forget(state.fleet,
                                           {.node = key.name,
                                            .vm_id = key.vm_id,
                                            .in_use = ipam::CountAddresses(*record).in_use,
                                            .silent = {{key, record->session_epoch}}},
                                           now));
             return std::move(forgotten.effects);
           });
  }
}

// The operator stops the servers, puts the copy in its place, and starts them; on other machines
// nothing lies beside the store that says how far it had come.
void World::Restore(bool on_other_machines) {
  if (!backup_) return;
  for (const auto& host : hosts_) {
    if (host->server) BuryServer(*host, false, absl::Seconds(1));
    // A server that takes its mark for good in the same boot asks nobody: see recovery.h.
    ++host->boots;
    if (!on_other_machines) continue;
    const std::string beside = fmt::format("{}/{}", directory_, host->index);
    std::filesystem::remove_all(beside);
    std::filesystem::create_directories(beside);
  }
  confirmed_ = false;
  laws_.OnRestore(true);
  disks_.Restore(*backup_);
  laws_.OnRestore(false);
  trace_.Count("restore");
}

void World::Heal() {
  network_faults_ = {};
  cloud_faults_ = {};
  machine_faults_ = {};
  runtime_faults_ = {};
  for (const auto& host : hosts_) {
    host->store_faults = {};
    if (host->server) host->server->life().DieAfter(-1);
  }
  for (const auto& node : nodes_) {
    if (node->agent) node->agent->life().DieAfter(-1);
    if (node->machine.exists && node->machine.lies_about) Replace(*node);
    if (std::exchange(node->machine.is_ending, false) && node->agent) node->agent->SayMaintenance();
  }
  Tidy();
}

// What was done and not synced yet may have been lost, so that it is done again.
void World::Tidy() {
  for (int node = 0; node < settings_.nodes; ++node) {
    DoAsOperator({.act = Act::kUndrain, .target = static_cast<uint64_t>(node)});
  }
  DoAsOperator({.act = Act::kEndReservations});
  DoAsOperator({.act = Act::kLift});
  DoAsOperator({.act = Act::kUnfreeze});
  // Machines that are gone never speak again.
  DoAsOperator({.act = Act::kConfirm, .amount = 1});
}

}  // namespace spoke::sim
