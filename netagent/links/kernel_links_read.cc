// KernelLinks: reads links, and puts right what is wrong on a link that is there.
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
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/links/kernel_links.h"

namespace spoke::netagent {
namespace {

// Narrows a refusal. One which says that something of the attachment is not there says nothing
// about the host link, which is what kNotFound means here.
absl::Status NarrowChange(const absl::Status& status) {
  if (absl::IsAlreadyExists(status) || absl::IsUnavailable(status) || status.ok()) return status;
  return absl::InternalError(status.message());
}

absl::Status Send(netlink::Socket& socket, const netlink::Request& request) {
  return NarrowChange(netlink::SendBatch(socket, std::span(&request, 1)).status);
}

bool IsOurs(const netlink::LinkState& state) {
  return state.link.kind == "veth" && IsHostLinkName(state.link.name) &&
         !claims::IsDeletionGroup(state.group);
}

HostSide SideOf(const netlink::LinkState& state) {
  return {.exists = true,
          .index = state.link.index,
          .peer_netns = state.peer_netns,
          .up = state.link.up,
          .mac = state.link.mac,
          .mtu = state.link.mtu,
          .settings = state.ipv4,
          .address_generation = state.address_generation,
          .accept_ra = state.accept_ra,
          .disable_ipv6 = state.disable_ipv6};
}

bool IsHostRoute(const netlink::Route& route) {
  return route.type == RTN_UNICAST && route.destination.length() == route.destination.base().bits();
}

std::optional<PermanentNeighbour> AsPermanent(const netlink::Neighbour& entry) {
  if ((entry.state & NUD_PERMANENT) == 0 || !entry.mac) return std::nullopt;
  return PermanentNeighbour{entry.address, *entry.mac};
}

// Adds `route` in the pod unless a route to there by the same way is there already.
absl::Status EnsurePodRoute(netlink::Socket& socket, const netlink::Route& route) {
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

bool IsLimited(const netlink::LinkState& state) { return state.qdisc == "tbf"; }

std::optional<units::BitRate> LimitOf(const netlink::Qdisc& qdisc) {
  if (qdisc.parent != TC_H_ROOT || !qdisc.token_bucket) return std::nullopt;
  return units::ToBits(units::ByteRate(qdisc.token_bucket->rate));
}

// Adds the limit, in place of one of ours with other values; another's stays.
absl::Status MendLimit(const AttachSpec& spec, netlink::Socket& socket, int32_t link,
                       const netlink::Request& add) {
  const absl::Status added = Send(socket, add);
  if (!absl::IsAlreadyExists(added)) return added;
  const auto qdiscs = netlink::DumpQdiscs(socket, link);
  if (!qdiscs.ok()) return Narrow(qdiscs.status());
  for (const netlink::Qdisc& found : *qdiscs) {
    if (found.parent != TC_H_ROOT || found.handle != claims::kShaperHandle) continue;
    if (LimitOf(found) == IngressRateOf(spec)) return absl::OkStatus();
    RETURN_IF_ERROR(Send(socket, netlink::DeleteRootQdisc(link, claims::kShaperHandle)));
    return Send(socket, add);
  }
  return absl::AlreadyExistsError(
      fmt::format("a queue that is not ours is in the way on link {}", link));
}

// Adds the node's route unless it is there. One of ours to a pod that had the address before is
// replaced; another's stays.
absl::Status EnsureHostRoute(netlink::Socket& socket, const netlink::Route& route) {
  const absl::Status added = Send(socket, netlink::AddRoute(route));
  if (!absl::IsAlreadyExists(added)) return added;
  const auto ours = netlink::DumpRoutes(socket, route.destination.family(), RT_TABLE_MAIN,
                                        claims::kRouteProtocol);
  if (!ours.ok()) return Narrow(ours.status());
  for (const netlink::Route& found : *ours) {
    if (!IsHostRoute(found) || found.destination != route.destination) continue;
    if (found.link == route.link) return absl::OkStatus();
    return Send(socket, netlink::ReplaceRoute(route));
  }
  return absl::AlreadyExistsError(
      fmt::format("a route to {} that is not ours is in the way", route.destination.ToString()));
}

absl::Status CheckMendable(const AttachSpec& spec, const LinkOperation& operation, bool has_pod) {
  const auto& addresses = spec.addresses;
  const bool foreign = operation.address && std::find(addresses.begin(), addresses.end(),
                                                      *operation.address) == addresses.end();
  const bool whole = operation.part == Part::kHostLink || operation.part == Part::kPodLink;
  if (whole || foreign || (IsInPod(operation.part) && !has_pod)) {
    return absl::InvalidArgumentError(
        fmt::format("{} cannot be mended here", NameOf(operation.part)));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<ip::Family> KernelLinks::Families() const {
  if (has_ipv6_) return {ip::Family::kV4, ip::Family::kV6};
  return {ip::Family::kV4};
}

absl::StatusOr<std::map<std::string, HostSide>> KernelLinks::Read() {
  RETURN_IF_ERROR(Reach(settings_.fault_point, "links.list"));
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
      if (const auto limit = LimitOf(qdisc)) side->second->limit = limit;
    }
  }
  return sides;
}

absl::StatusOr<netlink::LinkState> KernelLinks::FindHostLink(const std::string& name) {
  auto state = netlink::GetLinkState(socket_, name);
  if (!state.ok()) return Narrow(state.status());
  if (!IsOurs(*state)) {
    return absl::NotFoundError(fmt::format("link {} is not one of ours, or detached", name));
  }
  return state;
}

absl::StatusOr<KernelLinks::Pod> KernelLinks::EnterPod(const AttachSpec& spec,
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

absl::StatusOr<PodSide> KernelLinks::ReadPod(const AttachSpec& spec, int pod_netns) {
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

PodChanges KernelLinks::TakePodChanges() {
  if (pod_watch_) return pod_watch_->Take();
  if (std::exchange(pod_watch_tried_, true)) return {.all = true};
  const absl::Status opened = node_.Run([this]() -> absl::Status {
    ASSIGN_OR_RETURN(PodWatch watch, PodWatch::Open());
    pod_watch_.emplace(std::move(watch));
    return absl::OkStatus();
  });
  if (!opened.ok() && settings_.log != nullptr) {
    settings_.log->Info("pod_changes_unheard", {{"error", opened}});
  }
  return {.all = true};
}

absl::Status KernelLinks::Mend(const AttachSpec& spec, const LinkOperations& plan,
                               std::optional<int> pod_netns) {
  for (const LinkOperation& operation : plan) {
    RETURN_IF_ERROR(CheckMendable(spec, operation, pod_netns.has_value()));
  }
  ASSIGN_OR_RETURN(const netlink::LinkState host, FindHostLink(spec.host_link));
  LinkEnds ends{.host = host.link.index, .have_ipv6 = host.address_generation.has_value()};
  std::optional<Pod> pod;
  if (pod_netns) {
    ASSIGN_OR_RETURN(Pod entered, EnterPod(spec, host, *pod_netns));
    ends.pod = entered.link.link.index;
    pod.emplace(std::move(entered));
  }
  absl::Status first_error;
  for (const LinkOperation& operation : plan) {
    first_error.Update(
        MendOne(spec, operation, ends, IsInPod(operation.part) ? pod->socket : socket_));
  }
  return first_error;
}

absl::Status KernelLinks::MendOne(const AttachSpec& spec, const LinkOperation& operation,
                                  const LinkEnds& ends, netlink::Socket& socket) {
  if (operation.part == Part::kHostRoute) {
    return EnsureHostRoute(socket, RouteToPod(*operation.address, ends.host));
  }
  if (operation.part == Part::kHostRouters) return NarrowChange(IgnoreRouters(spec));
  absl::Status first_error;
  if (operation.part == Part::kPodRoute) {
    for (const PodRoute& route : PodRoutesOf(spec, *operation.address)) {
      first_error.Update(EnsurePodRoute(socket, RouteOf(spec, ends.pod, route)));
    }
    return first_error;
  }
  std::vector<netlink::Request> requests;
  PutRequests(spec, operation, ends, requests);
  for (netlink::Request& request : requests) {
    if (operation.part == Part::kIngressLimit) return MendLimit(spec, socket, ends.host, request);
    if (operation.part == Part::kPodAddress) request.Tolerate(EEXIST);
    first_error.Update(Send(socket, request));
  }
  return first_error;
}

absl::Status KernelLinks::ReadRules(ip::Family family, std::map<std::string, HostSide>& sides) {
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

absl::StatusOr<os::UniqueFd> OpenPodNetns(const std::string& path) {
  const auto netns = netns::Netns::Open(path);
  if (!netns.ok()) return netns.status();
  os::UniqueFd copy(::fcntl(netns->fd(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return base::ErrnoToStatus(errno, "copy a namespace's descriptor");
  return copy;
}

}  // namespace spoke::netagent
