// A process's mounts (proc_pid_mountinfo(5)). Pure, safe on any input.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spoke::node_checks {

struct Mount {
  std::string point;
  std::string file_system;  // The file system, such as "tmpfs".
  bool read_only = false;   // Whether this mount, or the file system as a whole, is read-only.
};

// Returns the mount that `path`, absolute and without "..", is on: the longest of those whose point
// is above it, and the last of several on one point. Lines that cannot be read are passed over.
std::optional<Mount> FindMount(std::string_view mount_info, std::string_view path);

}  // namespace spoke::node_checks
