#include "ipam-server/config.h"

#include <utility>

#include "fmt/core.h"
#include "ipam-server/config_azure.h"
#include "ipam-server/config_etcd.h"
#include "ipam-server/config_kubernetes.h"
#include "lib/base/dns_name.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"
#include "lib/config/health_field.h"
#include "lib/config/host_port.h"
#include "lib/config/tls_fields.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;

constexpr uint32_t kMaxAddressesPerNode = 4096;
constexpr uint32_t kMaxAgentsPerAddress = 16'384;

void RequireDirectoryOf(const ConfigMap& map, std::string_view key, const std::string& path,
                        const CheckDirectory& check) {
  if (path.empty()) return;
  const std::string directory = os::DirectoryOf(path);
  if (const absl::Status status = check(directory); !status.ok()) {
    map.Error(key, fmt::format("{}; create it first", base::MessageOf(status)));
  }
}

void ReadListenAddress(const ConfigMap& map, const char* key, std::string& out) {
  // Agents are always listened for. Metrics are served over TCP only.
  const bool may_be_off = std::string_view(key) != "agents";
  const bool may_be_file = std::string_view(key) != "metrics";
  map.Custom(key, Need::kOptional, [&](std::string_view text) {
    const bool is_off = may_be_off && text == "off";
    if (!is_off && !(may_be_file && text.starts_with("unix:/")) &&
        !config::IsHostPort(text, config::PortZero::kTaken)) {
      return absl::InvalidArgumentError(
          fmt::format("must be HOST:PORT or [IPV6]:PORT, such as 0.0.0.0:7443{}, not '{}'",
                      may_be_off ? ", or off" : "", text));
    }
    out = text;
    return absl::OkStatus();
  });
}

void ReadListen(const ConfigMap& root, const CheckDirectory& check, ServerConfig& out) {
  const ConfigMap map = root.Map("listen", Need::kOptional);
  ReadListenAddress(map, "agents", out.listen_agents);
  ReadListenAddress(map, "operators", out.listen_operators);
  ReadListenAddress(map, "metrics", out.listen_metrics);
  map.String("metrics_token_file", &out.metrics_token_file, Need::kOptional);
  map.Uint32("agents_per_address", &out.agents_per_address, Need::kOptional,
             {2, kMaxAgentsPerAddress});
  map.CustomList("advertised", Need::kOptional, [&](std::string_view text) -> absl::Status {
    ASSIGN_OR_RETURN(out.advertised.emplace_back(), ip::Address::Parse(text));
    return absl::OkStatus();
  });
  map.Custom("admin", Need::kOptional, [&](std::string_view text) {
    if (!text.starts_with("unix:/")) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is not a unix socket; write unix:/an/absolute/path", text));
    }
    out.listen_admin = text;
    return absl::OkStatus();
  });
  const std::string path = out.listen_admin.substr(std::string_view("unix:").size());
  RequireDirectoryOf(map.present() ? map : root, "admin", path, check);
}

// `has_cidr`: whether the CIDR block could be read, so that no mistake follows from another.
PoolSpec ReadPool(const ConfigMap& map, bool& has_cidr) {
  PoolSpec pool;
  has_cidr = false;
  map.String("name", &pool.name, Need::kRequired);
  map.Custom("cidr", Need::kRequired, [&](std::string_view text) {
    ASSIGN_OR_RETURN(pool.cidr, ip::Prefix::Parse(text));
    has_cidr = true;
    return absl::OkStatus();
  });
  map.Uint32("reserve_first", &pool.reserve_first, Need::kOptional);
  map.Uint32("reserve_last", &pool.reserve_last, Need::kOptional);
  pool.from_file = true;
  if (has_cidr && AddressPool(pool).usable() == 0) {
    map.Error("cidr",
              fmt::format("{} has no address left after {} reserved ones", pool.cidr.ToString(),
                          uint64_t{pool.reserve_first} + pool.reserve_last));
  }
  return pool;
}

void ReadPools(const ConfigMap& root, ServerConfig& out) {
  const std::vector<ConfigMap> maps = root.MapList("pools", Need::kOptional);
  for (const ConfigMap& map : maps) {
    bool has_cidr = false;
    PoolSpec pool = ReadPool(map, has_cidr);
    for (const PoolSpec& earlier : out.pools) {
      if (!pool.name.empty() && earlier.name == pool.name) {
        map.Error("name", fmt::format("pool \"{}\" is already defined", pool.name));
      }
      if (has_cidr && earlier.cidr.Overlaps(pool.cidr)) {
        map.Error("cidr", fmt::format("{} overlaps {} of pool \"{}\"", pool.cidr.ToString(),
                                      earlier.cidr.ToString(), earlier.name));
      }
    }
    // A pool without a block would overlap everything; the mistake is on record, so it is left out.
    if (has_cidr) out.pools.push_back(std::move(pool));
  }
}

void ReadTarget(const ConfigMap& root, TargetPolicy& out) {
  const ConfigMap map = root.Map("node_addresses", Need::kOptional);
  map.Uint32("min", &out.min, Need::kOptional, {0, kMaxAddressesPerNode});
  map.Uint32("batch", &out.batch, Need::kOptional, {1, kMaxAddressesPerNode});
  map.Double("spare", &out.spare, Need::kOptional, {0.0, 100.0});
  map.Uint32("max", &out.max, Need::kOptional, {1, kMaxAddressesPerNode});
  if (out.min > out.max) {
    map.Error("min", fmt::format("{} is more than max, {}", out.min, out.max));
  }
}

void ReadRelease(const ConfigMap& root, FleetPolicy& out) {
  const ConfigMap map = root.Map("release", Need::kOptional);
  map.Duration("idle", &out.release.idle_time, Need::kOptional, {absl::ZeroDuration()});
  map.Duration("jitter", &out.release.jitter_spread, Need::kOptional, {absl::ZeroDuration()});
  map.Uint32("hysteresis", &out.release.hysteresis, Need::kOptional, {0, kMaxAddressesPerNode});
  map.Duration("denied", &out.release.denial_backoff, Need::kOptional, {absl::Seconds(1)});
  map.Double("freeze_share", &out.breaker.share, Need::kOptional, {0.0, 1.0});
  map.Duration("freeze_window", &out.breaker.window, Need::kOptional,
               {absl::Seconds(1), absl::Hours(24)});
}

void ReadPolicy(const ConfigMap& root, ServerConfig& out) {
  const ConfigMap map = root.Map("policy", Need::kOptional);
  map.Double("max_cut_share", &out.max_cut_share, Need::kOptional, {0.0, 1.0});
}

void ReadHistory(const ConfigMap& root, HistoryLimits& out) {
  const ConfigMap map = root.Map("history", Need::kOptional);
  map.Duration("keep", &out.keep, Need::kOptional, {absl::Hours(1)});
  uint32_t mebibytes = static_cast<uint32_t>(out.max_bytes >> 20U);
  map.Uint32("max_mib", &mebibytes, Need::kOptional, {1, 1U << 16U});
  out.max_bytes = uint64_t{mebibytes} << 20U;
}

void ReadCloud(const ConfigMap& root, const CheckDirectory& check, ServerConfig& out) {
  const ConfigMap cloud = root.Map("cloud", Need::kRequired);
  const bool is_azure = cloud.present() && cloud.Has("azure");
  if (cloud.present() && is_azure == cloud.Has("static")) {
    cloud.Error("", "name one cloud: static or azure");
    return;
  }
  if (is_azure) {
    const ConfigMap map = cloud.Map("azure", Need::kRequired);
    if (map.present()) out.azure = ReadAzure(map);
    if (out.azure) out.policy.name_prefix = out.azure->name_prefix;
    out.policy.cloud_chooses = true;
    return;
  }
  const ConfigMap fixed = cloud.Map("static", Need::kRequired);
  fixed.String("attachments_file", &out.attachments_file, Need::kOptional);
  RequireDirectoryOf(fixed, "attachments_file", out.attachments_file, check);
}

void ReadStore(const ConfigMap& root, const CheckDirectory& check, ServerConfig& out) {
  const ConfigMap store = root.Map("store", Need::kOptional);
  const ConfigMap where = store.present() ? store : root;
  if (!store.present() || !store.Has("etcd")) {
    store.String("sqlite", &out.sqlite, Need::kOptional);
    return RequireDirectoryOf(where, "sqlite", out.sqlite, check);
  }
  if (store.Has("sqlite")) store.Error("sqlite", "name one store: sqlite or etcd");
  const ConfigMap map = store.Map("etcd", Need::kRequired);
  std::string directory = os::DirectoryOf(out.sqlite);
  map.String("directory", &directory, Need::kOptional);
  out.sqlite = directory + "/ipam.db";
  RequireDirectoryOf(map, "directory", out.sqlite, check);
  out.etcd = ReadEtcd(map);
}

absl::Status CheckServerName(std::string_view text) {
  if (base::IsDnsName(text) || ip::Address::Parse(text).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("must be a DNS name in lower case, or an address, not \"{}\"", text));
}

absl::Status TakeDnsName(std::string_view text, std::string* out) {
  if (!base::IsDnsName(text)) {
    return absl::InvalidArgumentError(
        fmt::format("must be a name of letters in lower case, digits, - and ., not \"{}\"", text));
  }
  *out = std::string(text);
  return absl::OkStatus();
}

void ReadOperators(const ConfigMap& enroll, OperatorRules& out) {
  const ConfigMap map = enroll.Map("operators", Need::kOptional);
  map.String("audience", &out.audience, Need::kOptional);
  const std::pair<const char*, std::vector<std::string>*> lists[] = {
      {"viewers", &out.viewers}, {"operators", &out.operators}, {"admins", &out.admins}};
  for (const auto& [key, list] : lists) {
    map.CustomList(key, Need::kOptional, [list = list](std::string_view text) {
      list->emplace_back(text);
      return CheckOperatorSubject(text);
    });
  }
}

// Checks what operators need of each other's keys. `tls` must have been read.
void CheckOperators(const ConfigMap& root, const ServerConfig& config) {
  const bool served = config.listen_operators != "off";
  if (served && config.tls.insecure) {
    root.Map("listen", Need::kOptional)
        .Error(
            "operators",
            "needs TLS, and tls has insecure: true: anybody could be any operator; leave it out");
  }
  if (!served && config.enroll && !config.enroll->operators.empty()) {
    root.Map("enroll", Need::kOptional)
        .Error("operators",
               "gives certificates that nothing accepts; set listen.operators, or leave this out");
  }
}

void ReadEnroll(const ConfigMap& root, const CheckDirectory& check, ServerConfig& out) {
  // The most names: more make a certificate, sent with each handshake, larger than it need be.
  constexpr size_t kMaxServerNames = 32;
  if (root.present() && root.Has("enroll")) {
    EnrollConfig& enroll = out.enroll.emplace();
    const ConfigMap map = root.Map("enroll", Need::kRequired);
    map.String("address", &enroll.address, Need::kOptional);
    map.String("directory", &enroll.directory, Need::kOptional);
    RequireDirectoryOf(map, "directory", enroll.directory, check);
    map.CustomList("server_names", Need::kRequired, [&](std::string_view text) {
      enroll.server_names.emplace_back(text);
      return CheckServerName(text);
    });
    if (map.present() && map.Has("server_names") &&
        (enroll.server_names.empty() || enroll.server_names.size() > kMaxServerNames)) {
      map.Error("server_names", fmt::format("needs 1 to {} names", kMaxServerNames));
    }
    map.String("audience", &enroll.audience, Need::kOptional);
    map.Custom("service_account", Need::kOptional,
               [&](std::string_view text) { return TakeDnsName(text, &enroll.service_account); });
    map.Custom("namespace", Need::kOptional,
               [&](std::string_view text) { return TakeDnsName(text, &enroll.k8s_namespace); });
    map.Duration("certificate_life", &enroll.certificate_life, Need::kOptional,
                 {absl::Hours(1), absl::Hours(24 * 365)});
    ReadOperators(map, enroll.operators);
  }
}

// `enroll` and `store` must have been read.
void ReadSealKey(const ConfigMap& root, ServerConfig& out) {
  root.String("seal_key_file", &out.seal_key_file, Need::kOptional);
  if (out.enroll) out.enroll->stored = !out.seal_key_file.empty();
  if (out.enroll && out.etcd && out.seal_key_file.empty()) {
    root.Error("seal_key_file",
               "several servers have one authority, which lies in the store, sealed: name a file "
               "with 32 random bytes or more, the same on all of them");
  }
  config::ReadTlsOrEnrolled(root, out.enroll ? out.enroll->files() : rpc::TlsFiles(), &out.tls);
}

}  // namespace

std::string ServerConfig::witness_directory() const {
  return enroll ? enroll->directory : os::DirectoryOf(sqlite);
}

bool ServerConfig::may_make_seal_key() const {
  const std::string directory = os::DirectoryOf(seal_key_file);
  return !etcd && (directory == os::DirectoryOf(sqlite) || directory == witness_directory());
}

absl::StatusOr<ServerConfig> ParseServerConfig(std::string_view text, const std::string& file,
                                               const CheckDirectory& check_directory,
                                               const config::VariableLookup& variables) {
  ServerConfig out;
  config::ConfigText document = config::ConfigText::Parse(text, file, variables);
  const ConfigMap root = document.Root();
  ReadListen(root, check_directory, out);
  ReadEnroll(root, check_directory, out);
  ReadStore(root, check_directory, out);
  ReadSealKey(root, out);
  CheckOperators(root, out);
  if (root.present() && root.Has("kubernetes")) {
    out.kubernetes = ReadKubernetes(root.Map("kubernetes", Need::kRequired));
  }
  ReadReachability(root.Map("reachability", Need::kOptional), out.reachability);
  ReadCloud(root, check_directory, out);
  ReadPools(root, out);
  ReadTarget(root, out.policy.target);
  ReadRelease(root, out.policy);
  ReadPolicy(root, out);
  ReadHistory(root, out.history);
  root.Map("audit", Need::kOptional)
      .Duration("period", &out.audit_period, Need::kOptional, {absl::ZeroDuration()});
  root.Duration("cooldown", &out.policy.cooldown, Need::kOptional,
                {absl::ZeroDuration(), absl::Hours(1)});
  config::ReadHealth(root, check_directory, &out.health);
  config::ReadHealthHttp(root, &out.health_http);
  root.Bool("debug", &out.debug, Need::kOptional);
  RETURN_IF_ERROR(document.Finish());
  return out;
}

}  // namespace spoke::ipam
