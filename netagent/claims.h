// Every name, number and address in the kernel that is ours, with why. Nothing else is ever changed
// or removed. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/ip/address.h"

namespace spoke::netagent::claims {

// Host ends of pod links are "spk" and twelve hex digits: 15 bytes, the kernel's limit (IFNAMSIZ).
inline constexpr std::string_view kLinkPrefix = "spk";

// Link groups of host links that are detached but not unregistered yet, used in turn ("spk" and a
// number). Only the agent puts a link there: everything in such a group that has our name is gone
// for good, and is unregistered whenever an agent finds it.
inline constexpr uint32_t kFirstDeletionGroup = 0x73'70'6B'00;
inline constexpr uint32_t kDeletionGroups = 32;
inline constexpr bool IsDeletionGroup(uint32_t group) {
  return group - kFirstDeletionGroup < kDeletionGroups;
}

// rtm_protocol of every route we add ("S"). The kernel leaves 5..254 to whoever wants one
// (linux/rtnetlink.h); iproute2's rt_protos lists no use of 83.
inline constexpr uint8_t kRouteProtocol = 83;

// Metric of the unreachable route that every attached address has. Any pod route (metric 0) wins;
// when the pod has gone, a packet for it ends here and does not loop between node and fabric.
inline constexpr uint32_t kUnreachableMetric = 8'388'608;

// Next hop of every pod's default route: link-local, the same in each pod, held by no device. A
// permanent neighbour entry answers for it, so there is no ARP, no proxy and no DAD wait.
inline constexpr ip::Address kGatewayV4 = ip::Address::V4(0xA9FE0101);                // 169.254.1.1
inline constexpr ip::Address kGatewayV6 = ip::Address::V6(0xFE80'0000'0000'0000, 1);  // fe80::1

// The first table in a pod for each interface after its container's first: the table is this number
// and the interface's ordinal. A rule leads what comes from the interface's addresses into it.
inline constexpr uint32_t kFirstPodTable = 83'000;
inline constexpr uint32_t kPodRulePriority = 8'300;
// The metric of such an interface's default route in the main table, less the ordinal: the first
// interface's wins as long as it is there. IPv6 counts from 1024, its default.
inline constexpr uint32_t kLaterMetricV4 = 100;
inline constexpr uint32_t kLaterMetricV6 = 1124;

// The first table of the NICs beside the node's first, by the device's index, and the rules that
// lead what comes from a pod's address on such a NIC into its table. A rule above them lets
// whatever the main table has except its default routes go first: pods, and what is on a link.
inline constexpr uint32_t kFirstNicTable = 84'000'000;
inline constexpr uint32_t kNicTables = 1'000'000;
inline constexpr uint32_t kMainFirstPriority = 8'300;
inline constexpr uint32_t kSourcePriority = 8'310;

// A bit of a packet's mark: somebody has translated its destination. It is set where nf_tables sees
// the packet, and read by the fast path's programs when it leaves (fastpath/fast_path.h).
inline constexpr uint32_t kTranslatedMark = 0x1000'0000;

// The mark of what the agent itself sends to find out whether a peer spoke is reached: the rules
// that hold it back do not count it as a leak. Pods' packets cannot bear it.
inline constexpr uint32_t kReachProbeMark = 0x40;

// Priority of the filters, at ingress and egress, that run the programs of the fast path: on links
// of pods and on the uplink. Their names begin with "spoke_".
inline constexpr uint16_t kFastPathPriority = 8'320;

// Bits of a connection's mark, and of its packets' marks on the way to a gateway, that say what was
// decided about the flow when it began. They are the low six, since kube-proxy has 0x4000 and
// 0x8000, Cilium 0x0F00, Calico 0xFFFF0000, AWS's CNI 0x80, CNI's portmap 0x2000, Azure's network
// policies 0x1000 and up.
inline constexpr uint32_t kFlowMarkMask = 0x3F;
inline constexpr uint32_t kFlowAsItIs = 1;
inline constexpr uint32_t kFlowMasqueraded = 2;
inline constexpr uint32_t kFlowOfNatHost = 3;
inline constexpr uint32_t kFlowOfProbe = 4;  // A probe of a gateway: asks whether it works.
// A policy has ended it while it lasted: its packets are dropped in both directions.
inline constexpr uint32_t kFlowCut = 5;
// The marks from this one on are gateways', one each.
inline constexpr uint32_t kFirstGatewayMark = 8;
inline constexpr uint32_t kGatewayMarks = 56;

// A gateway's table is this and its mark; the rule that leads into it comes before all others of
// ours, since a flow that is to take a gateway shall not find a shorter way.
inline constexpr uint32_t kFirstGatewayTable = 83'100;
inline constexpr uint32_t kGatewayPriority = 8'290;

// The device of kind vxlan by which packets go to gateways and come from other nodes, its network
// identifier, and its address: the kernel's loose check of sources (rp_filter) lets nothing in by a
// device that has none. The address is of the host's scope, so nothing is ever sent from it.
inline constexpr std::string_view kTunnelLink = "spoke-tunnel";
inline constexpr uint32_t kTunnelId = 83;
inline constexpr ip::Address kTunnelAddress = ip::Address::V4(0xA9FE0102);  // 169.254.1.2

// The addresses at which nodes ask a gateway behind its tunnel and its translation. They are of the
// blocks for documentation (RFC 5737, RFC 3849), which nobody else has: to the network in between
// the answers come from outside, as those of the Internet do.
inline constexpr ip::Address kProbeV4 = ip::Address::V4(0xC6336453);  // 198.51.100.83
inline constexpr ip::Address kProbeV6 = ip::Address::V6(0x2001'0DB8'0000'0000, 0x83);

// Handle of the token bucket at the root of the node's end of a pod link ("SP"). Earlier
// versions put one at a pod's own end as well, which stays until the pod ends.
inline constexpr uint32_t kShaperHandle = 0x5350'0000;

// Devices of kind ifb by way of which packets of shaped pods go: towards pods, and from them.
inline constexpr std::string_view kIngressQueues = "spoke-in";
inline constexpr std::string_view kEgressQueues = "spoke-out";

// Handle of the tree of classes at the root of each of the two devices.
inline constexpr uint32_t kTreeHandle = 0x05B0'0000;

// Priorities of the filters of shaped pods' links and of the links of default routes, at ingress
// and egress, behind the fast path's: the first says which class a packet is of, the second leads
// it to the queues. The first is also that of the filter at the root of either tree. Their names
// begin with "spoke_".
inline constexpr uint16_t kShapePriority = 8'330;
inline constexpr uint16_t kDivertPriority = 8'331;

}  // namespace spoke::netagent::claims
