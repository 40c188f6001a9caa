#include "lib/node_checks/facts/mount_table.h"

#include <algorithm>
#include <vector>

namespace spoke::node_checks {
namespace {

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
