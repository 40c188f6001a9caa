// Files that other programs of the node own and the checks read. Pure, safe on any input.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spoke::node_checks {

// Files of systemd's network programs (systemd.link(5), systemd.network(5), networkd.conf(5)): as
// much as tells whether they are about pods' links.

struct SystemdSetting {
  std::string section;  // The section, such as "Match".
  std::string key;      // The key, such as "OriginalName".
  std::string value;    // The value as written, without blanks at its ends.

  bool operator==(const SystemdSetting&) const = default;
};

// Returns every KEY=VALUE of the text in order. Comments, lines that are none and settings before
// the first section are passed over, as systemd does; a line that ends in a backslash goes on in
// the next.
std::vector<SystemdSetting> ReadSystemdFile(std::string_view text);

// Returns the last value of the key, since later ones override; empty when there is none.
std::string LastValue(const std::vector<SystemdSetting>& settings, std::string_view section,
                      std::string_view key);

// Reads what systemd calls a boolean; anything else is `otherwise`.
bool IsTrue(std::string_view value, bool otherwise);

// Returns whether a list of shell patterns, apart by blanks ("en* !eth0"), takes `name`: one of
// those that are not negated does, or there are only such, and none of the negated ones.
bool PatternsMatch(std::string_view patterns, std::string_view name);

// Returns whether [Match] takes a pod's link: of kind veth, with a MAC address and a name of ours.
// A file without a [Match] takes none. Keys that a veth cannot meet (a driver of hardware, a bus
// path) keep it out.
bool MatchesPodLink(const std::vector<SystemdSetting>& settings, std::string_view link_name);

// Network configurations in a runtime's directory (CNI specification, section 1), read as libcni
// reads them, so that what it will choose is known before. Pure, safe on any input.

// Returns whether runtimes load a file of that name at all: .conf, .conflist and .json (libcni's
// ConfFiles).
bool IsNetworkConfigName(std::string_view name);

struct NetworkConfig {
  bool usable = false;  // Whether a runtime takes it.
  std::string problem;  // The reason why not.
  std::string network;  // The network's "name".
  // The types of the plugins, in the order of the chain: "bridge".
  std::vector<std::string> plugins;

  // Returns the first one's, which makes the interface; empty when there is none.
  std::string plugin() const { return plugins.empty() ? "" : plugins.front(); }
};

// Reads a configuration. `name`, the file's, decides: a .conflist has a list "plugins", the others
// are one plugin.
NetworkConfig ReadNetworkConfig(std::string_view name, std::string_view text);

// A process's mounts (proc_pid_mountinfo(5)).

struct Mount {
  std::string point;
  std::string file_system;  // The file system, such as "tmpfs".
  bool read_only = false;   // Whether this mount, or the file system as a whole, is read-only.
};

// Returns the mount that `path`, absolute and without "..", is on: the longest of those whose point
// is above it, and the last of several on one point. Lines that cannot be read are passed over.
std::optional<Mount> FindMount(std::string_view mount_info, std::string_view path);

}  // namespace spoke::node_checks
