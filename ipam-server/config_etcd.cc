#include "ipam-server/config_etcd.h"

#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;

// etcd makes a shorter lease longer; with a longer one, a server that has died is missed for long.
constexpr absl::Duration kShortestLease = absl::Seconds(2);
constexpr absl::Duration kLongestLease = absl::Seconds(60);

// Two keys that mean nothing without each other.
void CheckPair(const ConfigMap& map, const char* first, const std::string& a, const char* second,
               const std::string& b) {
  if (a.empty() == b.empty()) return;
  map.Error(a.empty() ? second : first,
            std::string(first) + " and " + second + " go together: give both or none");
}

void CheckFiles(const ConfigMap& map, const EtcdConfig& etcd) {
  CheckPair(map, "user", etcd.user, "password_file", etcd.password_file);
  CheckPair(map, "certificate", etcd.certificate, "key", etcd.key);
  if (etcd.endpoints.empty()) return;
  const bool secure = etcd.endpoints.front().secure;
  if (secure && etcd.ca.empty()) {
    map.Error("endpoints", "https needs ca, the file of the authority that signed the members");
  }
  if (!secure && !(etcd.ca + etcd.certificate + etcd.key).empty()) {
    map.Error("endpoints", "ca, certificate and key are for https, and these are http");
  }
}

}  // namespace

EtcdConfig ReadEtcd(const ConfigMap& map) {
  EtcdConfig out;
  std::vector<std::string> endpoints;
  map.StringList("endpoints", &endpoints, Need::kRequired);
  if (!endpoints.empty() || map.IsEmptyList("endpoints")) {
    auto parsed = etcd::ParseEndpoints(endpoints);
    if (parsed.ok()) {
      out.endpoints = *std::move(parsed);
    } else {
      map.Error("endpoints", std::string(base::MessageOf(parsed.status())));
    }
  }
  map.Custom("prefix", Need::kOptional, [&](std::string_view text) {
    if (!text.starts_with('/') || !text.ends_with('/')) {
      return absl::InvalidArgumentError("must begin and end with a slash, as /spoke/ does");
    }
    out.prefix = text;
    return absl::OkStatus();
  });
  map.String("name", &out.name, Need::kOptional);
  map.String("user", &out.user, Need::kOptional);
  map.String("password_file", &out.password_file, Need::kOptional);
  map.String("ca", &out.ca, Need::kOptional);
  map.String("certificate", &out.certificate, Need::kOptional);
  map.String("key", &out.key, Need::kOptional);
  map.Duration("lease", &out.lease, Need::kOptional, {kShortestLease, kLongestLease});
  map.Custom("listen_standbys", Need::kOptional, [&](std::string_view text) -> absl::Status {
    out.listen_standbys = text;
    if (text == "off") return absl::OkStatus();
    const auto parsed = etcd::ParseEndpoint("http://" + out.listen_standbys);
    if (parsed.ok() && parsed->HostAndPort() == text) return absl::OkStatus();
    return absl::InvalidArgumentError("must be host:port, as 0.0.0.0:7446 is, or off");
  });
  if (out.lease != absl::Trunc(out.lease, absl::Seconds(1))) {
    map.Error("lease", "must be whole seconds, as etcd counts them");
  }
  CheckFiles(map, out);
  return out;
}

}  // namespace spoke::ipam
