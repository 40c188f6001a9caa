// What operators do: drains, reservations, quarantine, and what alarms ask of them.
#include "ipam-server/ledger/decisions/operators.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/reservations.h"
#include "ipam-server/store/record_codec.h"
#include "tests/sim/simulation.h"

namespace spoke::sim {

void Simulation::NextOperation() {
  if (faults_over_) return;
  switch (nodes_.empty() ? 2 : basis_.random.Below(3)) {
    case 0:
      Drain(*AnyNode());
      break;
    case 1:
      Reserve();
      break;
    default:
      PutIntoQuarantine();
      break;
  }
  basis_.schedule.After(basis_.random.Between(absl::Seconds(10), absl::Minutes(5)),
                        [this] { NextOperation(); });
}

// `key`: of the record that is there once the operator is told OK; empty: none is looked for.
void Simulation::Operate(std::string what, std::string key, ServerProcess::Change change) {
  ServerProcess* leader = Leader();
  if (leader == nullptr) return;
  basis_.trace.Tell("operator", "asks to {}", what);
  leader->Operate(std::move(change),
                  [this, what = std::move(what), key = std::move(key)](const absl::Status& status) {
                    basis_.trace.Tell("operator", "hears of {}: {}", what,
                                      status.ok() ? "OK" : std::string(status.message()));
                    if (status.ok() && !key.empty()) {
                      basis_.judge.OperatorToldOk(key, database_.records.contains(key));
                    }
                  });
}

void Simulation::SetMode(const std::string& node, ipam::NodeMode mode) {
  Operate(fmt::format("set {} to {}", node, ipam::NameOf(mode)), "",
          [node, mode](ipam::ServerState& state, absl::Time now) {
            return ipam::SetMode(state.fleet, node, mode, now);
          });
}

void Simulation::Drain(Node& node) {
  const std::string name = node.state().key.name;
  basis_.Happened(Fault::kDrain, name);
  SetMode(name, ipam::NodeMode::kDraining);
  basis_.schedule.After(basis_.random.Between(absl::Seconds(20), absl::Minutes(4)),
                        [this, name] { SetMode(name, ipam::NodeMode::kActive); });
}

void Simulation::Reserve() {
  const std::string name = fmt::format("job{}", ++last_operation_);
  ipam::ReservationRequest request{
      .name = name,
      .nodes = {AnyNode()->state().key.name},
      .addresses_per_node = 1 + static_cast<uint32_t>(basis_.random.Below(4)),
      .ttl = absl::Minutes(1 + static_cast<int64_t>(basis_.random.Below(5)))};
  basis_.Happened(Fault::kReservation, name);
  Operate("reserve for " + name, ipam::ReservationKeyOf(name),
          [request](ipam::ServerState& state, absl::Time now) {
            return ipam::Reserve(state.fleet, request, now, /*dry_run=*/false);
          });
}

void Simulation::PutIntoQuarantine() {
  const ip::Address address =
      ip::Advance(shape_.settings.pools[0].cidr.base(), 4 + basis_.random.Below(24));
  basis_.Happened(Fault::kQuarantine, address.ToString());
  Operate("put " + address.ToString() + " into quarantine", ipam::QuarantineKeyOf(address),
          [address](ipam::ServerState& state, absl::Time now) {
            return ipam::SetQuarantine(state.fleet, address,
                                       ipam::Quarantine{.reason = "looked at", .since = now}, now);
          });
  basis_.schedule.After(
      basis_.random.Between(absl::Seconds(20), absl::Minutes(4)), [this, address] {
        Operate("take it out again", "", [address](ipam::ServerState& state, absl::Time now) {
          return ipam::SetQuarantine(state.fleet, address, std::nullopt, now);
        });
      });
}

// Whether all machines that exist have spoken in a recovery, so that those it waits for are gone.
bool Simulation::MayConfirm(const ipam::ServerState& state) const {
  return state.recovery.phase() == ipam::Recovery::Phase::kRecovering &&
         std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
           return state.recovery.spoken().contains(entry.second->state().key);
         });
}

// An operator who looks at the alarms from time to time, knows which machines there are, and says
// so: lifts a freeze, confirms that nodes which are silent are gone, forgets machines that are.
void Simulation::LookAfterAlarms() {
  ServerProcess* leader = Leader();
  const bool often = faults_over_ || basis_.random.Chance(0.2);
  if (leader != nullptr && often) {
    leader->Operate(
        [this](ipam::ServerState& state, absl::Time now) -> absl::StatusOr<ipam::Effects> {
          if (MayConfirm(state)) {
            const auto known = ipam::NodesWithAddresses(state.fleet.ledger);
            basis_.trace.Tell("operator", "confirms that the silent nodes are gone");
            return ipam::ConfirmRecovery(state, state.recovery.Silent(known), now);
          }
          if (!state.fleet.breaker.frozen()) return ipam::Effects();
          basis_.judge.FreezeLifted();
          return ipam::LiftFreeze(state.fleet, now);
        },
        [](const absl::Status&) {});
  }
  basis_.schedule.After(absl::Seconds(30), [this] { LookAfterAlarms(); });
}

}  // namespace spoke::sim
