#include "netagent/node/all_claims.h"

#include "fmt/core.h"
#include "netagent/claims.h"
#include "netagent/links/link_plan.h"

namespace spoke::netagent {

// The function is long because it is a table.
// NOLINTNEXTLINE(readability-function-size)
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
      {"kFirstDeletionGroup", "link groups", fmt::format("from {}", claims::kFirstDeletionGroup),
       "of links that are detached and wait to be unregistered"},
      {"kDeletionGroups", "link groups", fmt::format("{} of them", claims::kDeletionGroups),
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
      {"kTranslatedMark", "packet mark", fmt::format("bit {:#x}", claims::kTranslatedMark),
       "of packets whose destination somebody has translated"},
      {"kReachProbeMark", "packet mark", fmt::format("{:#x}", claims::kReachProbeMark),
       "of what the agent sends to find out whether a peer spoke is reached"},
      {"kFastPathPriority", "filter priority", fmt::format("{}", claims::kFastPathPriority),
       "of the fast path's programs, on pods' links and on the uplink; their names begin with "
       "spoke_"},
      {"kFlowMarkMask", "mark bits", fmt::format("{:#x}", claims::kFlowMarkMask),
       "of connections: what egress decided about the flow at its first packet"},
      {"kFlowAsItIs", "mark", fmt::format("{}", claims::kFlowAsItIs), "not translated"},
      {"kFlowMasqueraded", "mark", fmt::format("{}", claims::kFlowMasqueraded),
       "leaves from the node's own address"},
      {"kFlowOfNatHost", "mark", fmt::format("{}", claims::kFlowOfNatHost),
       "comes from the hub for a service, and is translated both ways"},
      {"kFlowOfProbe", "mark", fmt::format("{}", claims::kFlowOfProbe),
       "of a gateway: another node asks by way of the tunnel whether it works"},
      {"kTunnelLink", "link name", std::string(claims::kTunnelLink),
       "the vxlan device by which packets go to egress gateways, and come to them"},
      {"kTunnelId", "VXLAN network identifier", fmt::format("{}", claims::kTunnelId),
       "of all that goes by it"},
      {"kTunnelAddress", "address", claims::kTunnelAddress.ToString(),
       "of that device, so that the check of sources lets packets in by it; nothing is sent from "
       "it"},
      {"kProbeV4", "address", claims::kProbeV4.ToString(),
       "where nodes ask a gateway, through the tunnel, whether it works; no device has it"},
      {"kProbeV6", "address", claims::kProbeV6.ToString(), "the same for IPv6"},
      {"kFlowCut", "mark", fmt::format("{}", claims::kFlowCut),
       "a policy has ended it while it lasted: dropped in both directions"},
      {"kFirstGatewayMark", "marks", fmt::format("from {}", claims::kFirstGatewayMark),
       "leaves by a gateway; of the flow's packets as well"},
      {"kGatewayMarks", "marks", fmt::format("{} of them", claims::kGatewayMarks),
       "one for each gateway"},
      {"kFirstGatewayTable", "route table", fmt::format("{} + mark", claims::kFirstGatewayTable),
       "the default route by way of a gateway"},
      {"kGatewayPriority", "rule priority", fmt::format("{}", claims::kGatewayPriority),
       "of the rules that lead packets with a gateway's mark into its table"},
      {"", "tables", "inet and netdev spoke and spoke-names", "of nf_tables: all in them is ours"},
      {"", "tracked connections", "with an address of this node's pods at an end, in any zone",
       "deleted when the pod has ended, before the next one gets the address"},
      {"kShaperHandle", "qdisc handle", fmt::format("{:x}:", claims::kShaperHandle >> 16U),
       "of the token bucket at the root of the node's end of a pod's link"},
      {"kIngressQueues", "link name", std::string(claims::kIngressQueues),
       "an ifb device, whose queues shape what goes to pods"},
      {"kEgressQueues", "link name", std::string(claims::kEgressQueues),
       "the same for what comes from pods"},
      {"kTreeHandle", "qdisc handle", fmt::format("{:x}:", claims::kTreeHandle >> 16U),
       "of the tree of classes at the root of either"},
      {"kShapePriority", "filter priority", fmt::format("{}", claims::kShapePriority),
       "of the programs spoke_shape_in and spoke_shape_out on links of shaped pods, of "
       "spoke_enters_node and spoke_leaves_node on the links of default routes, and of "
       "spoke_classify at either tree"},
      {"kDivertPriority", "filter priority", fmt::format("{}", claims::kDivertPriority),
       "of the program spoke_divert on the same links, which leads shaped pods' packets to the "
       "queues"},
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
  all.push_back(
      {"", "iptables rules",
       "4 in mangle with the comment \"iptables-exporter openai traffic=internet-in\" or "
       "\"-out\"",
       "that count what comes from and goes to the Internet; they are removed by --cleanup alone"});
  all.push_back({"", "setting", "net.ipv6.conf.DEVICE.accept_ra = 2",
                 "of devices that had 1: they listen to router advertisements though the node "
                 "forwards"});
  return all;
}

}  // namespace spoke::netagent
