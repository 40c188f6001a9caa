// The counts of what the fabric did so far, as `key=value` lines. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tests/fabric/decide.h"

namespace spoke::fabric {

struct Counters {
  uint64_t received = 0;
  uint64_t forwarded = 0;
  uint64_t replied = 0;
  uint64_t icmp_errors = 0;  // The errors sent for packets that were dropped.
  uint64_t tagged = 0;       // The frames delivered with VLAN tags; forwarded counts them as well.
  uint64_t send_failed = 0;  // The frames forwarded or answered, and refused by the kernel.
  uint64_t overflowed = 0;   // The frames lost before we read them: the socket was full.
  uint64_t tables_loaded = 0;   // The attachment files taken into use.
  uint64_t tables_refused = 0;  // The attachment files with mistakes.
  uint64_t addresses = 0;       // The addresses and blocks in the table now.
  std::array<uint64_t, kDropReasons.size()> dropped{};  // The dropped frames, by DropReason.

  uint64_t& DroppedFor(DropReason reason) { return dropped[static_cast<size_t>(reason)]; }

  // Returns one line each: "forwarded=12\n", "dropped_source_mac=0\n".
  std::string ToText() const;
};

}  // namespace spoke::fabric
