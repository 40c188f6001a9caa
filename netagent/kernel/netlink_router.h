// Router over rtnetlink: what each promise of router.h is to the kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/route.h"
#include "lib/netlink/socket.h"
#include "lib/netns/netns.h"
#include "netagent/kernel/attach_batches.h"
#include "netagent/kernel/router.h"

namespace spoke::netagent {

// Works in the network namespace it was made in, its node's, whichever the calling thread is in
// later. Not thread-safe. Needs CAP_NET_ADMIN there and in the pods' namespaces, and CAP_SYS_ADMIN
// to enter those.
//
// Attach() takes two sends: one in the pod's namespace, which makes the pair, and one in the
// node's. Some 0.5 ms. Detach() takes some 20 ms, nearly all of it waiting: the kernel lets every
// CPU forget the device before it answers.
class NetlinkRouter final : public Router {
 public:
  // For the calling thread's network namespace. Errors: kPermissionDenied; as errno says.
  static absl::StatusOr<std::unique_ptr<NetlinkRouter>> Create();

  absl::Status Attach(const AttachSpec& spec, int pod_netns) override;
  absl::Status Detach(const std::string& host_link) override;
  absl::StatusOr<std::vector<AttachedLink>> ListAttached() override;
  absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) override;
  absl::StatusOr<Nic> ReadNic(const std::string& name) override;

 private:
  NetlinkRouter(netns::Netns node, netlink::Socket socket, bool has_ipv6);

  AttachIndexes NextIndexes();
  // Our routes of both families, in the main table.
  absl::StatusOr<std::vector<netlink::Route>> DumpOurRoutes();

  const netns::Netns node_;
  netlink::Socket socket_;  // In the node's namespace.
  const bool has_ipv6_;     // The kernel speaks it at all.
  uint32_t next_index_;
};

}  // namespace spoke::netagent
