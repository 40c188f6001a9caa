// Whether what agents saw of every address could have come from one register an address. Pure.
//
// The registers: an address is free or held by one node; and while a node holds it, it has no pod,
// or the pod of one assignment. A correct system of servers, however many of them and whichever of
// them lead, is linearizable: each change takes effect at one instant between its begin and its
// acknowledgement, and every agent and every reader of the store sees what the last one made.
//
// Nobody outside sees those instants, but bounds of them. A server tells a node of an address only
// once that is stored, so the node holds it when it hears of it, at the latest. A node says that it
// gives an address up before a server can take it for free, so it holds it when it says so, at
// least. Between the two the register has that node's name, whatever the order of messages in
// between: these are intervals in which the node holds the address for certain. If those of two
// nodes overlap, no order of the changes explains them: the address is `doubled`. If none do, an
// order does (each change at the bound of its interval), so the judgement is exact: it neither
// misses what these events show, nor accuses a system whose messages were only late.
//
// What was acknowledged must stay until somebody gives it up. A node that is told that it no longer
// has an address which it never gave up has `lost` it. A pod's assignment, or its end, that was
// acknowledged before the store was read must be in the reading, unless a later change of the same
// address had begun by then: else it is `lost`. Agents alone cannot find that: they say all their
// assignments again when they come back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/ip/address.h"

namespace spoke::ha {

// What an agent saw or did, in nanoseconds of one clock that does not go back.
struct Event {
  enum class Kind : uint8_t {
    kHeld,       // It was told that it has the address.
    kGivenUp,    // It is about to agree that the address is taken from it.
    kMissing,    // It was told a state in which it does not have it.
    kUseBegun,   // It is about to say that a pod has the address.
    kUseStored,  // The server has acknowledged that.
    kEndBegun,   // It is about to say that the pod no longer has it.
    kEndStored,  // The server has acknowledged that.
  };

  ip::Address address;
  Kind kind = Kind::kHeld;
  uint32_t node = 0;
  uint64_t generation = 0;  // Of the node's assignments, for the last four kinds; never 0 there.
  int64_t at = 0;
};

// What the store had for an address.
struct Stored {
  uint32_t node = 0;
  uint64_t generation = 0;  // The assignment that has it; 0: none has.
};

// The whole store as it was at one instant, no earlier than `from` and no later than `to`.
struct Reading {
  int64_t from = 0;
  int64_t to = 0;
  absl::flat_hash_map<ip::Address, Stored, ip::AddressHash> addresses = {};
  std::vector<ip::Address> doubled = {};  // What it had for two nodes.
};

struct Verdict {
  uint64_t doubled = 0;  // Times that a node came to hold what another held, or was stored to.
  uint64_t lost = 0;     // What was acknowledged, and is not there.
  // What was looked at: a history without content has no faults either.
  uint64_t holds = 0;              // Intervals in which a node held an address.
  uint64_t moves = 0;              // Times that an address went to another node than before.
  uint64_t uses = 0;               // Assignments acknowledged.
  uint64_t compared = 0;           // Addresses of readings whose owner or pod was certain.
  std::vector<std::string> first;  // The first faults in words, at most kTextsKept.
};
inline constexpr size_t kTextsKept = 20;

// Judges a history: `events` in any order, but those of one node and instant in the order in which
// they happened. Intervals that only touch do not overlap.
Verdict CheckHistory(std::vector<Event> events, const std::vector<Reading>& readings);

}  // namespace spoke::ha
