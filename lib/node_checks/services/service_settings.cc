#include "lib/node_checks/services/service_settings.h"

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/node_checks/services/dns_query.h"

namespace spoke::node_checks {
namespace {

using config::ConfigMap;
using config::Need;

bool HasNoVariable(std::string_view text) { return text.find("${") == std::string_view::npos; }

void ReadName(const ConfigMap& map, std::string* out) {
  map.Custom("name", Need::kOptional, [out](std::string_view text) -> absl::Status {
    if (!HasNoVariable(text)) return absl::OkStatus();
    RETURN_IF_ERROR(DnsQuery(0, text).status());
    *out = std::string(text);
    return absl::OkStatus();
  });
}

}  // namespace

void ReadServiceSettings(const ConfigMap& root, ServiceSettings* settings) {
  if (!root.Has("node_checks")) return;
  const ConfigMap map = root.Map("node_checks", Need::kOptional);
  if (map.Has("cluster_dns")) {
    const ConfigMap cluster = map.Map("cluster_dns", Need::kOptional);
    cluster.CustomList("servers", Need::kOptional, [&](std::string_view text) -> absl::Status {
      if (!HasNoVariable(text)) return absl::OkStatus();
      ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text));
      settings->cluster_resolvers.push_back(address);
      return absl::OkStatus();
    });
    if (settings->cluster_resolvers.size() > kMaxAskedResolvers) {
      cluster.Error("servers", fmt::format("{} resolvers; at most {} are asked",
                                           settings->cluster_resolvers.size(), kMaxAskedResolvers));
    }
    ReadName(cluster, &settings->cluster_name);
  }
  if (map.Has("node_dns")) ReadName(map.Map("node_dns", Need::kOptional), &settings->node_name);
}

}  // namespace spoke::node_checks
