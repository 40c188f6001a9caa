// A process's mounts (proc_pid_mountinfo(5)). Pure, safe on any input.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spoke::node_checks {

struct Mount {
  std::string point;
  std::string file_system;  // "tmpfs"
  bool read_only = false;   // This mount, or the file system as a whole.
};

// The mount that `path`, absolute and without "..", is on: of those whose point is above it the
// longest, and of several on one point the last. Lines that cannot be read are passed over.
std::optional<Mount> FindMount(std::string_view mount_info, std::string_view path);

}  // namespace spoke::node_checks
