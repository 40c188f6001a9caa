// A DEL that no agent has heard of yet, kept on disk, so that a pod goes away while the agent is
// down, and the agent frees what it held when it is back.
#pragma once

#include <optional>
#include <string>

#include "cni-plugin/agent/wire.h"
#include "cni-plugin/cni_error.h"

namespace spoke::cni {

// Returns the name of the file for an attachment: 16 hexadecimal digits of FNV-1a-64 over container
// id, a NUL, and interface name.
std::string TombstoneName(const std::string& container_id, const std::string& ifname);

// Returns where the tombstones of the agent at `socket` are: "tombstones" beside it.
std::string TombstoneFolder(const std::string& socket);

// Writes `del`, encoded, for the agent at `socket`. It appears whole or not at all, readable for
// its owner alone, in a folder that is made if it is missing. A second call for the same attachment
// replaces the first's. `del.attempt` makes the temporary name.
// Errors: code 11 (the attachment is not freed and the runtime should ask again).
std::optional<Error> LeaveTombstone(const std::string& socket, const Request& del);

}  // namespace spoke::cni
