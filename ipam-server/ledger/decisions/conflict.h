// Addresses that two have at once, as agents' words show it: which they are, and which of them are
// kept from everybody for a time. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

// Notes that another machine answers for an address of this node: it is doubled, and quarantined
// for a time, if not too many are. `other`: its MAC; empty: not known.
Effects OnConflict(Fleet& fleet, const NodeKey& key, const ip::Address& address,
                   const std::string& other, absl::Time now);

// Notes that `claimant` says, in the words of `claim`, that it has an address of `holder`. Returns
// whether it is news.
bool NoteClaim(Fleet& fleet, const NodeKey& claimant, const NodeRecord& holder,
               const ip::Address& address, std::string_view claim);
void EndClaim(Fleet& fleet, const NodeKey& claimant, const ip::Address& address);
// Ends claims by the name alone: the same machine may have another VM id now.
void EndClaimsOf(Fleet& fleet, const std::string& node);
// Ends what is over by time, or since a node does not have the address any more.
void EndDoubled(Fleet& fleet, absl::Time now);

}  // namespace spoke::ipam
