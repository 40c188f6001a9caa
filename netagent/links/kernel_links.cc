#include "netagent/links/kernel_links.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "lib/os/unique_fd.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

// The indexes we choose: far above those the kernel gives out one by one, so that a request of a
// batch whose creation was refused names no device of anybody's; below 2^30, as sFlow wants.
constexpr uint32_t kFirstIndex = 1U << 29U;
constexpr uint32_t kIndexCount = 1U << 29U;
// Pods' namespaces are numbered downwards. For each message about a link whose peer is elsewhere,
// and for each message to who listens to all namespaces, the kernel looks through the numbers from
// the lowest, which so is the one that the pod which is being attached has.
constexpr int32_t kHighestPodNumber = 1 << 30;
constexpr int32_t kLowestPodNumber = 1 << 29;

constexpr auto kAlreadyExists = absl::StatusCode::kAlreadyExists;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kResourceExhausted = absl::StatusCode::kResourceExhausted;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

// An address family that was switched off at boot has no sockets.
bool KernelHasIpv6() {
  return os::UniqueFd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)).valid();
}

// A runtime that wants no IPv6 has set this for all devices of the pod. It is cleared for the link,
// and for the loopback device, by which a pod reaches itself.
constexpr Ipv6Setting kIpv6On = {.name = "disable_ipv6", .value = 0};

// Writes one of IPv6's settings of a link in the calling thread's network namespace.
absl::Status SetIpv6(const std::string& link, const Ipv6Setting& setting,
                     const std::string& sysctl_root) {
  const std::string path = fmt::format("{}/net/ipv6/conf/{}/{}", sysctl_root, link, setting.name);
  const std::string value = fmt::format("{}", setting.value);
  const os::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open " + path);
  // The kernel asks for another try when it could not have its network lock at once.
  ssize_t written = -1;
  do {
    written = ::write(fd.get(), value.data(), value.size());
  } while (written < 0 && errno == EINTR);
  return written < 0 ? base::ErrnoToStatus(errno, "write " + path) : absl::OkStatus();
}

// Puts what failed, and what failed in cleaning up after it, into one status.
absl::Status WithCleanup(const absl::Status& status, const absl::Status& cleanup) {
  if (cleanup.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}; and then: {}", base::MessageOf(status),
                                                 base::MessageOf(cleanup)));
}

bool IsUnreachableRoute(const netlink::Route& route) {
  return route.type == RTN_UNREACHABLE && route.metric == claims::kUnreachableMetric &&
         route.destination.length() == route.destination.base().bits();
}

netlink::Route UnreachableRoute(const ip::Address& address) {
  return {.destination = ip::Prefix::Host(address),
          .protocol = claims::kRouteProtocol,
          .type = RTN_UNREACHABLE,
          .metric = claims::kUnreachableMetric};
}

// Sends the requests in batches, however many there are. One that is refused must not keep the
// others away, so it goes on and reports the first refusal.
absl::Status SendInBatches(netlink::Socket& socket, std::span<const netlink::Request> requests) {
  absl::Status first_error;
  for (size_t done = 0; done < requests.size(); done += netlink::kMaxBatch) {
    const size_t count = std::min(netlink::kMaxBatch, requests.size() - done);
    first_error.Update(netlink::SendBatch(socket, requests.subspan(done, count)).status);
  }
  return first_error;
}

}  // namespace

KernelLinks::KernelLinks(Settings settings, netns::Netns node, netlink::Socket socket,
                         std::unique_ptr<DeferredDeletion> deferred_deletion)
    : settings_(std::move(settings)),
      node_(std::move(node)),
      socket_(std::move(socket)),
      deferred_deletion_(std::move(deferred_deletion)),
      has_ipv6_(KernelHasIpv6()),
      // Each agent begins at another index: a pod may have a link of the last agent's.
      next_index_(std::random_device()()),
      next_pod_number_(kHighestPodNumber) {}

absl::StatusOr<std::unique_ptr<KernelLinks>> KernelLinks::Create(Settings settings) {
  auto node = netns::Netns::Current();
  if (!node.ok()) return node.status();
  auto socket = netlink::Socket::Open();
  if (!socket.ok()) return socket.status();
  auto deferred_deletion = DeferredDeletion::Create({settings.log, settings.fault_point});
  if (!deferred_deletion.ok()) return deferred_deletion.status();
  auto links = std::unique_ptr<KernelLinks>(new KernelLinks(
      std::move(settings), *std::move(node), *std::move(socket), *std::move(deferred_deletion)));
  RETURN_IF_ERROR(links->TakeStock());
  return links;
}

absl::StatusOr<netlink::Socket> KernelLinks::OpenSocketIn(const netns::Netns& netns) {
  std::optional<netlink::Socket> socket;
  RETURN_IF_ERROR(netns.Run([&socket]() -> absl::Status {
    auto opened = netlink::Socket::Open();
    if (!opened.ok()) return opened.status();
    socket.emplace(*std::move(opened));
    return absl::OkStatus();
  }));
  return *std::move(socket);
}

absl::Status Narrow(const absl::Status& status, std::initializer_list<absl::StatusCode> promised) {
  if (status.ok() || std::find(promised.begin(), promised.end(), status.code()) != promised.end()) {
    return status;
  }
  return absl::InternalError(status.message());
}

absl::Status KernelLinks::TakeStock() {
  ASSIGN_OR_RETURN(const auto sides, Read());
  std::set<ip::Address> held;
  for (const auto& [host_link, side] : sides) {
    held.insert(side.routes.begin(), side.routes.end());
    attached_.emplace(host_link, Attached{side.index, side.routes});
    // Earlier agents let the kernel give out the numbers, from 0 on.
    const int32_t number = side.peer_netns.value_or(0);
    if (number > kLowestPodNumber) next_pod_number_ = std::min(next_pod_number_, number - 1);
  }
  std::vector<netlink::Request> orphans;
  for (const ip::Family family : Families()) {
    RETURN_IF_ERROR(Reach(settings_.fault_point, "rules.list"));
    const auto rules = netlink::DumpRules(socket_, family, claims::kRouteProtocol);
    if (!rules.ok()) return rules.status();
    for (const netlink::Rule& rule : *rules) {
      if (rule.priority != claims::kSourcePriority || !rule.from) continue;
      const ip::Address& address = rule.from->base();
      if (held.contains(address)) {
        source_tables_[address] = rule.table;
      } else {
        orphans.push_back(netlink::DeleteRule(rule));
      }
    }
  }
  return SendInBatches(socket_, orphans);
}

uint32_t KernelLinks::IndexOf(const std::string& host_link) const {
  const auto known = attached_.find(host_link);
  return known == attached_.end() ? 0 : static_cast<uint32_t>(known->second.index);
}

HostSide KernelLinks::Recall(const std::string& host_link) const {
  const auto known = attached_.find(host_link);
  if (known == attached_.end()) return {};
  HostSide side{.exists = true, .index = known->second.index};
  side.routes = known->second.addresses;
  for (const ip::Address& address : known->second.addresses) {
    const auto source = source_tables_.find(address);
    if (source == source_tables_.end() || IsHeld(address, host_link)) continue;
    side.rules.push_back({address, source->second});
  }
  return side;
}

absl::Status KernelLinks::Apply(const AttachSpec& spec, const LinkOperations& plan,
                                std::optional<int> pod_netns) {
  if (!IsHostLinkName(spec.host_link)) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no host link's name", spec.host_link));
  }
  if (spec.addresses.empty()) return TakeDown(spec.host_link, plan);
  if (plan.empty() || plan.front().part != Part::kHostLink) return Mend(spec, plan, pod_netns);
  if (!pod_netns) return absl::InvalidArgumentError("a link cannot be made without its pod");
  return Make(spec, plan, *pod_netns);
}

absl::Status KernelLinks::Make(const AttachSpec& spec, const LinkOperations& plan, int pod_netns) {
  const auto pod = netns::Netns::FromDescriptor(pod_netns);
  if (!pod.ok()) {
    return Narrow(base::Annotate(pod.status(), "the pod's network namespace"),
                  {kFailedPrecondition, kResourceExhausted});
  }
  if (pod->identity() == node_.identity()) {
    return absl::FailedPreconditionError("the pod's network namespace is the node's own");
  }
  RETURN_IF_ERROR(deferred_deletion_->FinishWhatClashes(spec));
  // The ends have two different indexes: a veth whose peer has its own looks like one without.
  const uint32_t pod_index = kFirstIndex + (next_index_++ % kIndexCount);
  const uint32_t host_index = kFirstIndex + (next_index_++ % kIndexCount);
  const LinkEnds ends{.pod = static_cast<int32_t>(pod_index),
                      .host = static_cast<int32_t>(host_index),
                      .have_ipv6 = has_ipv6_ && spec.mtu >= kMinMtuV6,
                      .node_netns = node_.fd()};
  NumberPod(*pod);
  absl::Status status = Build(spec, plan, ends, *pod);
  if (absl::IsAlreadyExists(status) && !deferred_deletion_->empty()) {
    // The link in the way may be a detached one's pod end, whose name only the pod knows.
    RETURN_IF_ERROR(deferred_deletion_->FinishAll());
    status = Build(spec, plan, ends, *pod);
  }
  if (!status.ok()) return status;
  attached_.insert_or_assign(spec.host_link, Attached{ends.host, spec.addresses});
  for (const ip::Address& address : spec.addresses) source_tables_.erase(address);
  for (const SourceTable& source : spec.source_tables) {
    source_tables_[source.address] = source.table;
  }
  return absl::OkStatus();
}

void KernelLinks::NumberPod(const netns::Netns& pod) {
  const netlink::Request request = netlink::NumberNetns(pod.fd(), next_pod_number_);
  next_pod_number_ = next_pod_number_ > kLowestPodNumber ? next_pod_number_ - 1 : kHighestPodNumber;
  // It is refused where the pod has a number or another namespace has this one. What has none gets
  // one with its link.
  static_cast<void>(netlink::SendBatch(socket_, std::span(&request, 1)));
}

std::vector<netlink::Request> KernelLinks::DeletionsOfOtherRules(const AttachSpec& spec) const {
  std::vector<netlink::Request> deletions;
  for (const ip::Address& address : spec.addresses) {
    const auto had = source_tables_.find(address);
    if (had == source_tables_.end()) continue;
    const SourceTable old{had->first, had->second};
    const auto& wanted = spec.source_tables;
    if (std::find(wanted.begin(), wanted.end(), old) == wanted.end()) {
      deletions.push_back(netlink::DeleteRule(SourceRule(old)));
    }
  }
  return deletions;
}

bool KernelLinks::IsHeld(const ip::Address& address, const std::string& but_by) const {
  return std::any_of(attached_.begin(), attached_.end(), [&](const auto& link) {
    return link.first != but_by &&
           std::find(link.second.addresses.begin(), link.second.addresses.end(), address) !=
               link.second.addresses.end();
  });
}

absl::Status KernelLinks::Build(const AttachSpec& spec, const LinkOperations& plan,
                                const LinkEnds& ends, const netns::Netns& pod) {
  RETURN_IF_ERROR(Reach(settings_.fault_point, "attach.enter"));
  auto pod_socket = OpenSocketIn(pod);
  if (!pod_socket.ok()) return Narrow(pod_socket.status(), {kResourceExhausted});

  RETURN_IF_ERROR(Reach(settings_.fault_point, "attach.pod"));
  LinkBatches batches = BatchesOf(spec, plan, ends);
  const netlink::BatchResult made = netlink::SendBatch(*pod_socket, batches.in_pod);
  // The first request makes the pair. If it is refused, it has left nothing, and the kernel has
  // refused all the others as well, for want of a device.
  if (!made.status.ok() && made.refused == 0U) {
    return Narrow(made.status, {kAlreadyExists, kResourceExhausted});
  }
  absl::Status status = made.status;
  if (absl::IsPermissionDenied(status) && made.refused == batches.first_v6) {
    // The runtime has switched IPv6 off, as some do for all pods, and this one has an address.
    status = Reach(settings_.fault_point, "attach.ipv6");
    if (status.ok()) {
      status = pod.Run([&]() -> absl::Status {
        RETURN_IF_ERROR(SetIpv6("lo", kIpv6On, settings_.sysctl_root));
        return SetIpv6(spec.pod_link, kIpv6On, settings_.sysctl_root);
      });
    }
    if (status.ok()) {
      const auto v6 = std::span(batches.in_pod).subspan(batches.first_v6);
      status = netlink::SendBatch(*pod_socket, v6).status;
    }
  }
  // A failure does not keep the pod from being attached: the node's rules drop its router
  // advertisements as well, and the next look at the link finds what is missing and reports it.
  if (status.ok() && ends.have_ipv6) static_cast<void>(IgnoreRouters(spec));
  if (status.ok()) status = Reach(settings_.fault_point, "attach.node");
  if (status.ok()) {
    for (netlink::Request& other : DeletionsOfOtherRules(spec)) {
      batches.on_node.push_back(std::move(other));
    }
    status = netlink::SendBatch(socket_, batches.on_node).status;
  }
  // The pod end gets its carrier when the host end comes up, and the kernel lets it send only some
  // time later, from a work queue that waits for the network lock: until then it drops what the pod
  // sends. From Linux 6.8 on, to ask about a link makes it catch up.
  if (status.ok()) status = Reach(settings_.fault_point, "attach.carrier");
  if (status.ok()) status = netlink::GetLink(*pod_socket, spec.pod_link).status();
  if (status.ok()) return status;

  return Narrow(WithCleanup(status, Undo(spec, ends, *pod_socket)), {kResourceExhausted});
}

absl::Status KernelLinks::IgnoreRouters(const AttachSpec& spec) {
  return node_.Run(
      [&] { return SetIpv6(spec.host_link, RouterSettingOf(spec), settings_.sysctl_root); });
}

absl::Status KernelLinks::Undo(const AttachSpec& spec, const LinkEnds& ends,
                               netlink::Socket& pod_socket) {
  // A batch is no transaction. The link is deleted by index, which nothing else has, so that this
  // can never take a link that was there before; and in the pod, where the index is ours even on a
  // kernel that would not let us choose the host end's.
  std::vector<netlink::Request> in_pod = {netlink::DeleteLink(ends.pod)};
  for (const ip::Address& address : spec.addresses) {
    if (spec.ordinal > 0) in_pod.push_back(netlink::DeleteRule(PodRule(spec, address)));
  }
  absl::Status status = netlink::SendBatch(pod_socket, in_pod).status;
  std::vector<netlink::Request> on_node;
  for (const SourceTable& source : spec.source_tables) {
    const auto had = source_tables_.find(source.address);
    if (had != source_tables_.end() && had->second == source.table) continue;
    on_node.push_back(netlink::DeleteRule(SourceRule(source)));
  }
  status.Update(netlink::SendBatch(socket_, on_node).status);
  return status;
}

absl::Status KernelLinks::TakeDown(const std::string& host_link, const LinkOperations& plan) {
  const auto known = attached_.find(host_link);
  const std::vector<ip::Address> addresses =
      known == attached_.end() ? std::vector<ip::Address>() : known->second.addresses;
  absl::Status left;
  const absl::Status status = deferred_deletion_->DeleteLater(
      {host_link, addresses}, [&](uint32_t group) { return Retire(host_link, plan, group, left); });
  if (!status.ok() && !absl::IsNotFound(status)) return Narrow(status, {kUnavailable});
  if (!left.ok()) return Narrow(left, {kUnavailable});
  attached_.erase(host_link);
  for (const ip::Address& address : addresses) {
    if (source_tables_.contains(address) && !IsHeld(address)) source_tables_.erase(address);
  }
  return absl::OkStatus();
}

absl::Status KernelLinks::Retire(const std::string& host_link, const LinkOperations& plan,
                                 uint32_t group, absl::Status& left) {
  RETURN_IF_ERROR(Reach(settings_.fault_point, "detach.retire"));
  const auto known = attached_.find(host_link);
  std::vector<netlink::Request> batch;
  size_t retire = 0;
  for (const LinkOperation& operation : plan) {
    if (operation.part == Part::kHostLink) {
      retire = batch.size();
      batch.push_back(netlink::RetireLink(host_link, group));
    } else if (operation.part == Part::kHostRule) {
      batch.push_back(netlink::DeleteRule(SourceRule({*operation.address, operation.table})));
    } else if (known != attached_.end()) {
      batch.push_back(netlink::DeleteRoute(RouteToPod(*operation.address, known->second.index)));
    }
  }
  const netlink::BatchResult result = netlink::SendBatch(socket_, batch);
  // A request that is refused before the link is retired is as good as a refusal of that: the next
  // call does both again.
  if (!result.refused || *result.refused <= retire) return result.status;
  left = result.status;
  return absl::OkStatus();
}

absl::Status KernelLinks::SetUnreachable(const std::vector<ip::Address>& addresses) {
  RETURN_IF_ERROR(Reach(settings_.fault_point, "routes.list"));
  std::set<ip::Address> missing(addresses.begin(), addresses.end());
  std::vector<netlink::Request> changes;
  for (const ip::Family family : Families()) {
    const auto routes = netlink::DumpRoutes(socket_, family, RT_TABLE_MAIN, claims::kRouteProtocol);
    if (!routes.ok()) return Narrow(routes.status(), {kUnavailable});
    for (const netlink::Route& route : *routes) {
      if (!IsUnreachableRoute(route)) continue;
      const ip::Address& address = route.destination.base();
      if (missing.erase(address) == 0) {
        changes.push_back(netlink::DeleteRoute(UnreachableRoute(address)));
      }
    }
  }
  for (const ip::Address& address : missing) {
    changes.push_back(netlink::ReplaceRoute(UnreachableRoute(address)));
  }
  RETURN_IF_ERROR(Reach(settings_.fault_point, "unreachable.set"));
  return Narrow(SendInBatches(socket_, changes), {kUnavailable});
}

absl::StatusOr<Nic> KernelLinks::ReadNic(const std::string& name) {
  RETURN_IF_ERROR(Reach(settings_.fault_point, "nic.read"));
  const auto link = netlink::GetLink(socket_, name);
  if (!link.ok()) return Narrow(link.status(), {kNotFound});
  Nic nic{.name = link->name, .mac = link->mac, .mtu = link->mtu, .addresses = {}};
  for (const ip::Family family : Families()) {
    const auto addresses = netlink::DumpAddresses(socket_, family, link->index);
    if (!addresses.ok()) return Narrow(addresses.status(), {kUnavailable});
    for (const netlink::LinkAddress& address : *addresses) {
      if (address.scope == RT_SCOPE_UNIVERSE) nic.addresses.push_back(address.address);
    }
  }
  std::sort(nic.addresses.begin(), nic.addresses.end());
  return nic;
}

}  // namespace spoke::netagent
