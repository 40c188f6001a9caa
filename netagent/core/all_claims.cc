#include "netagent/core/all_claims.h"

#include "fmt/core.h"
#include "netagent/core/claims.h"
#include "netagent/core/host_link_settings.h"

namespace spoke::netagent {

std::vector<Claim> AllClaims() {
  std::vector<Claim> all = {
      {"kLinkPrefix", "link name", fmt::format("{} and 12 hex digits", claims::kLinkPrefix),
       "the node's end of a pod's link; the digits are a hash of container and interface"},
      {"kRouteProtocol", "route protocol", fmt::format("{}", claims::kRouteProtocol),
       "of every route of ours, on the node and in pods"},
      {"kUnreachableMetric", "route metric", fmt::format("{}", claims::kUnreachableMetric),
       "of the unreachable route that each attached address has, so that a packet for one that no "
       "pod has ends here"},
      {"kGatewayV4", "address", claims::kGatewayV4.ToString(),
       "next hop of each pod's IPv4 default route; no device has it, a permanent neighbour entry "
       "answers for it"},
      {"kGatewayV6", "address", claims::kGatewayV6.ToString(), "the same for IPv6"},
      {"kFirstBurialGroup", "link groups", fmt::format("from {}", claims::kFirstBurialGroup),
       "of links that are detached and wait to be unregistered"},
      {"kBurialGroups", "link groups", fmt::format("{} of them", claims::kBurialGroups),
       "used in turn"},
      {"kFirstPodTable", "route table", fmt::format("{} + n, in a pod", claims::kFirstPodTable),
       "of the pod's nth interface after its first"},
      {"kPodRulePriority", "rule priority", fmt::format("{}, in a pod", claims::kPodRulePriority),
       "of the rules that lead what comes from a later interface's address into its table"},
      {"kLaterMetricV4", "route metric", fmt::format("{} + n, in a pod", claims::kLaterMetricV4),
       "of the IPv4 default route by the pod's nth interface after its first"},
      {"kLaterMetricV6", "route metric", fmt::format("{} + n, in a pod", claims::kLaterMetricV6),
       "the same for IPv6"},
      {"kFirstNicTable", "route tables", fmt::format("from {}", claims::kFirstNicTable),
       "of the node's NICs beside the first, by the device's index"},
      {"kNicTables", "route tables", fmt::format("{} at most", claims::kNicTables),
       "as many as device indexes are told apart"},
      {"kMainFirstPriority", "rule priority", fmt::format("{}", claims::kMainFirstPriority),
       "of the rule that lets what the main table has, but for its default routes, go first"},
      {"kSourcePriority", "rule priority", fmt::format("{}", claims::kSourcePriority),
       "of the rules that lead what comes from a pod's address into its NIC's table"},
      {"kShaperHandle", "qdisc handle", fmt::format("{:x}:", claims::kShaperHandle >> 16U),
       "of the token bucket at the root of either end of a pod's link"},
  };
  for (const HostLinkSetting& setting : kHostLinkSettings) {
    all.push_back(
        {"", "setting",
         fmt::format("net.ipv4.conf.{}*.{} = {}", claims::kLinkPrefix, setting.name, setting.value),
         "of each link of ours on the node"});
  }
  for (const char* name : {"net.ipv4.ip_forward = 1", "net.ipv6.conf.all.forwarding = 1"}) {
    all.push_back({"", "setting", name, "of the node: it forwards its pods' packets"});
  }
  all.push_back({"", "setting", "net.ipv6.conf.DEVICE.accept_ra = 2",
                 "of devices that had 1: they listen to router advertisements though the node "
                 "forwards"});
  return all;
}

}  // namespace spoke::netagent
