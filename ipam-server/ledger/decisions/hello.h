// What follows when an agent opens a session: who it may be, whose place it takes, and what its
// pods use. Pure.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "lib/node_api/session.h"

namespace spoke::ipam {

// Whether the node may be who its agent says: to be asked before OnHello(). `instance_proved`, in
// both: by the certificate; otherwise the agent only says so. Errors: kPermissionDenied (on the
// instance of another node, or on another than it was before; what a certificate proves goes before
// what an agent only says), kResourceExhausted (too many machines under its name hold addresses).
// The message says which, and what to do.
absl::Status CheckIdentity(const Fleet& fleet, const node_api::Hello& hello,
                           bool instance_proved = false);

// The record's session_epoch is raised, a new boot ends the assignments of the old one, an older VM
// under the name is retired, and the node is brought towards its target.
Effects OnHello(Fleet& fleet, const node_api::Hello& hello, absl::Time now,
                bool instance_proved = false);

}  // namespace spoke::ipam
