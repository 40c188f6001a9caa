// The agent's memory on tmpfs. It survives the agent, not the node, because no pod survives a
// reboot; so an entry is written, not synced.
//
// The file is a sequence of frames: payload length and CRC-32 of the payload, both 32 bits little
// endian, and the payload, one JournalEntry (proto/spoke/v1/journal.proto).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {

// An interface, so that tests can make writes fail. Not thread-safe; the agent's loop owns it.
class Journal {
 public:
  virtual ~Journal() = default;

  // Adds an event; on an error nothing is. Errors: kResourceExhausted (tmpfs is full); kInternal.
  virtual absl::Status Append(const Event& event) = 0;

  // Replaces all by `events`, at once; on an error the old journal stays. Errors: Append()'s.
  virtual absl::Status Compact(const std::vector<Event>& events) = 0;

  // The size in bytes. It grows with Append(); the owner compacts when it is worth it.
  virtual size_t size() const = 0;
};

struct OpenedJournal {
  std::unique_ptr<Journal> journal;
  std::vector<Event> events;  // Events to replay.
  size_t dropped_bytes = 0;   // What was torn or damaged, and cut off.
};

// Opens or creates the file; its directory must exist. Takes a lock: two agents on one node would
// assign one address twice.
// Errors: kNotFound; kPermissionDenied; kFailedPrecondition (another agent holds it).
absl::StatusOr<OpenedJournal> OpenJournal(const std::string& path);

// Returns the frame of one event.
std::string EncodeFrame(const Event& event);

struct ParsedJournal {
  std::vector<Event> events;
  // The beginning of the first frame that is cut short or damaged; the text's size if none is.
  size_t valid_bytes = 0;
};

// Reads frames until the end or the first that is not whole: what a crash tore off was never
// acknowledged, and what follows damage cannot be trusted. Never fails.
ParsedJournal ParseJournal(std::string_view bytes);

}  // namespace spoke::netagent
