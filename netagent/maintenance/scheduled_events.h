// Reads and writes the documents of Azure's Scheduled Events. Pure.
//
// Microsoft's "Azure Metadata Service: Scheduled Events for Linux VMs", api-version 2020-07-01. An
// event is told to all machines of a placement group, so that a machine looks for its own name
// among the event's resources; what has begun has no time any more; and a request to begin one
// early begins it for all of its machines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/node_api/maintenance.h"

namespace spoke::netagent {

inline constexpr size_t kMaxScheduledEventsBytes = 1UL << 20;

// Returns what the document announces for the machine `self`, compared without case: "pool_7". An
// event without resources is for whoever reads it; one of a kind that is unknown is left out. The
// next to come is first. A time that cannot be read is one that is not known. Errors:
// kInvalidArgument (no JSON object, or a value of another type than it has to be; the message names
// the place).
absl::StatusOr<node_api::Maintenance> ParseScheduledEvents(std::string_view text,
                                                           std::string_view self);

// Returns the document that asks for these events to begin now.
std::string StartRequestsOf(const std::vector<std::string>& events);

}  // namespace spoke::netagent
