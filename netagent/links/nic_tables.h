// The way out for addresses that are on a NIC beside the node's first: each such NIC has a routing
// table of its own (Links::SetNicTable), and what comes from its addresses leaves by it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/assignments.h"
#include "netagent/links/attach_plan.h"
#include "netagent/links/links.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it, by way of Attachments.
class NicTables {
 public:
  // Borrows both arguments.
  NicTables(Links& links, telemetry::Log& log) : links_(links), log_(log) {}

  // Makes the tables for the NICs of `holdings` beside `first`, whose own is the main table, and
  // makes again those that have become wrong. One that cannot be made is warned of once; its
  // addresses are refused until a later call makes it.
  void Prepare(const ip::MacAddress& first, const std::vector<Holding>& holdings);

  // Returns the tables of those of `addresses` that need one. Errors: kUnavailable (one has none
  // yet; the message names the NIC and says why).
  absl::StatusOr<std::vector<SourceTable>> Of(const std::vector<ip::Address>& addresses,
                                              const Assignments& assignments) const;

  // The NICs whose table could not be made.
  std::set<ip::MacAddress> Missing() const;
  // Names each NIC without a table and says why; empty: none is missing.
  std::string ExplainMissing() const;

 private:
  Links& links_;
  telemetry::Log& log_;
  std::optional<ip::MacAddress> first_;
  std::map<ip::MacAddress, absl::StatusOr<uint32_t>> tables_;
};

}  // namespace spoke::netagent
