// Reads how full the kernel's table of tracked connections is, in the calling thread's network
// namespace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::netagent {

struct ConntrackReading {
  uint64_t entries = 0;
  uint64_t limit = 0;
  // The number of times since boot that no port was left to translate to.
  uint64_t insert_failed = 0;
  uint64_t dropped = 0;  // The number of packets since boot whose connection found the table full.

  bool operator==(const ConntrackReading&) const = default;
};

// Adds the counters of all processors, by the names in the first line. `text` is that of
// /proc/net/stat/nf_conntrack, numbers in hexadecimal. Pure. Errors: kInvalidArgument.
absl::StatusOr<ConntrackReading> ParseConntrackStat(std::string_view text);

struct ConntrackFiles {
  std::string count = "/proc/sys/net/netfilter/nf_conntrack_count";
  std::string max = "/proc/sys/net/netfilter/nf_conntrack_max";
  std::string stat = "/proc/thread-self/net/stat/nf_conntrack";
};

// Reads the files. Errors: kNotFound (the kernel tracks no connections); kInvalidArgument (other
// text than the kernel's); those of reading files.
absl::StatusOr<ConntrackReading> ReadConntrack(const ConntrackFiles& files = {});

// Decides when to tell of a table that fills: once, and again when it has been emptier meanwhile.
class ConntrackWatch {
 public:
  static constexpr double kAlarm = 0.8;
  static constexpr double kCalm = 0.7;

  // Returns whether to tell now.
  bool Look(const ConntrackReading& reading);

 private:
  bool told_ = false;
};

}  // namespace spoke::netagent
