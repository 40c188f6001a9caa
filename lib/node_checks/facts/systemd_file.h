// Files of systemd's network programs (systemd.link(5), systemd.network(5), networkd.conf(5)): as
// much as tells whether they are about pods' links. Pure, safe on any input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spoke::node_checks {

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

}  // namespace spoke::node_checks
