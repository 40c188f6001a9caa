#include "lib/node_checks/services/nameservers.h"

#include <algorithm>

namespace spoke::node_checks {
namespace {

constexpr std::string_view kKey = "nameserver";
constexpr std::string_view kBlanks = " \t\r";

// Returns what stands behind the key; empty: it is no such line.
std::string_view ServerOf(std::string_view line) {
  if (!line.starts_with(kKey)) return {};
  line.remove_prefix(kKey.size());
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == 0 || begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  return line.substr(0, line.find_first_of("% \t\r#;"));
}

}  // namespace

std::vector<ip::Address> ParseNameservers(std::string_view text) {
  std::vector<ip::Address> out;
  while (!text.empty() && out.size() < kMaxNameservers) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto address = ip::Address::Parse(ServerOf(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!address.ok() || std::find(out.begin(), out.end(), *address) != out.end()) continue;
    out.push_back(*address);
  }
  return out;
}

}  // namespace spoke::node_checks
