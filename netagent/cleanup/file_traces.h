// The agent's files on a node.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/cleanup/cleanup_plan.h"

namespace spoke::netagent {

struct CleanupPaths {
  // The files that the agent installed, and from where; empty: it installs no such thing.
  std::string conflist;
  std::string conflist_source;
  std::string plugin;
  std::string plugin_source;
  std::string state_dir;
  std::string lasting_dir;  // The lasting directory; empty: nothing outlives a reboot.
  std::string cni_socket;
  // The socket of health; empty: health is served elsewhere, or nowhere.
  std::string health_socket;
  // The files that are somebody else's, wherever they are, such as the certificate that the
  // configuration names.
  std::set<std::string> keep;
};

// Finds what there is of them. A network configuration is the agent's when it is the one that it
// installs, or its first plugin is of type spoke; a plugin when it is the one that it installs; a
// file in a directory of state by its name. Others are not looked at, whatever they are.
std::vector<TraceFile> FindFiles(const CleanupPaths& paths);

// Removes the file. Returns false when it is not there, or is a directory that something else is
// in, or mounted at. Errors: what errno says, with the path, and what to do where that is known.
absl::StatusOr<bool> RemoveFile(const TraceFile& file);

// Returns whether `content` is a network configuration whose first plugin is of type spoke. Pure.
bool NamesOurPlugin(std::string_view content);

}  // namespace spoke::netagent
