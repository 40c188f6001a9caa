// Addresses that must not be handed out, and addresses that two have at once, as values. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

// Why an address must not be handed out.
struct Quarantine {
  std::string reason;
  absl::Time since;
  // Ends by itself then: an agent's report put it there, and may be mistaken. nullopt: an operator
  // did, and only an operator ends it.
  std::optional<absl::Time> until = {};
  bool doubled = false;  // `reason` names two that have it.

  bool operator==(const Quarantine&) const = default;
};

// All of them.
struct Quarantines {
  std::map<ip::Address, Quarantine> entries;
  std::set<std::pair<absl::Time, ip::Address>> ends;  // The ends of those that end by themselves.

  // Returns whether an operator has put an address of `range` here. Agents are not told of it then:
  // a pod that has it keeps it, and no other gets it. What ends by itself an agent has reported,
  // and it watches it.
  bool Withholds(const ip::Prefix& range) const {
    for (auto it = entries.lower_bound(range.base());
         it != entries.end() && range.Contains(it->first); ++it) {
      if (!it->second.until) return true;
    }
    return false;
  }
};

// An address that two have at once.
struct DoubledAddress {
  std::string holders;  // Both of them, a clause: "node a holds it, and ... answers for it".
  NodeKey holder;       // The node whose agent reported it, or that has it here.
  // The node whose agent says that it has what `holder` holds, until it says otherwise; nullopt:
  // another machine was heard.
  std::optional<NodeKey> claimant = {};
  absl::Time until = absl::InfiniteFuture();  // It is over then, unless reported again.

  bool operator==(const DoubledAddress&) const = default;
};

}  // namespace spoke::ipam
