#include "netagent/shaper/shaped_links.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "lib/base/status.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/filter.h"
#include "lib/netlink/link.h"
#include "netagent/core/claims.h"
#include "netagent/shaper/queue_device.h"
#include "netagent/shaper/shape_programs.h"

namespace spoke::netagent {
namespace {

using netlink::Direction;

// What one hook of a link has.
struct Hook {
  bool has_any = false;
  bool is_whole = false;
};

struct WantedHook {
  uint32_t shape = 0;   // Id of the program.
  uint32_t divert = 0;  // The same.
  int32_t to = 0;       // Index of the device.
};

absl::StatusOr<Hook> ReadHook(netlink::Socket& socket, uint32_t link, Direction direction,
                              const WantedHook& wanted) {
  const auto filters = netlink::DumpBpfFilters(socket, static_cast<int32_t>(link), direction);
  // Gone meanwhile, or without a place for filters.
  if (absl::IsNotFound(filters.status()) || absl::IsInvalidArgument(filters.status())) {
    return Hook{};
  }
  if (!filters.ok()) return filters.status();
  bool shapes = false;
  bool diverts = false;
  size_t ours = 0;
  for (const netlink::BpfFilter& filter : *filters) {
    const bool is_shape = filter.priority == claims::kShapePriority;
    const bool is_divert = filter.priority == claims::kDivertPriority;
    if (!is_shape && !is_divert) continue;
    ++ours;
    shapes |= is_shape && filter.direct && filter.program_id == wanted.shape;
    diverts |= is_divert && !filter.direct && filter.program_id == wanted.divert &&
               filter.redirect_to == wanted.to;
  }
  return Hook{.has_any = ours != 0, .is_whole = shapes && diverts && ours == 2};
}

void AppendPut(uint32_t link, const Programs& programs, const ShapedLinks::Ends& ends,
               std::vector<netlink::Request>& requests) {
  const auto index = static_cast<int32_t>(link);
  const auto put = [&](netlink::Request request) {
    // The link is gone, or its filters' place is going with it.
    requests.push_back(std::move(request.Tolerate(ENODEV).Tolerate(EINVAL)));
  };
  put(netlink::AddClsact(index));
  for (const Direction direction : {Direction::kIngress, Direction::kEgress}) {
    // What comes in by the node's end is what the pod sends.
    const bool from_pod = direction == Direction::kIngress;
    const char* const shape = from_pod ? kShapeOut : kShapeIn;
    const int32_t to = from_pod ? ends.from_pods : ends.to_pods;
    // In order: each time that the first filter of a hook becomes another one, the kernel waits.
    put(netlink::SetBpfFilter({.link = index, .priority = claims::kShapePriority, .name = shape},
                              direction, programs.program(shape)));
    put(netlink::SetClassifier({.link = index,
                                .priority = claims::kDivertPriority,
                                .name = kDivert,
                                .program_id = 0,
                                .redirect_to = to},
                               netlink::HookOf(direction), programs.program(kDivert)));
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

absl::Status ShapedLinks::Read(netlink::Socket& socket, const Programs* programs, const Ends& ends,
                               const std::set<uint32_t>& also) {
  whole_.clear();
  others_.clear();
  gone_ = also;
  WantedHook ingress{.to = ends.from_pods};
  WantedHook egress{.to = ends.to_pods};
  if (programs != nullptr) {
    ingress.divert = egress.divert = programs->program_id(kDivert);
    ingress.shape = programs->program_id(kShapeOut);
    egress.shape = programs->program_id(kShapeIn);
  }
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket, ""));
  for (const netlink::Link& link : links) {
    const auto index = static_cast<uint32_t>(link.index);
    gone_.erase(index);
    if (link.name.rfind(claims::kLinkPrefix, 0) != 0 && also.count(index) == 0) continue;
    ASSIGN_OR_RETURN(const Hook in, ReadHook(socket, index, Direction::kIngress, ingress));
    ASSIGN_OR_RETURN(const Hook out, ReadHook(socket, index, Direction::kEgress, egress));
    if (in.is_whole && out.is_whole) {
      whole_.insert(index);
    } else if (in.has_any || out.has_any) {
      others_.insert(index);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> ShapedLinks::Set(netlink::Socket& socket, const Programs& programs,
                                        const Ends& ends, const std::set<uint32_t>& wanted) {
  std::vector<netlink::Request> requests;
  size_t changed = 0;
  for (const uint32_t link : wanted) {
    if (whole_.count(link) != 0 || gone_.count(link) != 0) continue;
    AppendPut(link, programs, ends, requests);
    ++changed;
  }
  for (const auto* list : {&whole_, &others_}) {
    for (const uint32_t link : *list) {
      if (wanted.count(link) != 0) continue;
      AppendTakeOff(link, requests);
      ++changed;
    }
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
  for (const auto* list : {&whole_, &others_}) {
    for (const uint32_t link : *list) AppendTakeOff(link, requests);
  }
  RETURN_IF_ERROR(SendAll(socket, requests));
  *this = {};
  return absl::OkStatus();
}

}  // namespace spoke::netagent
