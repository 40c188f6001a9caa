// What a node is given and what it loses: the steps that several decisions take, each with the
// record to store, the history and whom to tell. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "ipam-server/ledger/address_state.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/ledger/pool_set.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_api/assignments.h"

namespace spoke::ipam {

// Why an entry that is given back is of no use.
inline constexpr std::string_view kGivenBack = "is being given back, since its node was drained";

// Returns the name of the node's next entry on its NIC, which no other has or had. `block_length`:
// 0 for a single address. The name says it: a store that was restored gives names again, and what
// is a block in an old picture of the NIC must not be taken for one address of another.
std::string NextName(const Fleet& fleet, NodeRecord& record, int block_length);

// Holds for the node a unit that its agent has, as a configuration under the name that the unit has
// on the NIC, as far as that is known, else under the next. What the cloud had given under that
// name, and was unusable, is wanted no more.
Configuration& HoldClaimed(Fleet& fleet, NodeRecord& record, const ip::Prefix& unit,
                           AddressState state, absl::Time since);

// Gives the node's next entry a name, unless it has one, and has the cloud put it on the NIC. The
// node was given the unit just now.
void BeginAttaching(Fleet& fleet, NodeRecord& record, Configuration& configuration,
                    Effects& effects);

// Takes the configuration that begins with `base` from the node: it is off the NIC, and cools.
void Free(Fleet& fleet, NodeRecord& record, const ip::Address& base, Effects& effects,
          absl::Time now);

// Notes that the node's agent says that a pod uses the address, which its record does not hold; and
// that it says so no more. Returns whether it had said so.
void NoteUnheld(Fleet& fleet, const NodeKey& node, const ip::Address& address);
bool EndUnheld(Fleet& fleet, const NodeKey& node, const ip::Address& address);

// Whether a pod of the node uses, by the word of its agent, what its record does not hold by now.
bool UsesUnheld(const Fleet& fleet, const NodeRecord& record);

// Adopts what pods use by the word of their agents and no record could hold, as far as it is of a
// pool and no other node has it by now. Their agents say anew whose it is. Not while a recovery is
// under way.
void AdoptUsed(Fleet& fleet, Effects& effects, absl::Time now);

// Returns whether the node's agent says that the range, or part of it, is the node's, which the
// store does not know: it may be older than what the node was told, while a pod there uses it. True
// as long as the agent has said nothing to a server that has just started.
bool MayBeClaimed(const Fleet& fleet, const NodeKey& node, const ip::Prefix& range);

// Asks the cloud for nothing more. Entries that it has put on the NIC nevertheless are taken over,
// and given back as others are. What it has given is given back by a node that is drained, but for
// what a pod there uses, and stays where another machine has the node's name: that one may go on.
void StopWantingAll(Fleet& fleet, NodeRecord& record, Effects& effects);

// What an agent does with an address from then on.
struct UseChange {
  ip::Address address;
  Use use;
  const node_api::Assignment* assignment;  // Set exactly when in use.
  absl::Time at;
};
void SetUse(Fleet& fleet, NodeRecord& record, Configuration& configuration, const UseChange& change,
            Effects& effects);

// Records that the agent assigns the address. One that was being given up stays: its agent has a
// pod on it all the same.
void RecordAssignment(Fleet& fleet, NodeRecord& record, Configuration& configuration,
                      const node_api::Assignment& assignment, Effects& effects);

// Records what the agent assigns, unless a newer assignment of the address is known. One that
// nobody holds here is taken over, if the node can have it.
void TakeAssignment(Fleet& fleet, NodeRecord& record, const node_api::Assignment& assignment,
                    Effects& effects);

// Returns why an address of that pool which an agent claims cannot be on the NIC of the node;
// empty: it can.
std::string WhyNotAdopted(const Fleet& fleet, const NodeRecord& record, const PoolEntry& entry);

}  // namespace spoke::ipam
