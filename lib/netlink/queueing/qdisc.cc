#include "lib/netlink/queueing/qdisc.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "fmt/core.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {
namespace {

constexpr uint32_t kMaxRate32 = std::numeric_limits<uint32_t>::max();

absl::Status Malformed() { return absl::DataLossError("malformed netlink qdisc message"); }

std::optional<TokenBucket> ReadTokenBucket(std::span<const uint8_t> options) {
  AttributeTable<TCA_TBF_RATE64> table(options);
  tc_tbf_qopt parameters{};
  table.Read(TCA_TBF_PARMS, parameters);
  TokenBucket bucket{.rate = parameters.rate.rate, .burst = 0, .limit = parameters.limit};
  table.Read(TCA_TBF_RATE64, bucket.rate);
  if (table.malformed()) return std::nullopt;
  bucket.burst = BytesOf(parameters.buffer, bucket.rate);
  return bucket;
}

tcmsg Fixed(int32_t link) {
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = link;
  return fixed;
}

}  // namespace

absl::StatusOr<Qdisc> ParseQdisc(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<tcmsg>(payload);
  const AttributeTable<TCA_OPTIONS> table(AttributeReader(payload, sizeof(tcmsg)));
  if (!fixed || table.malformed()) return Malformed();
  Qdisc qdisc{.link = fixed->tcm_ifindex,
              .handle = fixed->tcm_handle,
              .parent = fixed->tcm_parent,
              .kind = std::string(table[TCA_KIND].Text()),
              .token_bucket = {},
              .fifo_limit = {}};
  const std::span<const uint8_t> options = table[TCA_OPTIONS].payload;
  if (qdisc.kind == "tbf") {
    qdisc.token_bucket = ReadTokenBucket(options);
    if (!qdisc.token_bucket) return Malformed();
  }
  if (qdisc.kind == "bfifo") {
    const auto parameters = ReadStruct<tc_fifo_qopt>(options);
    if (!parameters) return Malformed();
    qdisc.fifo_limit = parameters->limit;
  }
  return qdisc;
}

Request AddTokenBucket(int32_t link, uint32_t handle, const TokenBucket& bucket) {
  tcmsg fixed = Fixed(link);
  fixed.tcm_handle = handle;
  fixed.tcm_parent = TC_H_ROOT;
  tc_tbf_qopt parameters{};
  const bool wide = bucket.rate >= kMaxRate32;
  parameters.rate.rate = wide ? kMaxRate32 : static_cast<uint32_t>(bucket.rate);
  // With a link layer the kernel computes what a packet costs, and wants no table of rates.
  parameters.rate.linklayer = TC_LINKLAYER_ETHERNET;
  parameters.peakrate.linklayer = TC_LINKLAYER_ETHERNET;
  parameters.limit = bucket.limit;
  Request request(fmt::format("limit link {} to {} bytes/s", link, bucket.rate), RTM_NEWQDISC,
                  NLM_F_CREATE | NLM_F_EXCL, fixed);
  request.PutText(TCA_KIND, "tbf").BeginNest(TCA_OPTIONS).PutValue(TCA_TBF_PARMS, parameters);
  if (wide) request.PutValue(TCA_TBF_RATE64, bucket.rate);
  request.PutU32(TCA_TBF_BURST, bucket.burst).EndNest();
  return request;
}

Request SetByteFifo(int32_t link, uint32_t parent, uint32_t limit) {
  tcmsg fixed = Fixed(link);
  fixed.tcm_parent = parent;
  tc_fifo_qopt parameters{};
  parameters.limit = limit;
  Request request(fmt::format("let {} bytes wait in class {:x}:{:x} of link {}", limit,
                              TC_H_MAJ(parent) >> 16U, TC_H_MIN(parent), link),
                  RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, fixed);
  request.PutText(TCA_KIND, "bfifo").PutValue(TCA_OPTIONS, parameters);
  return request;
}

Request DeleteRootQdisc(int32_t link, uint32_t handle) {
  tcmsg fixed = Fixed(link);
  fixed.tcm_handle = handle;
  fixed.tcm_parent = TC_H_ROOT;
  Request request(fmt::format("delete the root queue of link {}", link), RTM_DELQDISC, 0, fixed);
  request.Tolerate(ENOENT);
  return request;
}

absl::StatusOr<std::vector<Qdisc>> DumpQdiscs(Socket& socket, int32_t link) {
  const Request request("list qdiscs", RTM_GETQDISC, 0, Fixed(link));
  return DumpAs<Qdisc>(
      socket, request, RTM_NEWQDISC,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<Qdisc>> {
        absl::StatusOr<Qdisc> qdisc = ParseQdisc(payload);
        if (!qdisc.ok()) return qdisc.status();
        if (link != 0 && qdisc->link != link) return std::nullopt;
        return *std::move(qdisc);
      });
}

}  // namespace spoke::netlink
