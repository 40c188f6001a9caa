#include "netagent/links/netlink_inspector.h"

#include <fcntl.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <span>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/address.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/link.h"
#include "lib/netlink/neighbour.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/rule.h"
#include "netagent/claims.h"
#include "netagent/links/attach_batches.h"
#include "netagent/links/host_link_name.h"
#include "netagent/links/link_shaping.h"

namespace spoke::netagent {
namespace {

// The kernel's refusal in the words of inspector.h.
absl::Status Narrow(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return status;
    default:
      return absl::InternalError(status.message());
  }
}

// A refusal that says that something of the attachment is not there says nothing about the host
// link, which is what kNotFound means here.
absl::Status NarrowChange(const absl::Status& status) {
  if (absl::IsAlreadyExists(status) || absl::IsUnavailable(status) || status.ok()) return status;
  return absl::InternalError(status.message());
}

absl::Status Send(netlink::Socket& socket, const netlink::Request& request) {
  return NarrowChange(netlink::SendBatch(socket, std::span(&request, 1)).status);
}

bool IsOurs(const netlink::LinkState& state) {
  return state.link.kind == "veth" && state.group == 0 && IsHostLinkName(state.link.name);
}

HostSide SideOf(const netlink::LinkState& state) {
  return {.exists = true,
          .index = state.link.index,
          .up = state.link.up,
          .mac = state.link.mac,
          .mtu = state.link.mtu,
          .settings = state.ipv4,
          .address_generation = state.address_generation};
}

bool IsHostRoute(const netlink::Route& route) {
  return route.type == RTN_UNICAST && route.destination.length() == route.destination.base().bits();
}

std::optional<PermanentNeighbour> AsPermanent(const netlink::Neighbour& entry) {
  if ((entry.state & NUD_PERMANENT) == 0 || !entry.mac) return std::nullopt;
  return PermanentNeighbour{entry.address, *entry.mac};
}

ip::Address GatewayFor(const ip::Address& address) {
  return address.is_v4() ? claims::kGatewayV4 : claims::kGatewayV6;
}

netlink::Route LinkRoute(const ip::Address& destination, int32_t link) {
  return {.destination = ip::Prefix::Host(destination),
          .protocol = claims::kRouteProtocol,
          .scope = RT_SCOPE_LINK,
          .link = link};
}

// Adds `route` unless one to there by the same way is there already.
absl::Status EnsureRoute(netlink::Socket& socket, const netlink::Route& route) {
  const absl::Status added = Send(socket, netlink::AddRoute(route));
  if (!absl::IsAlreadyExists(added)) return added;
  const auto routes = netlink::DumpAllRoutes(socket, route.destination.family());
  if (!routes.ok()) return Narrow(routes.status());
  const bool there = std::any_of(routes->begin(), routes->end(), [&](const netlink::Route& found) {
    return found.table == route.table && found.destination == route.destination &&
           found.type == RTN_UNICAST && found.link == route.link && found.gateway == route.gateway;
  });
  if (there) return absl::OkStatus();
  return absl::AlreadyExistsError(
      fmt::format("a route to {} that is not ours is in the way", route.destination.ToString()));
}

absl::Status CheckMendable(const AttachSpec& spec, const Difference& difference, bool has_pod) {
  const Part part = difference.part;
  const bool needs_address = part == Part::kHostNeighbour || part == Part::kHostRoute ||
                             part == Part::kHostRule || part == Part::kPodAddress ||
                             part == Part::kPodNeighbour || part == Part::kPodRoute ||
                             part == Part::kPodRule;
  const bool has_address =
      difference.address && std::find(spec.addresses.begin(), spec.addresses.end(),
                                      *difference.address) != spec.addresses.end();
  if (!IsMendable(part) || (needs_address && !has_address) || (IsInPod(part) && !has_pod)) {
    return absl::InvalidArgumentError(fmt::format("{} cannot be mended here", NameOf(part)));
  }
  return absl::OkStatus();
}

absl::StatusOr<netlink::Socket> OpenSocketIn(const netns::Netns& netns) {
  std::optional<netlink::Socket> socket;
  RETURN_IF_ERROR(netns.Run([&socket]() -> absl::Status {
    auto opened = netlink::Socket::Open();
    if (!opened.ok()) return opened.status();
    socket.emplace(*std::move(opened));
    return absl::OkStatus();
  }));
  return *std::move(socket);
}

bool IsLimited(const netlink::LinkState& state) { return state.qdisc == "tbf"; }

std::optional<uint64_t> LimitOf(const netlink::Qdisc& qdisc) {
  if (qdisc.parent != TC_H_ROOT || !qdisc.token_bucket) return std::nullopt;
  constexpr uint64_t kBitsPerByte = 8;
  return qdisc.token_bucket->rate * kBitsPerByte;
}

netlink::Request DeleteShaper(int32_t link) {
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = link;
  fixed.tcm_parent = TC_H_ROOT;
  fixed.tcm_handle = claims::kShaperHandle;
  return {fmt::format("delete the token bucket of link {}", link), RTM_DELQDISC, 0, fixed};
}

// One of ours with other values is replaced; another's stays.
absl::Status MendLimit(netlink::Socket& socket, int32_t link, const LinkShaping& shaping) {
  const netlink::Request add =
      netlink::AddTokenBucket(link, claims::kShaperHandle, Bucket(shaping));
  const absl::Status added = Send(socket, add);
  if (!absl::IsAlreadyExists(added)) return added;
  const auto qdiscs = netlink::DumpQdiscs(socket, link);
  if (!qdiscs.ok()) return Narrow(qdiscs.status());
  for (const netlink::Qdisc& found : *qdiscs) {
    if (found.parent != TC_H_ROOT || found.handle != claims::kShaperHandle) continue;
    if (found.token_bucket && found.token_bucket->rate == shaping.bytes_per_second) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Send(socket, DeleteShaper(link)));
    return Send(socket, add);
  }
  return absl::AlreadyExistsError(
      fmt::format("a queue that is not ours is in the way on link {}", link));
}

absl::Status MendPodRoutes(const AttachSpec& spec, const ip::Address& address,
                           netlink::Socket& socket, int32_t link) {
  absl::Status first_error;
  for (const netlink::Route& route : PodRoutes(spec, link, address)) {
    first_error.Update(EnsureRoute(socket, route));
  }
  return first_error;
}

absl::Status MendInPod(const AttachSpec& spec, const Difference& difference,
                       netlink::Socket& socket, int32_t link) {
  switch (difference.part) {
    case Part::kPodUp:
      return Send(socket, netlink::SetLinkUp(link, true));
    case Part::kPodAddress:
      return Send(socket, netlink::AddAddress(link, *difference.address).Tolerate(EEXIST));
    case Part::kPodNeighbour:
      return Send(socket, netlink::SetPermanentNeighbour(link, GatewayFor(*difference.address),
                                                         spec.host_mac));
    case Part::kPodRoute:
      return MendPodRoutes(spec, *difference.address, socket, link);
    case Part::kPodRule:
      return Send(socket, netlink::AddRule(*PodRule(spec, *difference.address)));
    default:
      return absl::InvalidArgumentError(
          fmt::format("{} cannot be mended here", NameOf(difference.part)));
  }
}

}  // namespace

NetlinkInspector::NetlinkInspector(netns::Netns node, netlink::Socket socket, bool has_ipv6)
    : node_(std::move(node)), socket_(std::move(socket)), has_ipv6_(has_ipv6) {}

absl::StatusOr<std::unique_ptr<NetlinkInspector>> NetlinkInspector::Create() {
  auto node = netns::Netns::Current();
  if (!node.ok()) return node.status();
  auto socket = netlink::Socket::Open();
  if (!socket.ok()) return socket.status();
  // An address family that was switched off at boot has no sockets.
  const bool has_ipv6 = os::UniqueFd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)).valid();
  return std::unique_ptr<NetlinkInspector>(
      new NetlinkInspector(*std::move(node), *std::move(socket), has_ipv6));
}

std::vector<ip::Family> NetlinkInspector::Families() const {
  if (has_ipv6_) return {ip::Family::kV4, ip::Family::kV6};
  return {ip::Family::kV4};
}

absl::StatusOr<std::map<std::string, HostSide>> NetlinkInspector::ReadHostSides() {
  const auto links = netlink::DumpLinkStates(socket_, claims::kLinkPrefix);
  if (!links.ok()) return Narrow(links.status());
  std::map<std::string, HostSide> sides;
  std::map<int32_t, HostSide*> by_index;
  for (const netlink::LinkState& state : *links) {
    if (!IsOurs(state)) continue;
    by_index[state.link.index] = &(sides[state.link.name] = SideOf(state));
  }
  for (const ip::Family family : Families()) {
    const auto routes = netlink::DumpRoutes(socket_, family, RT_TABLE_MAIN, claims::kRouteProtocol);
    if (!routes.ok()) return Narrow(routes.status());
    for (const netlink::Route& route : *routes) {
      const auto side = by_index.find(route.link);
      if (side == by_index.end() || !IsHostRoute(route)) continue;
      side->second->routes.push_back(route.destination.base());
    }
    const auto neighbours = netlink::DumpNeighbours(socket_, family, 0);
    if (!neighbours.ok()) return Narrow(neighbours.status());
    for (const netlink::Neighbour& entry : *neighbours) {
      const auto side = by_index.find(entry.link);
      const auto permanent = AsPermanent(entry);
      if (side != by_index.end() && permanent) side->second->neighbours.push_back(*permanent);
    }
    RETURN_IF_ERROR(ReadRules(family, sides));
  }
  if (std::any_of(links->begin(), links->end(), &IsLimited)) {
    const auto qdiscs = netlink::DumpQdiscs(socket_, 0);
    if (!qdiscs.ok()) return Narrow(qdiscs.status());
    for (const netlink::Qdisc& qdisc : *qdiscs) {
      const auto side = by_index.find(qdisc.link);
      if (side == by_index.end()) continue;
      if (const auto limit = LimitOf(qdisc)) side->second->limit_bps = limit;
    }
  }
  return sides;
}

absl::StatusOr<netlink::LinkState> NetlinkInspector::FindHostLink(const std::string& name) {
  auto state = netlink::GetLinkState(socket_, name);
  if (!state.ok()) return Narrow(state.status());
  if (!IsOurs(*state)) {
    return absl::NotFoundError(fmt::format("link {} is not one of ours, or detached", name));
  }
  return state;
}

absl::StatusOr<NetlinkInspector::Pod> NetlinkInspector::EnterPod(const AttachSpec& spec,
                                                                 const netlink::LinkState& host,
                                                                 int pod_netns) {
  const auto netns = netns::Netns::FromDescriptor(pod_netns);
  if (!netns.ok()) {
    return Narrow(base::Annotate(netns.status(), "the pod's network namespace"));
  }
  const auto number = netlink::NetnsNumber(socket_, pod_netns);
  if (!number.ok()) return Narrow(number.status());
  if (!*number || host.peer_netns != *number) {
    return absl::FailedPreconditionError(
        fmt::format("the other end of {} is not in this network namespace", spec.host_link));
  }
  auto socket = OpenSocketIn(*netns);
  if (!socket.ok()) return Narrow(socket.status());
  auto link = netlink::GetLinkState(*socket, host.link.peer_index);
  if (absl::IsNotFound(link.status())) {
    return absl::FailedPreconditionError(
        fmt::format("the other end of {} has left this network namespace", spec.host_link));
  }
  if (!link.ok()) return Narrow(link.status());
  return Pod{*std::move(socket), *std::move(link)};
}

absl::StatusOr<PodSide> NetlinkInspector::ReadPodSide(const AttachSpec& spec, int pod_netns) {
  ASSIGN_OR_RETURN(const netlink::LinkState host, FindHostLink(spec.host_link));
  ASSIGN_OR_RETURN(Pod pod, EnterPod(spec, host, pod_netns));
  const netlink::Link& link = pod.link.link;
  PodSide side{.name = link.name, .up = link.up, .mac = link.mac, .mtu = link.mtu};
  if (link.name != spec.pod_link) {
    const auto other = netlink::GetLink(pod.socket, spec.pod_link);
    if (other.ok()) side.impostor = other->kind.empty() ? "device" : other->kind;
  }
  for (const ip::Family family : Families()) {
    const auto addresses = netlink::DumpAddresses(pod.socket, family, link.index);
    if (!addresses.ok()) return Narrow(addresses.status());
    for (const netlink::LinkAddress& address : *addresses) {
      side.addresses.push_back(address.address);
    }
    const auto neighbours = netlink::DumpNeighbours(pod.socket, family, link.index);
    if (!neighbours.ok()) return Narrow(neighbours.status());
    for (const netlink::Neighbour& entry : *neighbours) {
      if (const auto permanent = AsPermanent(entry)) side.neighbours.push_back(*permanent);
    }
    const auto routes = netlink::DumpAllRoutes(pod.socket, family);
    if (!routes.ok()) return Narrow(routes.status());
    for (const netlink::Route& route : *routes) {
      if (route.type != RTN_UNICAST || route.link != link.index) continue;
      side.routes.push_back({route.destination, route.gateway, route.table});
    }
    if (spec.ordinal == 0) continue;
    const auto rules = netlink::DumpRules(pod.socket, family, claims::kRouteProtocol);
    if (!rules.ok()) return Narrow(rules.status());
    for (const netlink::Rule& rule : *rules) {
      if (rule.from) side.rules.push_back({*rule.from, rule.table});
    }
  }
  return side;
}

absl::StatusOr<NetlinkInspector::Sides> NetlinkInspector::Enter(const AttachSpec& spec,
                                                                std::optional<int> pod_netns) {
  ASSIGN_OR_RETURN(netlink::LinkState host, FindHostLink(spec.host_link));
  Sides sides{std::move(host), std::nullopt};
  if (pod_netns) {
    ASSIGN_OR_RETURN(Pod pod, EnterPod(spec, sides.host, *pod_netns));
    sides.pod.emplace(std::move(pod));
  }
  return sides;
}

absl::Status NetlinkInspector::Mend(const AttachSpec& spec,
                                    const std::vector<Difference>& differences,
                                    std::optional<int> pod_netns) {
  for (const Difference& difference : differences) {
    RETURN_IF_ERROR(CheckMendable(spec, difference, pod_netns.has_value()));
  }
  ASSIGN_OR_RETURN(Sides sides, Enter(spec, pod_netns));
  absl::Status first_error;
  for (const Difference& difference : differences) {
    first_error.Update(MendOne(spec, difference, sides));
  }
  return first_error;
}

absl::Status NetlinkInspector::MendOne(const AttachSpec& spec, const Difference& difference,
                                       Sides& sides) {
  const int32_t host = sides.host.link.index;
  switch (difference.part) {
    case Part::kHostUp:
      return Send(socket_, netlink::SetLinkUp(host, true));
    case Part::kHostMac:
      return MendHostMac(spec, sides);
    case Part::kHostMtu:
      return Send(socket_,
                  netlink::SetLinkMtu(host, sides.pod ? sides.pod->link.link.mtu : spec.mtu));
    case Part::kHostSetting:
      return Send(socket_, netlink::ConfigureLink(
                               host, HostLinkSettings(sides.host.address_generation.has_value())));
    case Part::kHostNeighbour:
      return Send(socket_, netlink::SetPermanentNeighbour(
                               host, *difference.address,
                               sides.pod ? sides.pod->link.link.mac : spec.pod_mac));
    case Part::kHostRoute:
      return MendHostRoute(*difference.address, host);
    case Part::kHostRule:
      return MendHostRules(spec, *difference.address);
    case Part::kIngressLimit:
      return MendLimit(
          socket_, host,
          *PlanLinkShaping(spec.bandwidth.ingress_rate, spec.bandwidth.ingress_burst, spec.mtu));
    default:
      return MendInPod(spec, difference, sides.pod->socket, sides.pod->link.link.index);
  }
}

absl::Status NetlinkInspector::MendHostMac(const AttachSpec& spec, const Sides& sides) {
  const int32_t host = sides.host.link.index;
  if (sides.host.link.mac == spec.host_mac) return absl::OkStatus();
  RETURN_IF_ERROR(Send(socket_, netlink::SetLinkMac(host, spec.host_mac)));
  // The kernel has forgotten all neighbours of the device, permanent ones included.
  absl::Status first_error;
  for (const ip::Address& address : spec.addresses) {
    first_error.Update(
        Send(socket_, netlink::SetPermanentNeighbour(
                          host, address, sides.pod ? sides.pod->link.link.mac : spec.pod_mac)));
  }
  return first_error;
}

absl::Status NetlinkInspector::MendHostRules(const AttachSpec& spec, const ip::Address& address) {
  absl::Status first_error;
  for (const SourceTable& source : spec.source_tables) {
    if (source.address != address) continue;
    first_error.Update(Send(socket_, netlink::AddRule(SourceRule(source))));
  }
  return first_error;
}

absl::Status NetlinkInspector::ReadRules(ip::Family family,
                                         std::map<std::string, HostSide>& sides) {
  const auto rules = netlink::DumpRules(socket_, family, claims::kRouteProtocol);
  if (!rules.ok()) return Narrow(rules.status());
  std::multimap<ip::Address, uint32_t> tables;
  for (const netlink::Rule& rule : *rules) {
    if (rule.priority != claims::kSourcePriority || !rule.from) continue;
    if (rule.from->length() == rule.from->base().bits()) {
      tables.emplace(rule.from->base(), rule.table);
    }
  }
  if (tables.empty()) return absl::OkStatus();
  // A rule names no link. Neighbour entries lead to the link even when its routes are gone, and
  // routes when its entries are.
  for (auto& [name, side] : sides) {
    std::set<ip::Address> addresses(side.routes.begin(), side.routes.end());
    for (const PermanentNeighbour& entry : side.neighbours) addresses.insert(entry.address);
    for (const ip::Address& address : addresses) {
      const auto [begin, end] = tables.equal_range(address);
      for (auto found = begin; found != end; ++found) {
        side.rules.push_back({address, found->second});
      }
    }
  }
  return absl::OkStatus();
}

absl::Status NetlinkInspector::MendHostRoute(const ip::Address& address, int32_t link) {
  const netlink::Route route = LinkRoute(address, link);
  const absl::Status added = Send(socket_, netlink::AddRoute(route));
  if (!absl::IsAlreadyExists(added)) return added;
  const auto ours =
      netlink::DumpRoutes(socket_, address.family(), RT_TABLE_MAIN, claims::kRouteProtocol);
  if (!ours.ok()) return Narrow(ours.status());
  for (const netlink::Route& found : *ours) {
    if (!IsHostRoute(found) || found.destination != route.destination) continue;
    if (found.link == link) return absl::OkStatus();
    // Ours, to a pod that had the address before.
    return Send(socket_, netlink::ReplaceRoute(route));
  }
  return absl::AlreadyExistsError(
      fmt::format("a route to {} that is not ours is in the way", address.ToString()));
}

absl::StatusOr<os::UniqueFd> OpenPodNetns(const std::string& path) {
  const auto netns = netns::Netns::Open(path);
  if (!netns.ok()) return netns.status();
  os::UniqueFd copy(::fcntl(netns->fd(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return base::ErrnoToStatus(errno, "copy a namespace's descriptor");
  return copy;
}

}  // namespace spoke::netagent
