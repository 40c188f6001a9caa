// What one connected agent has been told, and what it has to be told next. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/session/to_agent.h"
#include "lib/node_api/maintenance.h"
#include "lib/node_api/node_findings.h"

namespace spoke::ipam {

using SessionId = uint64_t;

// A check that warns: something works worse, and pods run.
struct Warning {
  size_t check = 0;  // Its place in node_checks::kCheckIds, or the number of these: not known.
  absl::Time since;

  bool operator==(const Warning&) const = default;
};

struct Session {
  SessionId id = 0;
  uint64_t desired_version = 0;  // The last DesiredState's; 0: none was sent yet.
  uint64_t acked_version = 0;
  std::vector<ip::Prefix> told;  // Sorted.
  bool full_due = true;          // The next DesiredState replaces what the agent has.
  uint64_t last_request = 0;     // The id of the last reclaim or inventory request; 0: none yet.
  uint64_t reclaim_pending = 0;  // The id of the one not answered; 0: none.
  std::vector<ip::Prefix> reclaim_asked;        // What that one asks for.
  std::vector<ip::Prefix> reclaim_next;         // Addresses to be asked for after it.
  uint64_t policy_sent = 0;                     // The bundle version it has or is being sent.
  uint64_t policy_acked = 0;                    // The version it has in force.
  std::string policy_error;                     // Why it refused `policy_sent`; empty: it has not.
  bool policy_limited = false;                  // `policy_sent` may end only so many connections.
  bool policy_held = false;                     // It was refused since it would end more.
  node_api::CutCount policy_cut;                // What the last one that it answered ends.
  std::vector<node_api::NodeFinding> findings;  // What its checks found last.
  std::vector<Warning> warnings;                // The checks that warn by these, each once.
  // What the cloud has announced for the node; nullopt: its agent has not said.
  std::optional<node_api::Maintenance> maintenance;
  std::string agent_version;
  std::string boot_id;
  std::vector<ip::Address> own_addresses;  // What the node's NIC itself has, as its agent says.
  uint32_t nic_mtu = 0;                    // That of the NIC in bytes, as its agent says.
  absl::Time last_seen;

  // --- While pods wait there. ---
  node_api::Forecast forecast;  // The last one sent.
  absl::Time forecast_ends;     // When it said all would be well; InfinitePast: it did not.
  bool forecast_due = false;    // The agent has said more since.
  absl::Time forecast_looked = absl::InfinitePast();  // When there was last looked for a new one.
  absl::Time forecast_next = absl::InfiniteFuture();  // When there will be; InfiniteFuture: never.
};

// The next DesiredState for the node behind `session`, which is moved on to it. A full one when
// that is due, as it is for the first of a session; otherwise the difference.
node_api::DesiredState NextDesired(const Fleet& fleet, const NodeRecord& record, absl::Time now,
                                   Session& session);

// Returns the checks that warn by `findings`, which are told at `now`. One that warned before does
// so since then, whatever it is about now; one that is new here, since its agent found it first.
std::vector<Warning> WarningsOf(const std::vector<node_api::NodeFinding>& findings,
                                const std::vector<Warning>& before, absl::Time now);

// The time within which the agents of so many nodes are to come back when they lose the server,
// those with nothing to say: as many a second as a server with a few cores can shake hands with, so
// that those with something to say do not wait behind them. Zero: there are so few that it does not
// matter.
absl::Duration ReconnectWithin(size_t nodes);

}  // namespace spoke::ipam
