// The filters of links that lead shaped pods' packets to the queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/socket.h"
#include "netagent/bpf/programs.h"

namespace spoke::netagent {

enum class LinkKind : uint8_t {
  kPod,    // The node's end of a pod's link.
  kOuter,  // Leads out of the node: packets have the far end's own address there.
};

// Returns the links by which a default route of any table leads, or one that is nearly that
// (shorter than /8), of both families: by index. Those without Ethernet headers are left out, and
// so are pods' links and routes with several next hops. Errors: those of netlink::Dump().
absl::StatusOr<std::set<uint32_t>> ReadOuterLinks(netlink::Socket& socket);

// Not thread-safe. What the kernel has is read once, and then known; after an error Read() is due.
// Errors are the kernel's. Links that are gone, or are going, are passed over.
class ShapedLinks {
 public:
  struct Ends {
    int32_t from_pods = 0;  // The index of the device by way of which goes what comes from pods.
    int32_t to_pods = 0;    // The index of the device by way of which goes what goes to pods.
    bool operator==(const Ends&) const = default;
  };
  using Wanted = std::map<uint32_t, LinkKind>;

  // Looks at all links. Those that have exactly the filters of one kind of link, of these programs
  // and to these devices, need nothing. `also` has the links that will be wanted. `programs` may be
  // null: then no link has them.
  absl::Status Read(netlink::Socket& socket, const Programs* programs, const Ends& ends,
                    const std::set<uint32_t>& also);

  // Lets exactly these links have the filters. Returns how many did not have them, or not those
  // alone.
  absl::StatusOr<size_t> Set(netlink::Socket& socket, const Programs& programs, const Ends& ends,
                             const Wanted& wanted);

  // Takes the filters off all links.
  absl::Status Clear(netlink::Socket& socket);

 private:
  Wanted whole_;
  std::set<uint32_t> others_;  // The links that have some of the filters, or other programs'.
  std::set<uint32_t> gone_;    // The links that have gone since they were looked at.
};

}  // namespace spoke::netagent
