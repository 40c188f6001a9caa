// Brings policy objects between files and the server, for the verbs that apply and delete them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "admin-cli/session.h"

namespace spoke::ctl {

// Reads the files that `-f` names: a file as it is, a folder's *.yaml and *.yml in the order of
// their names (with those of its folders, when `recursive`), "-" for standard input. There are at
// most 3 MiB in all and 10,000 files. Errors: kInvalidArgument (nothing in a folder, too much, "-"
// twice), kNotFound, kPermissionDenied, each with the path.
absl::StatusOr<std::vector<v1::PolicyFile>> ReadPolicyFiles(const std::vector<std::string>& paths,
                                                            bool recursive, Console& console);

// Returns the kind in its own spelling: "pool" and "pools" give "Pool". One that is not known here
// is left as it is: the server may know it.
std::string KindOf(std::string_view word);

// Returns the kinds known here, for completion.
const std::vector<std::string>& KnownKinds();

// Returns the namespaces of a team, as its applied policy has them. Errors: kNotFound, and those of
// the call.
absl::StatusOr<std::set<std::string>> NamespacesOf(const Client& client, const std::string& team);

// Prints what a call has changed: a line each ("Pool/default created"), or in the session's format.
// With `dry_run` it says that nothing was changed.
absl::Status PrintChanges(const Session& session,
                          const google::protobuf::RepeatedPtrField<v1::ObjectChange>& changes,
                          bool dry_run);

}  // namespace spoke::ctl
