#include "lib/node_checks/facts/foreign_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "nlohmann/json.hpp"

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

using Json = nlohmann::json;

constexpr std::string_view kList = ".conflist";

bool EndsIn(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

NetworkConfig Unusable(NetworkConfig config, std::string problem) {
  config.problem = std::move(problem);
  return config;
}

std::vector<std::string_view> WordsOf(std::string_view text, char between) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(between), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool HasOption(std::string_view options, std::string_view option) {
  const auto words = WordsOf(options, ',');
  return std::find(words.begin(), words.end(), option) != words.end();
}

// The kernel writes blanks and backslashes as "\040": three octal digits.
std::string Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_octal = [&](size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(i + 1) && is_octal(i + 2) &&
        is_octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool IsAbove(std::string_view point, std::string_view path) {
  if (point == "/") return true;
  return path.substr(0, point.size()) == point &&
         (path.size() == point.size() || path[point.size()] == '/');
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

bool IsNetworkConfigName(std::string_view name) {
  return EndsIn(name, ".conf") || EndsIn(name, kList) || EndsIn(name, ".json");
}

NetworkConfig ReadNetworkConfig(std::string_view name, std::string_view text) {
  NetworkConfig config;
  const Json value = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return Unusable(config, "is not JSON");
  if (!value.is_object()) return Unusable(config, "is not a JSON object");
  config.network = TextOf(value, "name");
  if (!EndsIn(name, kList)) {
    config.plugins = {TextOf(value, "type")};
    if (config.plugin().empty()) return Unusable(config, "names no \"type\"");
    config.usable = true;
    return config;
  }
  const auto plugins = value.find("plugins");
  if (plugins == value.end() || !plugins->is_array() || plugins->empty()) {
    return Unusable(config, "has no \"plugins\"");
  }
  for (const Json& plugin : *plugins) {
    std::string type = plugin.is_object() ? TextOf(plugin, "type") : "";
    if (type.empty()) return Unusable(config, "has a plugin without \"type\"");
    config.plugins.push_back(std::move(type));
  }
  if (config.network.empty()) return Unusable(config, "has no \"name\"");
  config.usable = true;
  return config;
}

std::optional<Mount> FindMount(std::string_view mount_info, std::string_view path) {
  std::optional<Mount> found;
  for (const std::string_view line : WordsOf(mount_info, '\n')) {
    // A line is ID PARENT DEVICE ROOT POINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER-OPTIONS.
    const std::vector<std::string_view> words = WordsOf(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() < 6 || words.end() - dash < 3) continue;
    Mount mount{.point = Unescaped(words[4]), .file_system = std::string(dash[1])};
    if (!IsAbove(mount.point, path)) continue;
    if (found && mount.point.size() < found->point.size()) continue;
    mount.read_only =
        HasOption(words[5], "ro") || (words.end() - dash > 3 && HasOption(dash[3], "ro"));
    found = std::move(mount);
  }
  return found;
}

}  // namespace spoke::node_checks
