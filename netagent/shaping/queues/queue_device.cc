#include "netagent/shaping/queues/queue_device.h"

#include <linux/if_link.h>
#include <linux/pkt_sched.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <span>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/queueing/filter.h"
#include "lib/netlink/queueing/htb.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/shaping/queues/shape_programs.h"

namespace spoke::netagent {
namespace {

// The most packets that wait in no class, while classes are put back: as many as a network card's
// queue.
constexpr uint32_t kQueueLength = 1000;

// Returns a size of a class as the kernel has it: CheckShapingTables() has found it to fit.
uint32_t Size32(units::ByteCount size) { return static_cast<uint32_t>(size.count()); }

netlink::HtbClass ToNetlink(const ShapeClass& wanted, int32_t link) {
  return {.link = link,
          .id = claims::kTreeHandle + wanted.id,
          .parent = claims::kTreeHandle + wanted.parent,
          .rate = wanted.rate.count(),
          .ceil = wanted.ceil.count(),
          .burst = Size32(wanted.burst),
          .quantum = Size32(wanted.quantum)};
}

ShapeClass FromNetlink(const netlink::HtbClass& htb) {
  return {.id = static_cast<ShapeClassId>(TC_H_MIN(htb.id)),
          .parent = static_cast<ShapeClassId>(TC_H_MIN(htb.parent)),
          .rate = units::ByteRate(htb.rate),
          .ceil = units::ByteRate(htb.ceil),
          .burst = units::ByteCount(htb.burst),
          .quantum = units::ByteCount(htb.quantum)};
}

// Sends one request, whose refusal as unknown or impossible means that the kernel lacks `what`.
absl::Status Need(netlink::Socket& socket, const netlink::Request& request, std::string_view what) {
  const absl::Status status = netlink::SendBatch(socket, std::span(&request, 1)).status;
  if (absl::IsUnimplemented(status) || absl::IsNotFound(status) ||
      absl::IsInvalidArgument(status)) {
    return absl::UnimplementedError(
        fmt::format("the kernel lacks {}: {}", what, base::MessageOf(status)));
  }
  return status;
}

absl::Status ReadTree(netlink::Socket& socket, QueueDevice& device) {
  ASSIGN_OR_RETURN(const auto qdiscs, netlink::DumpQdiscs(socket, device.index));
  device.has_tree = std::any_of(qdiscs.begin(), qdiscs.end(), [](const netlink::Qdisc& qdisc) {
    return qdisc.parent == TC_H_ROOT && qdisc.kind == "htb" && qdisc.handle == claims::kTreeHandle;
  });
  if (!device.has_tree) return absl::OkStatus();
  std::map<uint32_t, uint32_t> limits;  // The limits of queues, by class.
  for (const netlink::Qdisc& qdisc : qdiscs) {
    if (qdisc.fifo_limit) limits[qdisc.parent] = *qdisc.fifo_limit;
  }
  ASSIGN_OR_RETURN(const auto classes, netlink::DumpHtbClasses(socket, device.index));
  for (const netlink::HtbClassReading& reading : classes) {
    ShapeClass one = FromNetlink(reading.htb);
    const auto limit = limits.find(reading.htb.id);
    if (limit != limits.end()) one.queue = units::ByteCount(limit->second);
    device.classes.push_back(one);
  }
  ASSIGN_OR_RETURN(const auto filters,
                   netlink::DumpFilters(socket, device.index, claims::kTreeHandle));
  for (const netlink::BpfFilter& filter : filters) {
    if (filter.priority == claims::kShapePriority && !filter.direct) {
      device.classifier = filter.program_id;
    }
  }
  return absl::OkStatus();
}

absl::Status MakeDevice(netlink::Socket& socket, QueueDevice& device) {
  RETURN_IF_ERROR(Need(socket, netlink::CreateIfb(device.name, kQueueLength),
                       "devices of kind ifb (CONFIG_IFB)"));
  ASSIGN_OR_RETURN(const netlink::Link link, netlink::GetLink(socket, device.name));
  device = {.name = device.name, .index = link.index, .is_ours = true, .classes = {}};
  // Nobody is to be found behind the device.
  netlink::Request quiet = netlink::ConfigureLink(
      link.index, {.ipv4 = {}, .address_generation = uint8_t{IN6_ADDR_GEN_MODE_NONE}});
  quiet.Tolerate(EAFNOSUPPORT);
  return netlink::SendBatch(socket, std::span(&quiet, 1)).status;
}

}  // namespace

std::string NameOfQueues(TrafficDirection direction) {
  return std::string(direction == TrafficDirection::kIngress ? claims::kIngressQueues
                                                             : claims::kEgressQueues);
}

ShapeClass AsKept(const ShapeClass& wanted) {
  ShapeClass kept = FromNetlink(netlink::AsKept(ToNetlink(wanted, 0)));
  kept.queue = wanted.queue;
  return kept;
}

absl::StatusOr<QueueDevice> ReadQueueDevice(netlink::Socket& socket, TrafficDirection direction) {
  QueueDevice device{.name = NameOfQueues(direction), .classes = {}};
  const auto link = netlink::GetLink(socket, device.name);
  if (absl::IsNotFound(link.status())) return device;
  if (!link.ok()) return link.status();
  if (link->name != device.name) {
    // It is not ours to be replaced, since it has a name of its own.
    return absl::FailedPreconditionError(
        fmt::format("{0} is another name of device {1}, and no device can be made under it: "
                    "ip link property del dev {1} altname {0}",
                    device.name, link->name));
  }
  device.index = link->index;
  device.is_up = link->up;
  device.is_ours = link->kind == "ifb";
  if (device.is_ours) RETURN_IF_ERROR(ReadTree(socket, device));
  return device;
}

absl::StatusOr<size_t> MendQueueDevice(netlink::Socket& socket, const Programs& programs,
                                       QueueDevice& device) {
  size_t mended = 0;
  if (device.index != 0 && !device.is_ours) {
    // The name is ours, and nothing else can be made of it.
    RETURN_IF_ERROR(SendAll(socket, {netlink::DeleteLink(device.index)}));
    device.index = 0;
  }
  if (device.index == 0) {
    RETURN_IF_ERROR(MakeDevice(socket, device));
    ++mended;
  }
  if (!device.has_tree) {
    RETURN_IF_ERROR(SendAll(socket, {netlink::DeleteRootQdisc(device.index)}));
    RETURN_IF_ERROR(Need(socket, netlink::AddHtb(device.index, claims::kTreeHandle),
                         "hierarchical token buckets (CONFIG_NET_SCH_HTB)"));
    device.has_tree = true;
    device.classes.clear();
    device.classifier = 0;
    ++mended;
  }
  const uint32_t classifier = programs.program_id(kClassify);
  if (device.classifier == 0 || device.classifier != classifier) {
    const netlink::BpfFilter filter{
        .link = device.index, .priority = claims::kShapePriority, .name = kClassify};
    RETURN_IF_ERROR(Need(
        socket, netlink::SetBpfFilter(filter, claims::kTreeHandle, programs.program(kClassify)),
        "filters of BPF programs (CONFIG_NET_CLS_BPF)"));
    device.classifier = classifier;
    ++mended;
  }
  if (!device.is_up) {
    RETURN_IF_ERROR(SendAll(socket, {netlink::SetLinkUp(device.index, true)}));
    device.is_up = true;
    ++mended;
  }
  return mended;
}

absl::Status ProbeDiverting(netlink::Socket& socket, const Programs& programs,
                            const QueueDevice& device) {
  RETURN_IF_ERROR(Need(socket, netlink::AddClsact(device.index),
                       "filters at ingress and egress (CONFIG_NET_SCH_INGRESS)"));
  const netlink::BpfFilter filter{.link = device.index,
                                  .priority = claims::kDivertPriority,
                                  .name = kDivert,
                                  .program_id = 0,
                                  .redirect_to = device.index};
  const absl::Status status =
      Need(socket,
           netlink::SetBpfFilter(filter, netlink::HookOf(netlink::Direction::kIngress),
                                 programs.program(kDivert)),
           "filters that lead packets to another device (CONFIG_NET_ACT_MIRRED)");
  const absl::Status cleared = SendAll(socket, {netlink::DeleteClsact(device.index)});
  return status.ok() ? cleared : status;
}

absl::Status SetClasses(netlink::Socket& socket, const QueueDevice& device,
                        const std::vector<ClassChange>& changes) {
  std::vector<netlink::Request> requests;
  for (const ClassChange& change : changes) {
    const netlink::HtbClass htb = ToNetlink(change.wanted, device.index);
    if (change.set_class) requests.push_back(netlink::SetHtbClass(htb));
    if (change.set_queue) {
      requests.push_back(netlink::SetByteFifo(device.index, htb.id, Size32(change.wanted.queue)));
    }
  }
  return SendAll(socket, requests);
}

absl::Status RemoveClasses(netlink::Socket& socket, const QueueDevice& device,
                           const std::vector<ShapeClassId>& ids) {
  std::vector<netlink::Request> requests;
  requests.reserve(ids.size());
  for (const ShapeClassId id : ids) {
    requests.push_back(netlink::DeleteHtbClass(device.index, claims::kTreeHandle + id));
  }
  return SendAll(socket, requests);
}

absl::StatusOr<std::vector<ShapeClassReading>> ReadClasses(netlink::Socket& socket,
                                                           TrafficDirection direction,
                                                           const QueueDevice& device) {
  std::vector<ShapeClassReading> readings;
  if (device.index == 0) return readings;
  ASSIGN_OR_RETURN(const auto classes, netlink::DumpHtbClasses(socket, device.index));
  readings.reserve(classes.size());
  for (const netlink::HtbClassReading& one : classes) {
    readings.push_back({.direction = direction,
                        .id = static_cast<ShapeClassId>(TC_H_MIN(one.htb.id)),
                        .sent = units::ByteCount(one.sent_bytes),
                        .dropped_packets = one.dropped_packets,
                        .overlimits = one.overlimits,
                        .backlog = units::ByteCount(one.backlog_bytes)});
  }
  return readings;
}

absl::Status SendAll(netlink::Socket& socket, const std::vector<netlink::Request>& requests) {
  std::span<const netlink::Request> rest(requests);
  while (!rest.empty()) {
    const auto batch = rest.first(std::min(rest.size(), netlink::kMaxBatch));
    RETURN_IF_ERROR(netlink::SendBatch(socket, batch).status);
    rest = rest.subspan(batch.size());
  }
  return absl::OkStatus();
}

}  // namespace spoke::netagent
