// Will pods work on this node? Judges what was read of it (facts.h). Pure: the same facts give the
// same answer, in the same order.
//
// docs/TROUBLESHOOTING.md has a row for each id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/node_checks/facts/facts.h"

namespace spoke::node_checks {

enum class Severity : uint8_t {
  kWarning,   // Something works worse, or will break one day.
  kBlocking,  // Pods get no network, or lose it.
};

// "warning", "blocking".
std::string_view NameOf(Severity severity);

struct Finding {
  std::string id;  // The check's.
  Severity severity = Severity::kWarning;
  std::string object;  // What it is about: "ip filter FORWARD", "/etc/cni/net.d/00-x.conf".
  std::string what;    // What was seen there.
  std::string why;     // Why that matters.
  std::string remedy;  // A command, or a file with its lines.

  bool operator==(const Finding&) const = default;
};

struct Check {
  std::string id;
  std::string about;  // What is well when it finds nothing: "packets are forwarded".
};

struct Report {
  std::vector<Check> checks;      // Those that were made, in their order.
  std::vector<Finding> findings;  // In the order of their checks.

  size_t Count(Severity severity) const;
  // Nothing is blocking.
  bool pods_will_work() const { return Count(Severity::kBlocking) == 0; }
};

Report Examine(const NodeFacts& facts);

}  // namespace spoke::node_checks
