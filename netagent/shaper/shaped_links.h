// The filters of shaped pods' links, which lead their packets to the queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/socket.h"
#include "netagent/bpf/programs.h"

namespace spoke::netagent {

// Not thread-safe. What the kernel has is read once, and then known; after an error Read() is due.
// Errors: as the kernel says. Links that are gone, or are going, are passed over.
class ShapedLinks {
 public:
  struct Ends {
    int32_t from_pods = 0;  // Index of the device by way of which goes what comes from pods,
    int32_t to_pods = 0;    // and of the other one.
    bool operator==(const Ends&) const = default;
  };

  // Looks at pods' links and at `also`. Those that have exactly the filters of these programs, to
  // these devices, need nothing. `programs` may be null: then none has.
  absl::Status Read(netlink::Socket& socket, const Programs* programs, const Ends& ends,
                    const std::set<uint32_t>& also);

  // Lets exactly these links have the filters. How many did not have them, or not those alone.
  absl::StatusOr<size_t> Set(netlink::Socket& socket, const Programs& programs, const Ends& ends,
                             const std::set<uint32_t>& wanted);

  // Takes the filters off all links.
  absl::Status Clear(netlink::Socket& socket);

 private:
  std::set<uint32_t> whole_;
  std::set<uint32_t> others_;  // Have some, or other programs'.
  std::set<uint32_t> gone_;    // Of those that were looked at.
};

}  // namespace spoke::netagent
