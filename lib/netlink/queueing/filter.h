// Filters that run a BPF program on a device's packets (tc-bpf(8)). All but DumpFilters() are
// pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

enum class Direction : uint8_t { kIngress, kEgress };

struct BpfFilter {
  int32_t link = 0;  // The device's index.
  uint16_t priority = 0;
  std::string name;
  uint32_t program_id = 0;
  // Whether the program decides by what it returns; else that says whether, or into which class, a
  // packet goes.
  bool direct = false;
  // The index of the device that packets which the program takes go out by instead (tc-mirred(8)).
  std::optional<int32_t> redirect_to;

  bool operator==(const BpfFilter&) const = default;
};

// Reads the payload of an RTM_NEWTFILTER message; the name is empty for a filter of another kind.
// Errors: kDataLoss (cut short, or a length that cannot be).
absl::StatusOr<BpfFilter> ParseBpfFilter(std::span<const uint8_t> payload);

// Returns where filters of a direction are: a parent, as the handle of a queue that has classes is
// one.
uint32_t HookOf(Direction direction);

// Adds the place where filters of either direction go. A device has one: kAlreadyExists is
// tolerated.
Request AddClsact(int32_t link);

// Deletes that place with all filters of either direction, whoever put them there. None is
// tolerated.
Request DeleteClsact(int32_t link);

// Puts the filter there, or in the place of the one that was there with the same priority.
// `program` is a descriptor. Where `filter.direct` is set the program itself decides what becomes
// of a packet; else it returns 0 for none of its own, -1 for one, or at a queue the id of the
// class.
Request SetBpfFilter(const BpfFilter& filter, uint32_t parent, int program);

// Deletes a filter. One that is not there, on a device without such filters or one that is gone, is
// tolerated.
Request DeleteBpfFilter(int32_t link, uint16_t priority, Direction direction);

// Returns all filters at one place of a device, of any kind: one that runs no program has no
// program id. Errors: as Dump().
absl::StatusOr<std::vector<BpfFilter>> DumpFilters(Socket& socket, int32_t link, uint32_t parent);

}  // namespace spoke::netlink
