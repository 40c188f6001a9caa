// The texts that version 0.1.0 wrote, as values: record.cc writes it, the test reads what was
// written. A later version with more to say gets samples of its own beside these, which stay as
// they are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ipam-server/ledger/node_record.h"
#include "ipam-server/ledger/quarantine.h"
#include "ipam-server/release/breaker.h"
#include "ipam-server/reservations/reservation.h"
#include "netagent/attach/assignments.h"

namespace spoke::compat {

inline const absl::Time kThen = absl::FromUnixMillis(1'700'000'000'123);

// Returns one event of each kind, and of those with two forms both.
std::vector<netagent::Event> JournalSample();

ipam::NodeRecord NodeSample();
std::pair<ip::Address, ipam::Quarantine> QuarantineSample();
ipam::Reservation ReservationSample();
ipam::BreakerState BreakerSample();

// Returns bytes of the wire, by the programs' own writers: AgentMessage with a Hello,
// ServerMessages with a Welcome and a DesiredState, CniRequest with an ADD, CniResponse with its
// answer.
std::string HelloBytes();
std::string WelcomeBytes();
std::string DesiredBytes();
std::string CniRequestBytes();
std::string CniResponseBytes();

}  // namespace spoke::compat
