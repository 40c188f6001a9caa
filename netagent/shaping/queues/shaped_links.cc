#include "netagent/shaping/queues/shaped_links.h"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/queueing/filter.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/shaping/queues/queue_device.h"
#include "netagent/shaping/queues/shape_programs.h"

namespace spoke::netagent {
namespace {

using netlink::Direction;

constexpr std::array kKinds = {LinkKind::kPod, LinkKind::kOuter};
// The prefix length from which on a route is no default route: a tunnel takes all by two routes of
// half the addresses each, so that the default route stays.
constexpr int kShortPrefix = 8;

// The filters of a hook of a link of ours.
struct HookPlan {
  Direction direction = Direction::kIngress;
  const char* shape = nullptr;
  int32_t to = 0;  // The index of the device that is led to; 0: there is none.
};

// Returns the plans in order: each time that the first filter of a hook becomes another one, the
// kernel waits.
std::array<HookPlan, 2> HooksOf(LinkKind kind, const ShapedLinks::Ends& ends) {
  if (kind == LinkKind::kOuter) {
    return {HookPlan{Direction::kIngress, kEntersNode, 0},
            HookPlan{Direction::kEgress, kLeavesNode, ends.from_pods}};
  }
  // What comes in by the node's end is what the pod sends.
  return {HookPlan{Direction::kIngress, kShapeOut, ends.from_pods},
          HookPlan{Direction::kEgress, kShapeIn, ends.to_pods}};
}

// The filters of one hook that are ours.
struct Hook {
  std::vector<netlink::BpfFilter> filters;

  bool Is(const HookPlan& plan, const Programs& programs) const {
    const size_t expected = plan.to == 0 ? 1 : 2;
    return filters.size() == expected &&
           std::all_of(filters.begin(), filters.end(), [&](const netlink::BpfFilter& filter) {
             if (filter.priority == claims::kShapePriority) {
               return filter.direct && filter.program_id == programs.program_id(plan.shape);
             }
             return plan.to != 0 && !filter.direct &&
                    filter.program_id == programs.program_id(kDivert) &&
                    filter.redirect_to == plan.to;
           });
  }
};

absl::StatusOr<Hook> ReadHook(netlink::Socket& socket, uint32_t link, Direction direction) {
  auto filters =
      netlink::DumpFilters(socket, static_cast<int32_t>(link), netlink::HookOf(direction));
  // The link has gone meanwhile, or has no place for filters.
  if (absl::IsNotFound(filters.status()) || absl::IsInvalidArgument(filters.status())) {
    return Hook{};
  }
  if (!filters.ok()) return filters.status();
  std::erase_if(*filters, [](const netlink::BpfFilter& filter) {
    const bool is_ours =
        filter.priority == claims::kShapePriority || filter.priority == claims::kDivertPriority;
    return !is_ours || !filter.name.starts_with("spoke_");
  });
  return Hook{*std::move(filters)};
}

void AppendPut(uint32_t link, LinkKind kind, const Programs& programs,
               const ShapedLinks::Ends& ends, std::vector<netlink::Request>& requests) {
  const auto index = static_cast<int32_t>(link);
  const auto put = [&](netlink::Request request) {
    // The link is gone, or its filters' place is going with it.
    requests.push_back(std::move(request.Tolerate(ENODEV).Tolerate(EINVAL)));
  };
  put(netlink::AddClsact(index));
  for (const HookPlan& hook : HooksOf(kind, ends)) {
    const uint32_t parent = netlink::HookOf(hook.direction);
    put(netlink::SetBpfFilter(
        {.link = index, .priority = claims::kShapePriority, .name = hook.shape, .direct = true},
        parent, programs.program(hook.shape)));
    if (hook.to == 0) {
      put(netlink::DeleteBpfFilter(index, claims::kDivertPriority, hook.direction));
      continue;
    }
    put(netlink::SetBpfFilter({.link = index,
                               .priority = claims::kDivertPriority,
                               .name = kDivert,
                               .program_id = 0,
                               .redirect_to = hook.to},
                              parent, programs.program(kDivert)));
  }
}

void AppendTakeOff(uint32_t link, std::vector<netlink::Request>& requests) {
  const auto index = static_cast<int32_t>(link);
  for (const Direction direction : {Direction::kIngress, Direction::kEgress}) {
    requests.push_back(netlink::DeleteBpfFilter(index, claims::kDivertPriority, direction));
    requests.push_back(netlink::DeleteBpfFilter(index, claims::kShapePriority, direction));
  }
}

}  // namespace

absl::StatusOr<std::set<uint32_t>> ReadOuterLinks(netlink::Socket& socket) {
  std::set<uint32_t> by_route;
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const auto routes = netlink::DumpAllRoutes(socket, family);
    // The kernel lacks IPv6.
    if (absl::IsUnimplemented(routes.status())) continue;
    if (!routes.ok()) return routes.status();
    for (const netlink::Route& route : *routes) {
      if (route.type != RTN_UNICAST || route.destination.length() >= kShortPrefix) continue;
      if (route.link > 0) by_route.insert(static_cast<uint32_t>(route.link));
    }
  }
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket, ""));
  std::set<uint32_t> outer;
  for (const netlink::Link& link : links) {
    const auto index = static_cast<uint32_t>(link.index);
    if (by_route.count(index) == 0 || link.name.starts_with(claims::kLinkPrefix)) continue;
    if (link.mac != ip::MacAddress{}) outer.insert(index);
  }
  return outer;
}

absl::Status ShapedLinks::Read(netlink::Socket& socket, const Programs* programs, const Ends& ends,
                               const std::set<uint32_t>& also) {
  whole_.clear();
  others_.clear();
  gone_ = also;
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket, ""));
  for (const netlink::Link& link : links) {
    const auto index = static_cast<uint32_t>(link.index);
    gone_.erase(index);
    // The filters of the queues' own devices are at a class's place, not at a hook.
    if (link.index == ends.from_pods || link.index == ends.to_pods) continue;
    ASSIGN_OR_RETURN(const Hook in, ReadHook(socket, index, Direction::kIngress));
    ASSIGN_OR_RETURN(const Hook out, ReadHook(socket, index, Direction::kEgress));
    if (in.filters.empty() && out.filters.empty()) continue;
    const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(), [&](LinkKind one) {
      const std::array<HookPlan, 2> hooks = HooksOf(one, ends);
      return programs != nullptr && in.Is(hooks[0], *programs) && out.Is(hooks[1], *programs);
    });
    if (kind != kKinds.end()) {
      whole_.emplace(index, *kind);
    } else {
      others_.insert(index);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> ShapedLinks::Set(netlink::Socket& socket, const Programs& programs,
                                        const Ends& ends, const Wanted& wanted) {
  std::vector<netlink::Request> requests;
  size_t changed = 0;
  for (const auto& [link, kind] : wanted) {
    const auto at = whole_.find(link);
    if ((at != whole_.end() && at->second == kind) || gone_.count(link) != 0) continue;
    AppendPut(link, kind, programs, ends, requests);
    ++changed;
  }
  std::set<uint32_t> old = others_;
  for (const auto& [link, kind] : whole_) old.insert(link);
  for (const uint32_t link : old) {
    if (wanted.count(link) != 0) continue;
    AppendTakeOff(link, requests);
    ++changed;
  }
  RETURN_IF_ERROR(SendAll(socket, requests));
  whole_ = wanted;
  others_.clear();
  // A link's index is never given to another one that comes later.
  for (auto at = gone_.begin(); at != gone_.end();) {
    whole_.erase(*at);
    at = wanted.count(*at) != 0 ? std::next(at) : gone_.erase(at);
  }
  return changed;
}

absl::Status ShapedLinks::Clear(netlink::Socket& socket) {
  std::vector<netlink::Request> requests;
  for (const auto& [link, kind] : whole_) AppendTakeOff(link, requests);
  for (const uint32_t link : others_) AppendTakeOff(link, requests);
  RETURN_IF_ERROR(SendAll(socket, requests));
  *this = {};
  return absl::OkStatus();
}

}  // namespace spoke::netagent
