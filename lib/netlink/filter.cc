#include "lib/netlink/filter.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>

#include "fmt/core.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/message.h"

namespace spoke::netlink {
namespace {

constexpr uint32_t kHandle = 1;  // Of the one filter under its priority.
constexpr uint32_t kPriorityShift = 16;

absl::Status Malformed() { return absl::DataLossError("malformed netlink filter message"); }

uint32_t ParentOf(Direction direction) {
  return TC_H_MAKE(TC_H_CLSACT,
                   direction == Direction::kIngress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

tcmsg Fixed(int32_t link, uint32_t parent, uint16_t priority) {
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = link;
  fixed.tcm_parent = parent;
  fixed.tcm_handle = kHandle;
  fixed.tcm_info = (uint32_t{priority} << kPriorityShift) | htons(ETH_P_ALL);
  return fixed;
}

}  // namespace

absl::StatusOr<BpfFilter> ParseBpfFilter(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<tcmsg>(payload);
  if (!fixed) return Malformed();
  BpfFilter filter{.link = fixed->tcm_ifindex,
                   .priority = static_cast<uint16_t>(fixed->tcm_info >> kPriorityShift),
                   .name = {},
                   .program_id = 0};
  bool is_bpf = false;
  std::span<const uint8_t> options;
  AttributeReader reader(payload, sizeof(tcmsg));
  while (const auto attribute = reader.Next()) {
    if (attribute->type == TCA_KIND) is_bpf = attribute->Text() == "bpf";
    if (attribute->type == TCA_OPTIONS) options = attribute->payload;
  }
  if (reader.malformed()) return Malformed();
  if (!is_bpf) return filter;
  AttributeReader inner(options);
  while (const auto attribute = inner.Next()) {
    if (attribute->type == TCA_BPF_NAME) filter.name = attribute->Text();
    if (attribute->type == TCA_BPF_ID) filter.program_id = attribute->U32().value_or(0);
  }
  if (inner.malformed()) return Malformed();
  return filter;
}

Request AddClsact(int32_t link) {
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = link;
  fixed.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
  fixed.tcm_parent = TC_H_CLSACT;
  Request request(fmt::format("make room for filters on link {}", link), RTM_NEWQDISC,
                  NLM_F_CREATE | NLM_F_EXCL, fixed);
  request.PutText(TCA_KIND, "clsact").Tolerate(EEXIST);
  return request;
}

Request SetBpfFilter(const BpfFilter& filter, Direction direction, int program) {
  Request request(fmt::format("put program {} onto link {}", filter.name, filter.link),
                  RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE,
                  Fixed(filter.link, ParentOf(direction), filter.priority));
  request.PutText(TCA_KIND, "bpf")
      .BeginNest(TCA_OPTIONS)
      .PutU32(TCA_BPF_FD, static_cast<uint32_t>(program))
      .PutText(TCA_BPF_NAME, filter.name)
      .PutU32(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT)
      .EndNest();
  return request;
}

Request DeleteBpfFilter(int32_t link, uint16_t priority, Direction direction) {
  Request request(fmt::format("take the program of priority {} off link {}", priority, link),
                  RTM_DELTFILTER, 0, Fixed(link, ParentOf(direction), priority));
  request.PutText(TCA_KIND, "bpf").Tolerate(ENOENT);
  return request;
}

absl::StatusOr<std::vector<BpfFilter>> DumpBpfFilters(Socket& socket, int32_t link,
                                                      Direction direction) {
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = link;
  fixed.tcm_parent = ParentOf(direction);
  const Request request(fmt::format("list filters of link {}", link), RTM_GETTFILTER, 0, fixed);
  return DumpAs<BpfFilter>(
      socket, request, RTM_NEWTFILTER,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<BpfFilter>> {
        absl::StatusOr<BpfFilter> filter = ParseBpfFilter(payload);
        if (!filter.ok()) return filter.status();
        // A program's first message has no id: it describes the priority, not the filter.
        if (filter->link != link || filter->program_id == 0) return std::nullopt;
        return *std::move(filter);
      });
}

}  // namespace spoke::netlink
