#include "lib/node_checks/facts/systemd_file.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace spoke::node_checks {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Returns the lines of the text, those joined that a backslash joins.
std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  bool goes_on = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    // Between the parts of a joined line, comments are passed over.
    const bool comment = !line.empty() && (line.front() == '#' || line.front() == ';');
    if (comment) continue;
    const bool joins = !line.empty() && line.back() == '\\';
    if (joins) line.remove_suffix(1);
    if (goes_on && !lines.empty()) {
      lines.back().append(" ").append(line);
    } else {
      lines.emplace_back(line);
    }
    goes_on = joins;
  }
  return lines;
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_of(kBlanks), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

}  // namespace

std::vector<SystemdSetting> ReadSystemdFile(std::string_view text) {
  std::vector<SystemdSetting> settings;
  std::string section;
  for (const std::string& line : LinesOf(text)) {
    if (line.size() > 1 && line.front() == '[' && line.back() == ']') {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const size_t equals = line.find('=');
    if (section.empty() || equals == std::string::npos) continue;
    const std::string_view whole = line;
    settings.push_back({section, std::string(Trim(whole.substr(0, equals))),
                        std::string(Trim(whole.substr(equals + 1)))});
  }
  return settings;
}

std::string LastValue(const std::vector<SystemdSetting>& settings, std::string_view section,
                      std::string_view key) {
  const auto found =
      std::find_if(settings.rbegin(), settings.rend(), [&](const SystemdSetting& setting) {
        return setting.section == section && setting.key == key;
      });
  return found == settings.rend() ? "" : found->value;
}

bool IsTrue(std::string_view value, bool otherwise) {
  const std::string lower = absl::AsciiStrToLower({value.data(), value.size()});
  constexpr std::array<std::string_view, 6> kTrue = {"1", "yes", "y", "true", "t", "on"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "no", "n", "false", "f", "off"};
  if (std::find(kTrue.begin(), kTrue.end(), lower) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), lower) != kFalse.end()) return false;
  return otherwise;
}

bool PatternsMatch(std::string_view patterns, std::string_view name) {
  const std::string text(name);
  bool taken = false;
  bool only_negated = true;
  for (const std::string& word : WordsOf(patterns)) {
    const bool negated = word.front() == '!';
    const std::string pattern = word.substr(negated ? 1 : 0);
    const bool matches = ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
    if (negated && matches) return false;
    if (negated) continue;
    only_negated = false;
    taken = taken || matches;
  }
  return taken || (only_negated && !WordsOf(patterns).empty());
}

bool MatchesPodLink(const std::vector<SystemdSetting>& settings, std::string_view link_name) {
  bool has_match = false;
  for (const auto& [section, key, value] : settings) {
    if (section != "Match") continue;
    has_match = true;
    if (key == "Name" || key == "OriginalName") {
      if (!PatternsMatch(value, link_name)) return false;
    } else if (key == "Kind" || key == "Driver") {
      if (!PatternsMatch(value, "veth")) return false;
    } else if (key == "Type") {
      if (!PatternsMatch(value, "ether")) return false;
    } else if (key == "Path" || key == "PermanentMACAddress" || key == "MACAddress" ||
               key == "Property" || key == "SSID" || key == "BSSID" || key == "WLANInterfaceType") {
      return false;  // A veth has none of these, or one that nobody can have meant.
    }
    // Host, Architecture, Virtualization, KernelVersion and their like are of the machine: taken
    // for met.
  }
  return has_match;
}

}  // namespace spoke::node_checks
