// Converts events of attach/assignments to bytes and back (proto/spoke/v1/journal.proto). Pure.
//
// A journal is a sequence of frames: payload length and CRC-32 of the payload, both 32 bits little
// endian, and the payload, one JournalEntry.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "netagent/attach/assignments.h"

namespace spoke::netagent {

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
