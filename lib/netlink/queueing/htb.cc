#include "lib/netlink/queueing/htb.h"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <limits>
#include <optional>

#include "fmt/core.h"
#include "lib/netlink/message.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {
namespace {

constexpr uint32_t kMaxRate32 = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kVersion = 3;         // The version of the protocol: TC_HTB_PROTOVER.
constexpr uint32_t kRateToQuantum = 10;  // The number of tc's own; each leaf says its quantum.

absl::Status Malformed() { return absl::DataLossError("malformed netlink class message"); }

tcmsg Fixed(int32_t link, uint32_t handle, uint32_t parent) {
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = link;
  fixed.tcm_handle = handle;
  fixed.tcm_parent = parent;
  return fixed;
}

// Returns false for malformed input.
bool ReadOptions(std::span<const uint8_t> options, HtbClass& htb) {
  AttributeTable<TCA_HTB_CEIL64> table(options);
  tc_htb_opt parameters{};
  table.Read(TCA_HTB_PARMS, parameters);
  htb.rate = parameters.rate.rate;
  htb.ceil = parameters.ceil.rate;
  htb.quantum = parameters.quantum;
  table.Read(TCA_HTB_RATE64, htb.rate);
  table.Read(TCA_HTB_CEIL64, htb.ceil);
  htb.burst = BytesOf(parameters.buffer, htb.rate);
  return !table.malformed();
}

// Returns false for malformed input.
bool ReadStatistics(std::span<const uint8_t> statistics, HtbClassReading& reading) {
  // The kernel's gnet_stats_basic, which is longer than the message: it is padded.
  struct [[gnu::packed]] {
    uint64_t bytes = 0;
    uint32_t packets = 0;
  } basic;
  gnet_stats_queue queue{};
  AttributeTable<TCA_STATS_PKT64> table(statistics);
  table.Read(TCA_STATS_BASIC, basic);
  table.Read(TCA_STATS_QUEUE, queue);
  reading.sent_bytes = basic.bytes;
  reading.sent_packets = basic.packets;
  table.Read(TCA_STATS_PKT64, reading.sent_packets);
  reading.dropped_packets = queue.drops;
  reading.overlimits = queue.overlimits;
  reading.backlog_bytes = queue.backlog;
  return !table.malformed();
}

tc_ratespec RateOf(uint64_t bytes_per_second) {
  tc_ratespec rate{};
  rate.rate = bytes_per_second >= kMaxRate32 ? kMaxRate32 : static_cast<uint32_t>(bytes_per_second);
  // With a link layer the kernel computes what a packet costs, and wants no table of rates.
  rate.linklayer = TC_LINKLAYER_ETHERNET;
  return rate;
}

}  // namespace

absl::StatusOr<HtbClassReading> ParseHtbClass(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<tcmsg>(payload);
  const AttributeTable<TCA_STATS2> table(AttributeReader(payload, sizeof(tcmsg)));
  if (!fixed || table.malformed()) return Malformed();
  HtbClassReading reading;
  reading.htb.link = fixed->tcm_ifindex;
  reading.htb.id = fixed->tcm_handle;
  reading.htb.parent =
      fixed->tcm_parent == TC_H_ROOT ? TC_H_MAJ(fixed->tcm_handle) : fixed->tcm_parent;
  reading.queue = fixed->tcm_info;
  if (table[TCA_KIND].Text() != "htb") return HtbClassReading{};
  if (!ReadOptions(table[TCA_OPTIONS].payload, reading.htb) ||
      !ReadStatistics(table[TCA_STATS2].payload, reading)) {
    return Malformed();
  }
  return reading;
}

HtbClass AsKept(const HtbClass& htb) {
  HtbClass kept = htb;
  kept.burst = BytesOf(TicksOf(htb.burst, htb.rate), htb.rate);
  return kept;
}

Request AddHtb(int32_t link, uint32_t handle) {
  tc_htb_glob root{};
  root.version = kVersion;
  root.rate2quantum = kRateToQuantum;
  Request request(fmt::format("put a tree of queues onto link {}", link), RTM_NEWQDISC,
                  NLM_F_CREATE | NLM_F_EXCL, Fixed(link, handle, TC_H_ROOT));
  request.PutText(TCA_KIND, "htb").BeginNest(TCA_OPTIONS).PutValue(TCA_HTB_INIT, root).EndNest();
  return request;
}

Request SetHtbClass(const HtbClass& htb) {
  tc_htb_opt parameters{};
  parameters.rate = RateOf(htb.rate);
  parameters.ceil = RateOf(htb.ceil);
  parameters.buffer = TicksOf(htb.burst, htb.rate);
  parameters.cbuffer = TicksOf(htb.burst, htb.ceil);
  parameters.quantum = htb.quantum;
  Request request(fmt::format("set class {:x}:{:x} of link {} to {} bytes/s",
                              TC_H_MAJ(htb.id) >> 16U, TC_H_MIN(htb.id), htb.link, htb.rate),
                  RTM_NEWTCLASS, NLM_F_CREATE, Fixed(htb.link, htb.id, htb.parent));
  request.PutText(TCA_KIND, "htb").BeginNest(TCA_OPTIONS).PutValue(TCA_HTB_PARMS, parameters);
  if (htb.rate >= kMaxRate32) request.PutValue(TCA_HTB_RATE64, htb.rate);
  if (htb.ceil >= kMaxRate32) request.PutValue(TCA_HTB_CEIL64, htb.ceil);
  request.EndNest();
  return request;
}

Request DeleteHtbClass(int32_t link, uint32_t id) {
  Request request(
      fmt::format("delete class {:x}:{:x} of link {}", TC_H_MAJ(id) >> 16U, TC_H_MIN(id), link),
      RTM_DELTCLASS, 0, Fixed(link, id, 0));
  request.Tolerate(ENOENT);
  return request;
}

absl::StatusOr<std::vector<HtbClassReading>> DumpHtbClasses(Socket& socket, int32_t link) {
  const Request request(fmt::format("list classes of link {}", link), RTM_GETTCLASS, 0,
                        Fixed(link, 0, 0));
  return DumpAs<HtbClassReading>(
      socket, request, RTM_NEWTCLASS,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<HtbClassReading>> {
        absl::StatusOr<HtbClassReading> reading = ParseHtbClass(payload);
        if (!reading.ok()) return reading.status();
        if (reading->htb.id == 0 || reading->htb.link != link) return std::nullopt;
        return *reading;
      });
}

}  // namespace spoke::netlink
