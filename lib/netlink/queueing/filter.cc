#include "lib/netlink/queueing/filter.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <sys/socket.h>

#include <cerrno>

#include "fmt/core.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {
namespace {

constexpr uint32_t kHandle = 1;  // The handle of the one filter under its priority.
constexpr uint32_t kPriorityShift = 16;

absl::Status Malformed() { return absl::DataLossError("malformed netlink filter message"); }

tcmsg Fixed(int32_t link, uint32_t parent, uint16_t priority) {
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = link;
  fixed.tcm_parent = parent;
  fixed.tcm_handle = kHandle;
  fixed.tcm_info = (uint32_t{priority} << kPriorityShift) | htons(ETH_P_ALL);
  return fixed;
}

tcmsg ClsactOf(int32_t link) {
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = link;
  fixed.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
  fixed.tcm_parent = TC_H_CLSACT;
  return fixed;
}

// Reads what the first action is, if it sends packets out by another device. Returns false for
// malformed ones.
bool ReadAction(std::span<const uint8_t> actions, BpfFilter& filter) {
  constexpr size_t kFirst = 1;
  const AttributeTable<kFirst> list(actions);
  const AttributeTable<TCA_ACT_OPTIONS> action(list[kFirst].payload);
  if (list.malformed() || action.malformed()) return false;
  if (action[TCA_ACT_KIND].Text() != "mirred") return true;
  tc_mirred parameters{};
  AttributeTable<TCA_MIRRED_PARMS> table(action[TCA_ACT_OPTIONS].payload);
  table.Read(TCA_MIRRED_PARMS, parameters);
  if (parameters.eaction == TCA_EGRESS_REDIR) {
    filter.redirect_to = static_cast<int32_t>(parameters.ifindex);
  }
  return !table.malformed();
}

void PutRedirect(Request& request, int32_t link) {
  constexpr uint16_t kFirst = 1;
  tc_mirred parameters{};
  parameters.action = TC_ACT_STOLEN;
  parameters.eaction = TCA_EGRESS_REDIR;
  parameters.ifindex = static_cast<uint32_t>(link);
  request.BeginNest(TCA_BPF_ACT)
      .BeginNest(kFirst)
      .PutText(TCA_ACT_KIND, "mirred")
      .BeginNest(TCA_ACT_OPTIONS)
      .PutValue(TCA_MIRRED_PARMS, parameters)
      .EndNest()
      .EndNest()
      .EndNest();
}

}  // namespace

uint32_t HookOf(Direction direction) {
  return TC_H_MAKE(TC_H_CLSACT,
                   direction == Direction::kIngress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

absl::StatusOr<BpfFilter> ParseBpfFilter(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<tcmsg>(payload);
  const AttributeTable<TCA_OPTIONS> table(AttributeReader(payload, sizeof(tcmsg)));
  if (!fixed || table.malformed()) return Malformed();
  BpfFilter filter{.link = fixed->tcm_ifindex,
                   .priority = static_cast<uint16_t>(fixed->tcm_info >> kPriorityShift),
                   .name = {},
                   .program_id = 0,
                   .direct = false,
                   .redirect_to = {}};
  if (table[TCA_KIND].Text() != "bpf") return filter;
  uint32_t flags = 0;
  AttributeTable<TCA_BPF_ID> bpf(table[TCA_OPTIONS].payload);
  filter.name = bpf[TCA_BPF_NAME].Text();
  bpf.Read(TCA_BPF_ID, filter.program_id);
  bpf.Read(TCA_BPF_FLAGS, flags);
  filter.direct = (flags & TCA_BPF_FLAG_ACT_DIRECT) != 0;
  if (!ReadAction(bpf[TCA_BPF_ACT].payload, filter) || bpf.malformed()) return Malformed();
  return filter;
}

Request AddClsact(int32_t link) {
  Request request(fmt::format("make room for filters on link {}", link), RTM_NEWQDISC,
                  NLM_F_CREATE | NLM_F_EXCL, ClsactOf(link));
  request.PutText(TCA_KIND, "clsact").Tolerate(EEXIST);
  return request;
}

Request DeleteClsact(int32_t link) {
  Request request(fmt::format("delete all filters of link {}", link), RTM_DELQDISC, 0,
                  ClsactOf(link));
  request.PutText(TCA_KIND, "clsact").Tolerate(EINVAL).Tolerate(ENOENT);
  return request;
}

Request SetBpfFilter(const BpfFilter& filter, uint32_t parent, int program) {
  Request request(fmt::format("put program {} onto link {}", filter.name, filter.link),
                  RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE,
                  Fixed(filter.link, parent, filter.priority));
  request.PutText(TCA_KIND, "bpf")
      .BeginNest(TCA_OPTIONS)
      .PutU32(TCA_BPF_FD, static_cast<uint32_t>(program))
      .PutText(TCA_BPF_NAME, filter.name);
  if (filter.redirect_to) PutRedirect(request, *filter.redirect_to);
  if (filter.direct) request.PutU32(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
  request.EndNest();
  return request;
}

Request DeleteBpfFilter(int32_t link, uint16_t priority, Direction direction) {
  Request request(fmt::format("take the program of priority {} off link {}", priority, link),
                  RTM_DELTFILTER, 0, Fixed(link, HookOf(direction), priority));
  request.PutText(TCA_KIND, "bpf").Tolerate(ENOENT).Tolerate(ENODEV).Tolerate(EINVAL);
  return request;
}

absl::StatusOr<std::vector<BpfFilter>> DumpFilters(Socket& socket, int32_t link, uint32_t parent) {
  tcmsg of{};
  of.tcm_family = AF_UNSPEC;
  of.tcm_ifindex = link;
  of.tcm_parent = parent;
  const Request request(fmt::format("list filters of link {}", link), RTM_GETTFILTER, 0, of);
  return DumpAs<BpfFilter>(
      socket, request, RTM_NEWTFILTER,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<BpfFilter>> {
        absl::StatusOr<BpfFilter> filter = ParseBpfFilter(payload);
        if (!filter.ok()) return filter.status();
        const auto fixed = ReadStruct<tcmsg>(payload);
        // A first message without a handle describes the priority, not a filter.
        if (filter->link != link || !fixed || fixed->tcm_handle == 0) return std::nullopt;
        return *std::move(filter);
      });
}

}  // namespace spoke::netlink
