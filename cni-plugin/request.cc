#include "cni-plugin/request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace spoke::cni {
namespace {

using nlohmann::json;

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "must start with an alphanumeric character, optionally followed by any combination of one or more
// alphanumeric characters, underscore (_), dot (.) or hyphen (-)": container ids and network names.
bool IsIdentifier(std::string_view text) {
  return !text.empty() && IsAlnum(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '_' || c == '.' || c == '-'; });
}

// What the kernel takes for a device name (dev_valid_name() in net/core/dev.c): 1 to 15 bytes, not
// "." or "..", no slash, colon or white space. Bytes above 0x7F could be Unicode white space.
bool IsInterfaceName(std::string_view name) {
  constexpr size_t kMaxLength = 15;
  return !name.empty() && name.size() <= kMaxLength && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < 0x7F && c != '/' && c != ':'; });
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += ", ";
    text += part;
  }
  return text;
}

// "K=V;K2=V2" as the runtimes write it, in any order. Lenient: what is malformed or unknown must
// not keep a pod from being attached, and still less from being removed.
void ReadArgs(std::string_view args, Request& request) {
  while (!args.empty()) {
    const size_t end = std::min(args.find(';'), args.size());
    const std::string_view pair = args.substr(0, end);
    args.remove_prefix(std::min(end + 1, args.size()));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = pair.substr(0, equals);
    const std::string value(pair.substr(equals + 1));
    if (key == "K8S_POD_NAMESPACE") request.pod_namespace = value;
    if (key == "K8S_POD_NAME") request.pod_name = value;
    if (key == "K8S_POD_UID") request.pod_uid = value;
  }
}

Expected<Command> ParseCommand(const std::string& text) {
  if (text == "ADD") return Command::kAdd;
  if (text == "DEL") return Command::kDel;
  if (text == "VERSION") return Command::kVersion;
  return Error{kInvalidEnvironment, "unknown CNI_COMMAND: " + text,
               "this plugin knows ADD, DEL and VERSION"};
}

std::string SupportedVersions() {
  std::vector<std::string> versions(std::begin(kSupportedVersions), std::end(kSupportedVersions));
  return Join(versions);
}

Error BadConfig(std::string message) { return {kInvalidConfig, std::move(message), ""}; }

// The text of a key; nullopt where the key is absent. Sets `error` when it holds something else.
std::optional<std::string> TextOf(const json& config, const char* key,
                                  std::optional<Error>& error) {
  const auto it = config.find(key);
  if (it == config.end()) return std::nullopt;
  if (it->is_string()) return it->get<std::string>();
  error = BadConfig(std::string("\"") + key + "\" in the network configuration must be a string");
  return std::nullopt;
}

std::optional<Error> CheckVersion(const std::string& version) {
  for (const char* supported : kSupportedVersions) {
    if (version == supported) return std::nullopt;
  }
  return Error{
      kIncompatibleVersion, "incompatible CNI versions",
      "the configuration is \"" + version + "\", the plugin supports " + SupportedVersions()};
}

}  // namespace

Expected<Request> ParseEnvironment(const Environment& environment) {
  Request request;
  const auto command = ParseCommand(environment("CNI_COMMAND").value_or(""));
  if (!command.ok()) return command.error();
  request.command = *command;
  // Runtimes probe with dummies in the other variables, so VERSION looks at none of them.
  if (request.command == Command::kVersion) return request;

  request.container_id = environment("CNI_CONTAINERID").value_or("");
  request.ifname = environment("CNI_IFNAME").value_or("");
  request.netns = environment("CNI_NETNS").value_or("");
  ReadArgs(environment("CNI_ARGS").value_or(""), request);
  std::vector<std::string> missing;
  if (request.container_id.empty()) missing.emplace_back("CNI_CONTAINERID");
  if (request.ifname.empty()) missing.emplace_back("CNI_IFNAME");
  // After a reboot or a crash a DEL has no namespace any more.
  if (request.netns.empty() && request.command == Command::kAdd) missing.emplace_back("CNI_NETNS");
  if (!missing.empty()) {
    return Error{kInvalidEnvironment, "required environment variables missing: " + Join(missing),
                 ""};
  }
  if (!IsIdentifier(request.container_id)) {
    return Error{kInvalidEnvironment, "invalid characters in CNI_CONTAINERID",
                 request.container_id};
  }
  if (!IsInterfaceName(request.ifname)) {
    return Error{kInvalidEnvironment, "CNI_IFNAME is not a name for a network interface",
                 request.ifname};
  }
  return request;
}

Expected<Request> ParseConfig(Request request, std::string_view text) {
  if (request.command == Command::kVersion) return request;
  const json config = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) {
    return Error{kDecodingFailure,
                 "the network configuration on standard input is not a JSON object", ""};
  }
  std::optional<Error> error;
  const auto name = TextOf(config, "name", error);
  // The spec before 1.0.0 lets it be absent, and means 0.1.0.
  const auto version = TextOf(config, "cniVersion", error);
  const auto socket = TextOf(config, "socket", error);
  if (error) return *error;
  if (!name || !IsIdentifier(*name)) {
    return BadConfig(name ? "invalid characters in the network's name: " + *name
                          : std::string("the network configuration has no name"));
  }
  if (const auto incompatible = CheckVersion(version.value_or("0.1.0"))) return *incompatible;
  if (socket && !socket->starts_with('/')) {
    return BadConfig("\"socket\" must be the absolute path of the agent's socket, not " + *socket);
  }
  if (request.command == Command::kAdd && config.contains("prevResult")) {
    return BadConfig(
        "this plugin must be the first of its chain: move it to the front of \"plugins\"");
  }
  request.network_name = *name;
  request.cni_version = *version;
  if (socket) request.socket = *socket;
  if (const auto dns = config.find("dns"); dns != config.end() && dns->is_object()) {
    request.dns_json = dns->dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return request;
}

}  // namespace spoke::cni
