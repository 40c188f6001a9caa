// The options --namespace, --pod and --team, by which lists are narrowed to what concerns some
// pods.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "admin-cli/session.h"

namespace spoke::ctl {

// The pods that are wanted.
struct WantedPods {
  std::optional<std::set<std::string>> namespaces;  // None: of all.
  std::string name;                                 // Empty: all.
  std::string one_namespace;  // The namespace that the words name; empty: none, or a team's.

  bool Has(std::string_view pod_namespace, std::string_view pod_name) const;
  bool all() const { return !namespaces && name.empty(); }
};

// Returns those three options; `which` is "those of", or what else is wanted of pods.
std::vector<Parameter> PodOptions(const std::string& which);

// Reads them. Errors: kInvalidArgument (what is no pod, or two namespaces), kNotFound (no such
// team), those of the client.
absl::StatusOr<WantedPods> WantedPodsOf(const Session& session);

// Returns NAMESPACE/NAME as what is wanted; nullopt: it is not that.
std::optional<WantedPods> OnePod(std::string_view text);

// Returns kNotFound where no pod that has an address is of that namespace, or has that name, with
// the nearest that there is; kOk where the words name neither. Reads all addresses: it is for lists
// that turn out to be empty.
absl::Status CheckThereAreSuch(const Session& session, const WantedPods& wanted);

}  // namespace spoke::ctl
