#include "netagent/config.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"
#include "lib/config/health_field.h"
#include "lib/config/host_port.h"
#include "lib/config/tls_fields.h"
#include "lib/node_checks/services/service_settings.h"
#include "lib/os/file.h"
#include "netagent/iptables/iptables_rules.h"

namespace spoke::netagent {
namespace {

using config::ConfigMap;
using config::Need;

constexpr uint32_t kMinMtu = 576;     // RFC 791: every host takes that much.
constexpr uint32_t kMaxMtu = 65'535;  // The most that an IPv4 length field holds.
constexpr size_t kMaxLabels = 64;
// The limit leaves room for the node's own and Services' resolvers (DnsListener::kMaxResolvers).
constexpr size_t kMaxResolvers = 16;
constexpr size_t kMaxLabelBytes = 63;
constexpr size_t kMaxLabelPrefixBytes = 253;

void RequireDirectory(const ConfigMap& map, std::string_view key, const std::string& directory,
                      const CheckDirectory& check) {
  if (const absl::Status status = check(directory); !status.ok()) {
    map.Error(key, fmt::format("{}; create it first", base::MessageOf(status)));
  }
}

void ReadMtu(const ConfigMap& root, uint32_t* mtu) {
  root.Uint32("mtu", mtu, Need::kOptional, {0, kMaxMtu});
  if (*mtu != 0 && *mtu < kMinMtu) {
    root.Error("mtu", fmt::format("{} is below {}; 0 takes the NIC's", *mtu, kMinMtu));
  }
}

// Whether the text fits Kubernetes' rules for labels, so that a node's can be copied: letters,
// digits and "-_.", with a letter or digit at both ends.
bool IsLabelText(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= kMaxLabelBytes && plain(text.front()) &&
         plain(text.back()) && std::all_of(text.begin(), text.end(), [&](char c) {
           return plain(c) || c == '-' || c == '_' || c == '.';
         });
}

// Whether the text has the form "zone" or "example.com/zone".
bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsLabelText(key);
  const std::string_view prefix = key.substr(0, slash);
  return prefix.size() <= kMaxLabelPrefixBytes && IsLabelText(key.substr(slash + 1)) &&
         !prefix.empty() && std::all_of(prefix.begin(), prefix.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

void ReadLabels(const ConfigMap& root, std::map<std::string, std::string>* labels) {
  const ConfigMap map = root.Map("labels", Need::kOptional);
  const std::vector<std::string> keys = map.Keys();
  if (keys.size() > kMaxLabels) {
    map.Error("", fmt::format("{} labels; at most {} are taken", keys.size(), kMaxLabels));
  }
  for (const std::string& key : keys) {
    if (!IsLabelKey(key)) map.Error(key, "is no label's name: use letters, digits and -_.");
    map.Custom(key, Need::kOptional, [&](std::string_view text) -> absl::Status {
      if (!IsLabelText(text)) {
        return absl::InvalidArgumentError(fmt::format(
            "must be 1 to {} letters, digits and -_. with a letter or digit at both ends, not '{}'",
            kMaxLabelBytes, text));
      }
      labels->insert_or_assign(key, std::string(text));
      return absl::OkStatus();
    });
  }
}

// Takes a URL such as "http://169.254.169.254", behind which paths are put.
// The platform is at addresses, and a name would be resolved by servers that pods may reach.
absl::Status TakeBaseUrl(std::string_view text, std::string* out) {
  constexpr std::string_view kScheme = "http://";
  constexpr std::string_view kDefaultPort = ":80";
  std::string_view host = text.substr(std::min(text.size(), kScheme.size()));
  const bool has_port = config::IsHostPort(host);
  if (has_port) host = host.substr(0, host.rfind(':'));
  const bool right = text.substr(0, kScheme.size()) == kScheme &&
                     config::IsHostPort(fmt::format("{}{}", host, kDefaultPort));
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  if (!right || !ip::Address::Parse(host).ok()) {
    return absl::InvalidArgumentError(
        fmt::format("must be http://ADDRESS or http://ADDRESS:PORT and no more, not '{}'", text));
  }
  *out = std::string(text);
  return absl::OkStatus();
}

absl::Status TakeReflector(std::string_view text, std::optional<ip::Address>* out) {
  const auto address = ip::Address::Parse(text);
  if (!address.ok() || !address->is_v4()) {
    return absl::InvalidArgumentError(fmt::format("must be an IPv4 address, not '{}'", text));
  }
  *out = *address;
  return absl::OkStatus();
}

void ReadAzure(const ConfigMap& root, std::optional<AzureConfig>* azure) {
  if (!root.Has("azure")) return;
  AzureConfig& out = azure->emplace();
  const ConfigMap map = root.Map("azure", Need::kOptional);
  map.Custom("imds", Need::kOptional,
             [&](std::string_view text) { return TakeBaseUrl(text, &out.imds); });
  map.Custom("wireserver", Need::kOptional,
             [&](std::string_view text) { return TakeBaseUrl(text, &out.wireserver); });
  map.Custom("reflector", Need::kOptional,
             [&](std::string_view text) { return TakeReflector(text, &out.reflector); });
  map.Bool("prove", &out.prove, Need::kOptional);
  map.Duration("prove_deadline", &out.prove_deadline, Need::kOptional,
               {absl::Seconds(1), absl::Hours(1)});
}

void ReadMaintenance(const ConfigMap& root, std::optional<MaintenanceConfig>* maintenance) {
  if (!root.Has("maintenance")) return;
  MaintenanceConfig& out = maintenance->emplace();
  const ConfigMap map = root.Map("maintenance", Need::kOptional);
  const bool has_azure = root.Has("azure");
  const bool has_file = map.Has("file");
  map.Custom("source", Need::kRequired, [&](std::string_view text) -> absl::Status {
    if (text == "azure" && !has_azure) {
      return absl::InvalidArgumentError("azure needs the section azure, whose imds is asked");
    }
    if (text == "azure" && has_file) {
      return absl::InvalidArgumentError("azure reads no file: leave the key file out, or say file");
    }
    if (text == "file" && !has_file) {
      return absl::InvalidArgumentError("file needs the key file, such as /run/maintenance.json");
    }
    if (text != "azure" && text != "file") {
      return absl::InvalidArgumentError(fmt::format("must be azure or file, not '{}'", text));
    }
    return absl::OkStatus();
  });
  map.String("file", &out.file, Need::kOptional);
  map.Duration("poll", &out.poll, Need::kOptional, {absl::Milliseconds(200), absl::Minutes(10)});
}

absl::Status TakeNodeSettings(std::string_view text, bool* own) {
  if (text != "own" && text != "told") {
    return absl::InvalidArgumentError(fmt::format("must be own or told, not '{}'", text));
  }
  *own = text == "own";
  return absl::OkStatus();
}

absl::Status TakeFastPath(std::string_view text, TrafficConfig* out) {
  if (text != "auto" && text != "always" && text != "off") {
    return absl::InvalidArgumentError(fmt::format("must be auto, always or off, not '{}'", text));
  }
  out->fast_path = text != "off";
  out->yields = text != "always";
  return absl::OkStatus();
}

absl::Status TakePlatformAccess(std::string_view text, PlatformAccess* out) {
  if (text == "closed") {
    *out = PlatformAccess::kClosed;
  } else if (text == "audit") {
    *out = PlatformAccess::kAudit;
  } else if (text == "open") {
    *out = PlatformAccess::kOpen;
  } else {
    return absl::InvalidArgumentError(fmt::format("must be closed, audit or open, not '{}'", text));
  }
  return absl::OkStatus();
}

// With fewer than these a pod could not even ask for names.
constexpr uint32_t kFewestConnections = 16;

// Takes a number, or nothing for "auto".
absl::Status TakeShare(std::string_view text, uint32_t most, std::optional<uint32_t>* out) {
  if (text == "auto") return absl::OkStatus();
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < kFewestConnections ||
      number > most) {
    return absl::InvalidArgumentError(
        fmt::format("must be auto, or from {} to {}, not '{}'", kFewestConnections, most, text));
  }
  *out = number;
  return absl::OkStatus();
}

absl::Status TakePodConnections(std::string_view text, ShareSettings* out) {
  // The kernel can be told to track as many as this.
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  out->bounded = text != "off";
  return out->bounded ? TakeShare(text, kMost, &out->connections) : absl::OkStatus();
}

void ReadTraffic(const ConfigMap& root, TrafficConfig* traffic) {
  const ConfigMap map = root.Map("traffic", Need::kOptional);
  map.Bool("enabled", &traffic->enabled, Need::kOptional);
  map.Custom("fast_path", Need::kOptional,
             [&](std::string_view text) { return TakeFastPath(text, traffic); });
  map.Bool("require_policy", &traffic->require_policy, Need::kOptional);
  map.Custom("platform_access", Need::kOptional, [&](std::string_view text) {
    return TakePlatformAccess(text, &traffic->platform_access);
  });
  map.Custom("pod_connections", Need::kOptional,
             [&](std::string_view text) { return TakePodConnections(text, &traffic->shares); });
  map.Custom("pod_ports", Need::kOptional, [&](std::string_view text) {
    constexpr uint32_t kMost = 64'512;  // The ports that the kernel translates to.
    return TakeShare(text, kMost, &traffic->shares.ports);
  });
}

void ReadShaping(const ConfigMap& root, ShapingConfig* shaping) {
  const ConfigMap map = root.Map("shaping", Need::kOptional);
  map.Bool("enabled", &shaping->enabled, Need::kOptional);
  map.CustomList("resolvers", Need::kOptional, [&](std::string_view text) -> absl::Status {
    ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text));
    shaping->resolvers.push_back(address);
    return absl::OkStatus();
  });
  if (shaping->resolvers.size() > kMaxResolvers) {
    map.Error("resolvers", fmt::format("{} resolvers; at most {} are taken",
                                       shaping->resolvers.size(), kMaxResolvers));
  }
}

void ReadPort(const ConfigMap& map, std::string_view key, uint16_t* port) {
  uint32_t number = *port;
  map.Uint32(key, &number, Need::kOptional, {1, 65'535});
  *port = static_cast<uint16_t>(number);
}

void ReadEgressGateway(const ConfigMap& egress, std::optional<EgressGatewayRole>* role) {
  if (!egress.Has("gateway")) return;
  EgressGatewayRole& out = role->emplace();
  const ConfigMap map = egress.Map("gateway", Need::kOptional);
  map.CustomList("addresses", Need::kOptional, [&](std::string_view text) -> absl::Status {
    ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text));
    out.addresses.push_back(address);
    return absl::OkStatus();
  });
  ReadPort(map, "health_port", &out.health_port);
  map.Bool("draining", &out.draining, Need::kOptional);
  map.String("drain_file", &out.drain_file, Need::kOptional);
}

void ReadNatHost(const ConfigMap& egress, std::optional<NatHostConfig>* nat_host) {
  if (!egress.Has("nat_host")) return;
  NatHostConfig& out = nat_host->emplace();
  const ConfigMap map = egress.Map("nat_host", Need::kOptional);
  map.String("endpoints", &out.endpoints, Need::kOptional);
  map.Duration("max_age", &out.max_age, Need::kOptional, {absl::Seconds(5), absl::Hours(1)});
  ReadPort(map, "health_port", &out.health_port);
}

void ReadEgress(const ConfigMap& root, EgressConfig* out) {
  // Azure's own addresses answer to a node's primary address only.
  out->platform = root.Has("azure");
  if (!root.Has("egress")) return;
  const ConfigMap map = root.Map("egress", Need::kOptional);
  map.Bool("platform", &out->platform, Need::kOptional);
  if (map.Has("ip_masq")) {
    IpMasqSource& source = out->ip_masq.emplace();
    const ConfigMap ip_masq = map.Map("ip_masq", Need::kOptional);
    ip_masq.String("path", &source.path, Need::kRequired);
    ip_masq.Bool("ipv6", &source.ipv6, Need::kOptional);
  }
  ReadEgressGateway(map, &out->gateway);
  ReadNatHost(map, &out->nat_host);
}

// Takes a path such as "/usr/lib/cni/spoke": its last part becomes the name of the copy.
absl::Status TakeFilePath(std::string_view text, std::string* out) {
  if (text.front() != '/' || text.back() == '/') {
    return absl::InvalidArgumentError(
        fmt::format("must be the path of a file, from /, not '{}'", text));
  }
  *out = std::string(text);
  return absl::OkStatus();
}

// Takes "ipam:7443", "[fd00::1]:7443" or "unix:/run/ipam.sock".
absl::Status TakeServer(std::string_view text, std::vector<std::string>* out) {
  constexpr std::string_view kSocket = "unix:/";
  const bool is_socket = text.substr(0, kSocket.size()) == kSocket && text.size() > kSocket.size();
  if (!is_socket && !config::IsHostPort(text)) {
    return absl::InvalidArgumentError(
        fmt::format("must be HOST:PORT or [IPV6]:PORT, such as ipam.example:7443, not '{}'", text));
  }
  if (std::find(out->begin(), out->end(), text) != out->end()) {
    return absl::InvalidArgumentError(fmt::format("'{}' is there twice; remove one", text));
  }
  out->emplace_back(text);
  return absl::OkStatus();
}

// Reads `server` or `servers`, of which there must be one.
void ReadServers(const ConfigMap& map, std::vector<std::string>* out) {
  if (!map.present()) return;
  const auto take = [&](std::string_view text) { return TakeServer(text, out); };
  if (map.Has("server") == map.Has("servers")) {
    return map.Error("servers", map.Has("server")
                                    ? "give either server or servers, not both"
                                    : "give server: HOST:PORT, or servers: with a list of them");
  }
  map.Custom("server", Need::kOptional, take);
  map.CustomList("servers", Need::kOptional, take);
  if (map.IsEmptyList("servers")) map.Error("servers", "must name a server");
  if (out->size() > kMaxServers) {
    map.Error("servers", fmt::format("{} servers; at most {} are taken", out->size(), kMaxServers));
  }
}

// Reads `enroll`; `server_name` and `state_dir` must have been read.
void ReadEnroll(const ConfigMap& root, AgentConfig* config) {
  rpc::TlsFiles files;
  if (root.present() && root.Has("enroll")) {
    EnrollConfig& out = config->enroll.emplace();
    out.server_name = config->server_name;
    const ConfigMap map = root.Map("enroll", Need::kRequired);
    ReadServers(map, &out.servers);
    map.String("token_file", &out.token_file, Need::kOptional);
    map.String("ca_file", &out.ca_file, Need::kOptional);
    map.String("server_name", &out.server_name, Need::kOptional);
    files = {.ca = config->state_dir + "/tls/roots.pem",
             .certificate = config->state_dir + "/tls/node.pem",
             .key = config->state_dir + "/tls/node.key"};
  }
  config::ReadTlsOrEnrolled(root, files, &config->tls);
}

// Takes the name of a file that runtimes load, which lies in the directory itself.
absl::Status TakeConflistName(std::string_view text, std::string* out) {
  const auto ends_with = [&](std::string_view end) {
    return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
  };
  if (text.empty() || text.front() == '.' || text.find('/') != std::string_view::npos ||
      !ends_with(".conflist")) {
    return absl::InvalidArgumentError(
        fmt::format("must be a file's name that ends in .conflist, not '{}'", text));
  }
  *out = std::string(text);
  return absl::OkStatus();
}

void ReadCniFiles(const ConfigMap& root, const CheckDirectory& check,
                  std::optional<CniFilesConfig>* files) {
  if (!root.Has("cni")) return;
  CniFilesConfig& out = files->emplace();
  const ConfigMap map = root.Map("cni", Need::kOptional);
  map.String("conf_dir", &out.conf_dir, Need::kOptional);
  RequireDirectory(map, "conf_dir", out.conf_dir, check);
  map.Custom("conf_file", Need::kOptional,
             [&](std::string_view text) { return TakeConflistName(text, &out.conf_file); });
  map.String("content", &out.content, Need::kOptional);
  map.String("bin_dir", &out.bin_dir, Need::kOptional);
  if (!out.bin_dir.empty()) RequireDirectory(map, "bin_dir", out.bin_dir, check);
  map.Custom("plugin", Need::kOptional,
             [&](std::string_view text) { return TakeFilePath(text, &out.plugin); });
}

// Takes an absolute path. It need not be there: the checks then say less, and pods are served.
absl::Status TakeHostRoot(std::string_view text, std::string* out) {
  if (text.empty() || text.front() != '/') {
    return absl::InvalidArgumentError(
        fmt::format("must be an absolute path, such as /host, not '{}'", text));
  }
  while (text.size() > 1 && text.back() == '/') text.remove_suffix(1);
  *out = std::string(text);
  return absl::OkStatus();
}

void ReadHostRoot(const ConfigMap& root, std::string* out) {
  root.Custom("host_root", Need::kOptional,
              [&](std::string_view text) { return TakeHostRoot(text, out); });
}

// Takes "127.0.0.1:9465", "[::1]:9465", or "off", which becomes empty.
absl::Status TakeListener(std::string_view text, std::string* out) {
  if (text == "off") {
    out->clear();
    return absl::OkStatus();
  }
  const size_t colon = text.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (colon == 0 || error != std::errc() || end != port.data() + port.size() ||
      text.find_first_of(" /") != std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("must be HOST:PORT, such as 127.0.0.1:9465, or off, not '{}'", text));
  }
  *out = std::string(text);
  return absl::OkStatus();
}

// Takes an IPv4 block that leaves something outside, or "off".
absl::Status TakeCluster(std::string_view text, std::optional<ip::Prefix>* out) {
  if (text == "off") {
    out->reset();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const ip::Prefix block, ip::Prefix::Parse(text));
  if (block.family() != ip::Family::kV4 || block.length() == 0) {
    return absl::InvalidArgumentError(
        fmt::format("must be an IPv4 block such as 10.0.0.0/8, or off, not '{}'", text));
  }
  *out = block;
  return absl::OkStatus();
}

void ReadMetrics(const ConfigMap& root, MetricsConfig* out) {
  // This is more than a Prometheus wants of each of thousands of nodes.
  constexpr uint32_t kMost = 64;
  const ConfigMap map = root.Map("metrics", Need::kOptional);
  map.Custom("address", Need::kOptional,
             [&](std::string_view text) { return TakeListener(text, &out->address); });
  map.String("token_file", &out->token_file, Need::kOptional);
  map.Uint32("namespaces", &out->namespaces, Need::kOptional, {0, kMost});
  map.Uint32("pods", &out->pods, Need::kOptional, {0, kMost - 1});
  IptablesExporterConfig& iptables = out->iptables_exporter;
  const ConfigMap exporter = map.Map("iptables_exporter", Need::kOptional);
  exporter.Custom("address", Need::kOptional,
                  [&](std::string_view text) { return TakeListener(text, &iptables.address); });
  exporter.Custom("retailnext_address", Need::kOptional, [&](std::string_view text) {
    return TakeListener(text, &iptables.retailnext_address);
  });
  if (exporter.Has("tables")) iptables.tables.clear();
  exporter.CustomList("tables", Need::kOptional, [&](std::string_view text) -> absl::Status {
    if (std::find(kIptablesTables.begin(), kIptablesTables.end(), text) == kIptablesTables.end()) {
      return absl::InvalidArgumentError(
          fmt::format("must be of {}, not '{}'", fmt::join(kIptablesTables, ", "), text));
    }
    iptables.tables.emplace_back(text);
    return absl::OkStatus();
  });
  exporter.Custom("cluster", Need::kOptional,
                  [&](std::string_view text) { return TakeCluster(text, &iptables.cluster); });
}

}  // namespace

absl::StatusOr<AgentConfig> ParseAgentConfig(std::string_view text, const std::string& file,
                                             const CheckDirectory& check_directory,
                                             const config::VariableLookup& variables) {
  AgentConfig out;
  config::ConfigText document = config::ConfigText::Parse(text, file, variables);
  const ConfigMap root = document.Root();
  root.String("node_name", &out.node_name, Need::kOptional);
  root.String("vm_id", &out.vm_id, Need::kOptional);
  root.String("nic", &out.nic, Need::kOptional);
  ReadServers(root, &out.servers);
  root.String("server_name", &out.server_name, Need::kOptional);
  root.String("cni_socket", &out.cni_socket, Need::kOptional);
  RequireDirectory(root, "cni_socket", os::DirectoryOf(out.cni_socket), check_directory);
  root.Duration("cni_wait", &out.cni_wait, Need::kOptional,
                {absl::ZeroDuration(), absl::Minutes(4)});
  root.Bool("strict_status", &out.strict_status, Need::kOptional);
  ReadCniFiles(root, check_directory, &out.cni);
  root.String("state_dir", &out.state_dir, Need::kOptional);
  // The agent makes `state_dir` in a directory that is there.
  RequireDirectory(root, "state_dir", os::DirectoryOf(out.state_dir), check_directory);
  root.String("lasting_dir", &out.lasting_dir, Need::kOptional);
  if (!out.lasting_dir.empty()) {
    RequireDirectory(root, "lasting_dir", os::DirectoryOf(out.lasting_dir), check_directory);
  }
  ReadEnroll(root, &out);
  ReadHostRoot(root, &out.host_root);
  root.Duration("cooldown", &out.cooldown, Need::kOptional, {absl::ZeroDuration(), absl::Hours(1)});
  root.Duration("lost_del_after", &out.lost_del_after, Need::kOptional,
                {absl::ZeroDuration(), absl::Hours(24)});
  ReadMtu(root, &out.mtu);
  root.Bool("repair_pods", &out.repair_pods, Need::kOptional);
  root.Bool("detect_conflicts", &out.detect_conflicts, Need::kOptional);
  root.Custom("node_settings", Need::kOptional,
              [&](std::string_view value) { return TakeNodeSettings(value, &out.own_settings); });
  node_checks::ReadServiceSettings(root, &out.service_checks);
  ReadLabels(root, &out.labels);
  root.String("vnet", &out.vnet, Need::kOptional);
  root.Duration("connect_jitter", &out.connect_jitter, Need::kOptional,
                {absl::ZeroDuration(), absl::Minutes(10)});
  ReadTraffic(root, &out.traffic);
  ReadShaping(root, &out.shaping);
  ReadMetrics(root, &out.metrics);
  ReadAzure(root, &out.azure);
  ReadMaintenance(root, &out.maintenance);
  ReadEgress(root, &out.egress);
  config::ReadHealth(root, check_directory, &out.health);
  config::ReadHealthHttp(root, &out.health_http);
  root.Bool("debug", &out.debug, Need::kOptional);
  RETURN_IF_ERROR(document.Finish());
  return out;
}

}  // namespace spoke::netagent
