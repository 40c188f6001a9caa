#include "admin-cli/pool/pool_object.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fmt/core.h"

namespace spoke::ctl {
namespace {

// A JSON string is a YAML string.
std::string Quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string PoolYaml(const PoolObject& pool) {
  std::string yaml =
      fmt::format("apiVersion: spoke/v1\nkind: Pool\nmetadata:\n  name: {}\nspec:\n  cidr: {}\n",
                  Quoted(pool.name), Quoted(pool.cidr));
  if (!pool.vnet.empty()) yaml += fmt::format("  vnet: {}\n", Quoted(pool.vnet));
  if (pool.block_prefix_length != 0) {
    yaml += fmt::format("  blockPrefixLength: {}\n", pool.block_prefix_length);
  }
  if (!pool.node_labels.empty()) yaml += "  nodeLabels:\n";
  for (const auto& [key, label] : pool.node_labels) {
    yaml += fmt::format("    {}: {}\n", Quoted(key), Quoted(label));
  }
  if (!pool.namespaces.empty()) yaml += "  namespaces:\n";
  for (const std::string& name : pool.namespaces) yaml += fmt::format("    - {}\n", Quoted(name));
  return yaml;
}

absl::StatusOr<std::string> WithCidr(std::string_view yaml, std::string_view cidr) {
  constexpr std::string_view kKey = "cidr:";
  std::string out;
  int found = 0;
  bool in_spec = false;
  size_t spec_indent = 0;  // The indent of its members; 0: not seen yet.
  while (!yaml.empty()) {
    const size_t end = yaml.find('\n');
    const std::string_view line = yaml.substr(0, end);
    yaml.remove_prefix(end == std::string_view::npos ? yaml.size() : end + 1);
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view text = line.substr(indent);
    if (indent == 0 && !text.empty()) in_spec = text.substr(0, 5) == "spec:";
    if (in_spec && indent > 0 && spec_indent == 0) spec_indent = indent;
    if (in_spec && indent == spec_indent && text.substr(0, kKey.size()) == kKey) {
      out += fmt::format("{}{} {}\n", line.substr(0, indent), kKey, Quoted(cidr));
      ++found;
    } else {
      out += fmt::format("{}\n", line);
    }
  }
  if (found != 1) {
    return absl::InternalError(fmt::format(
        "the server's object has its cidr {} times, not once; change it with: spokectl get Pool "
        "NAME -o yaml, and spokectl apply -f",
        found));
  }
  return out;
}

}  // namespace spoke::ctl
