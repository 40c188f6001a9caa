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
  kWarning,   // The severity of what works worse, or will break one day.
  kBlocking,  // The severity of what leaves pods without network, now or later.
};

// Returns "warning" or "blocking".
std::string_view NameOf(Severity severity);

// A kernel setting by the name that sysctl(8) uses, with the value that it should have.
struct KernelSetting {
  std::string name;
  std::string value;

  bool operator==(const KernelSetting&) const = default;
};

struct Finding {
  std::string id;  // The check's id.
  Severity severity = Severity::kWarning;
  std::string object;  // The object it is about: "ip filter FORWARD", "/etc/cni/net.d/00-x.conf".
  std::string what;    // The words for what was seen there.
  std::string why;     // The reason why that matters.
  std::string remedy;  // The remedy: a command, or a file with its lines.
  // The settings that mend it and hurt nobody else, in the order in which to make them: an agent
  // does that where its configuration says node_settings: own. Empty: there are none.
  std::vector<KernelSetting> settings = {};

  bool operator==(const Finding&) const = default;
};

struct Check {
  std::string id;
  std::string about;  // The words for what is well when it finds nothing: "packets are forwarded".
};

// A check that could not be made, or that nobody wants made.
struct CheckNotMade {
  std::string id;
  std::string why;  // The reason, with the key of the configuration where there is one.

  bool operator==(const CheckNotMade&) const = default;
};

struct Report {
  std::vector<Check> checks;  // The checks that were made, in their order.
  // Those that ask a service, and were not made. Others that do not fit the node are left out.
  std::vector<CheckNotMade> not_made = {};
  std::vector<Finding> findings;  // The findings, in the order of their checks.

  size_t Count(Severity severity) const;
  // Returns whether nothing is blocking.
  bool pods_will_work() const { return Count(Severity::kBlocking) == 0; }
};

Report Examine(const NodeFacts& facts);

}  // namespace spoke::node_checks
