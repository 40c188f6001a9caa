#include "tests/bench/cni/networks.h"

#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::cni_bench {
namespace {

std::string Ptp(const Places& places, std::string_view subnet, std::string_view directory) {
  return fmt::format(R"({{"type":"ptp","mtu":1500,"ipam":{{"type":"host-local","dataDir":"{}/{}",)"
                     R"("ranges":[[{{"subnet":"{}"}}]],"routes":[{{"dst":"0.0.0.0/0"}}]}}}})",
                     places.leases_dir, directory, subnet);
}

Chain::Settings Spoke(const Places& places, std::string_view pod_namespace) {
  return {.network = "spoke",
          .args = fmt::format("IgnoreUnknown=1;K8S_POD_NAMESPACE={};K8S_POD_NAME=bench;"
                              "K8S_POD_UID=6d3c3d0e-8f57-4a5e-9d5a-5a3c1f0f7b11",
                              pod_namespace),
          .plugin_dirs = places.plugin_dir,
          .plugins = {fmt::format(R"({{"type":"spoke","socket":"{}"}})", places.socket)}};
}

}  // namespace

absl::StatusOr<std::map<std::string, Chain>> MakeNetworks(const Places& places) {
  std::map<std::string, Chain::Settings> settings;
  settings[kSpoke] = Spoke(places, kSingleNamespace);
  settings[kSpokeDual] = Spoke(places, kDualNamespace);
  settings[kPtp] = {.network = "ptp",
                    .plugin_dirs = places.peers_dir,
                    .plugins = {Ptp(places, "10.200.0.0/16", "ptp")}};
  settings[kPtpChain] = {.network = "chain",
                         .plugin_dirs = places.peers_dir,
                         .plugins = {Ptp(places, "10.201.0.0/16", "chain"),
                                     R"({"type":"portmap","capabilities":{"portMappings":true}})",
                                     R"({"type":"bandwidth","capabilities":{"bandwidth":true}})",
                                     R"({"type":"firewall","backend":"iptables"})"}};
  std::map<std::string, Chain> networks;
  for (auto& [name, setting] : settings) {
    ASSIGN_OR_RETURN(Chain chain, Chain::Parse(std::move(setting)));
    networks.emplace(name, std::move(chain));
  }
  return networks;
}

}  // namespace spoke::cni_bench
