// Addresses that are kept from all pods: by an operator, or for a time since an agent said
// something that may be true. Pure.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/quarantine.h"
#include "lib/ip/address.h"
#include "lib/node_api/session.h"

namespace spoke::ipam {

// Puts the address into quarantine; nullopt: takes it out. What is available of it is asked for.
// Errors: kNotFound (in no pool); kAlreadyExists, kFailedPrecondition (an operator has put it
// there, or it is not there).
absl::StatusOr<Effects> SetQuarantine(Fleet& fleet, const ip::Address& address,
                                      std::optional<Quarantine> quarantine, absl::Time now);

// Has the quarantine of the address, which must be in it, end no sooner than `until`. One that an
// operator has put there has no end.
void Prolong(Fleet& fleet, const ip::Address& address, absl::Time until, Effects& effects);
// Ends those whose time is over.
void EndQuarantines(Fleet& fleet, Effects& effects, absl::Time now);

// The agent is refused; what it says its pods use is kept from others for a while.
void HoldClaims(Fleet& fleet, const node_api::Hello& hello, Effects& effects, absl::Time now);

// Asks the node for what an operator keeps from pods and none uses any more.
void AskForWithheld(const Fleet& fleet, const NodeRecord& record, Effects& effects, absl::Time now);

}  // namespace spoke::ipam
