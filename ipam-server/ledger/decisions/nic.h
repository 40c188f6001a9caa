// What follows from what the cloud says is on a node's NIC. Pure.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"

namespace spoke::ipam {

// Takes that exactly `on_nic` of ours is on the node's NIC, after a change that was asked for.
// Where the cloud chooses, entries unknown so far are taken over.
Effects OnNic(Fleet& fleet, const NodeKey& key, const std::vector<IpConfiguration>& on_nic,
              absl::Time now);

// A listing, which may be a little old, says so: when it differs from what is known, the NIC itself
// is to be looked at.
Effects OnListedNic(const Fleet& fleet, const NodeKey& key,
                    const std::vector<IpConfiguration>& on_nic);

// Judges again what nodes were given and could not use: it may have cooled by now. Then their NICs
// are looked at, since a picture of a NIC may be old, and show what has left it: what is seen there
// twice, a cooldown apart, is there. Some nodes at a time, in turn.
void SettleSome(Fleet& fleet, Effects& effects, absl::Time now);

}  // namespace spoke::ipam
