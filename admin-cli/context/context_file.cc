#include "admin-cli/context/context_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "admin-cli/output/table.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"
#include "lib/config/host_port.h"
#include "lib/os/file.h"

namespace spoke::ctl {
namespace {

using config::ConfigMap;
using config::Need;

constexpr size_t kMaxNameBytes = 63;
constexpr size_t kMaxServers = 16;
constexpr size_t kMaxFileBytes = size_t{1} << 20;

bool IsUnix(std::string_view server) { return server.starts_with("unix:"); }

Context ReadContext(const ConfigMap& map) {
  Context context;
  map.CustomList("servers", Need::kRequired, [&](std::string_view text) {
    context.servers.emplace_back(text);
    return CheckServer(text);
  });
  if (map.present() && map.Has("servers") &&
      (context.servers.empty() || context.servers.size() > kMaxServers)) {
    map.Error("servers", fmt::format("needs 1 to {} servers", kMaxServers));
  }
  map.String("ca", &context.ca, Need::kOptional);
  map.String("certificate", &context.certificate, Need::kOptional);
  map.String("key", &context.key, Need::kOptional);
  map.String("server_name", &context.server_name, Need::kOptional);
  const bool over_tls = !std::all_of(context.servers.begin(), context.servers.end(), IsUnix);
  if (over_tls && (context.ca.empty() || context.certificate.empty() || context.key.empty())) {
    map.Error("", "a server at host:port needs ca, certificate and key (spokectl login gets them)");
  }
  return context;
}

absl::Status MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), 0700) < 0 && errno != EEXIST) {
      return base::ErrnoToStatus(errno, fmt::format("make the folder {}", folder));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckContextName(std::string_view name) {
  const auto fits = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '.' ||
      !std::all_of(name.begin(), name.end(), fits)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is no name of a context; write 1 to {} letters, digits, -, _ and .",
                    name, kMaxNameBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckServer(std::string_view server) {
  if (server.starts_with("unix:/") || config::IsHostPort(server)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is no server; write HOST:PORT, [IPV6]:PORT or unix:/path", server));
}

absl::StatusOr<ContextFile> ParseContexts(std::string_view text, const std::string& file) {
  ContextFile out;
  config::ConfigText document = config::ConfigText::Parse(text, file);
  const ConfigMap root = document.Root();
  root.String("current", &out.current, Need::kOptional);
  const ConfigMap map = root.Map("contexts", Need::kOptional);
  for (const std::string& name : map.present() ? map.Keys() : std::vector<std::string>()) {
    if (const absl::Status status = CheckContextName(name); !status.ok()) {
      map.Error(name, std::string(base::MessageOf(status)));
    }
    out.contexts[name] = ReadContext(map.Map(name, Need::kRequired));
  }
  if (!out.current.empty() && !out.contexts.contains(out.current)) {
    root.Error("current", fmt::format("there is no context \"{}\" below contexts", out.current));
  }
  RETURN_IF_ERROR(document.Finish());
  return out;
}

std::string PrintContexts(const ContextFile& contexts) {
  nlohmann::ordered_json value = nlohmann::ordered_json::object();
  if (!contexts.current.empty()) value["current"] = contexts.current;
  for (const auto& [name, context] : contexts.contexts) {
    nlohmann::ordered_json& out = value["contexts"][name];
    out["servers"] = context.servers;
    for (const auto& [key, text] : {std::pair<const char*, const std::string&>{"ca", context.ca},
                                    {"certificate", context.certificate},
                                    {"key", context.key},
                                    {"server_name", context.server_name}}) {
      if (!text.empty()) out[key] = text;
    }
  }
  return FormatYaml(value);
}

std::string ContextPath(const std::function<std::string(const std::string&)>& variable) {
  if (const std::string path = variable("SPOKE_CONFIG"); !path.empty()) return path;
  if (const std::string xdg = variable("XDG_CONFIG_HOME"); !xdg.empty()) {
    return xdg + "/spoke/config.yaml";
  }
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.config/spoke/config.yaml";
}

absl::StatusOr<ContextFile> ReadContexts(const std::string& path) {
  if (path.empty()) return ContextFile();
  const auto text = os::ReadFile(path, kMaxFileBytes);
  if (absl::IsNotFound(text.status())) return ContextFile();
  RETURN_IF_ERROR(text.status());
  auto contexts = ParseContexts(*text, path);
  if (contexts.ok()) return contexts;
  return absl::InvalidArgumentError(
      fmt::format("the file of contexts has mistakes:\n{}", base::MessageOf(contexts.status())));
}

absl::Status WriteContexts(const std::string& path, const ContextFile& contexts) {
  if (path.empty()) {
    return absl::FailedPreconditionError(
        "nobody knows where contexts are kept: set HOME, or SPOKE_CONFIG to a file");
  }
  RETURN_IF_ERROR(MakeFolders(path));
  return os::WriteFileAtomic(path, PrintContexts(contexts), os::Durability::kSurvivesPower, 0600);
}

}  // namespace spoke::ctl
