#include "ipam-server/config.h"

#include <utility>

#include "fmt/core.h"
#include "ipam-server/config_azure.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"
#include "lib/config/health_field.h"
#include "lib/config/tls_fields.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;

constexpr uint32_t kMaxAddressesPerNode = 4096;

void RequireDirectoryOf(const ConfigMap& map, std::string_view key, const std::string& path,
                        const CheckDirectory& check) {
  if (path.empty()) return;
  const std::string directory = os::DirectoryOf(path);
  if (const absl::Status status = check(directory); !status.ok()) {
    map.Error(key, fmt::format("{}; create it first", base::MessageOf(status)));
  }
}

void ReadListen(const ConfigMap& root, const CheckDirectory& check, ServerConfig& out) {
  const ConfigMap map = root.Map("listen", Need::kOptional);
  map.String("agents", &out.listen_agents, Need::kOptional);
  map.String("metrics", &out.listen_metrics, Need::kOptional);
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
    // Without a block it would overlap everything; the mistake is on record, so it is left out.
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

}  // namespace

absl::StatusOr<ServerConfig> ParseServerConfig(std::string_view text, const std::string& file,
                                               const CheckDirectory& check_directory,
                                               const config::VariableLookup& variables) {
  ServerConfig out;
  config::ConfigText document = config::ConfigText::Parse(text, file, variables);
  const ConfigMap root = document.Root();
  ReadListen(root, check_directory, out);
  config::ReadTls(root, &out.tls);

  const ConfigMap store = root.Map("store", Need::kOptional);
  store.String("sqlite", &out.sqlite, Need::kOptional);
  RequireDirectoryOf(store.present() ? store : root, "sqlite", out.sqlite, check_directory);

  ReadCloud(root, check_directory, out);
  ReadPools(root, out);
  ReadTarget(root, out.policy.target);
  ReadRelease(root, out.policy);
  ReadHistory(root, out.history);
  root.Map("audit", Need::kOptional)
      .Duration("period", &out.audit_period, Need::kOptional, {absl::ZeroDuration()});
  root.Duration("cooldown", &out.policy.cooldown, Need::kOptional,
                {absl::ZeroDuration(), absl::Hours(1)});
  config::ReadHealth(root, check_directory, &out.health);
  root.Bool("debug", &out.debug, Need::kOptional);
  RETURN_IF_ERROR(document.Finish());
  return out;
}

}  // namespace spoke::ipam
