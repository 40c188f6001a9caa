// Router over rtnetlink: what each promise of router.h is to the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/route.h"
#include "lib/netlink/socket.h"
#include "lib/netns/netns.h"
#include "lib/telemetry/log.h"
#include "netagent/kernel/attach_batches.h"
#include "netagent/kernel/fault_points.h"
#include "netagent/kernel/graveyard.h"
#include "netagent/kernel/router.h"

namespace spoke::netagent {

// Works in the network namespace it was made in, its node's, whichever the calling thread is in
// later. Not thread-safe. Needs CAP_NET_ADMIN there and in the pods' namespaces, and CAP_SYS_ADMIN
// to enter those.
//
// Attach() takes two sends: one in the pod's namespace, which makes the pair, and one in the
// node's. Some 0.5 ms. Detach() takes one of 0.1 ms; the 20 ms that the kernel needs to unregister
// a link are the Graveyard's.
class NetlinkRouter final : public Router {
 public:
  struct Settings {
    telemetry::Log* log = nullptr;  // Borrowed; may be null.
    FaultPoint fault_point = {};
  };
  // For the calling thread's network namespace. Unregisters what an agent that died had detached.
  // Errors: kUnavailable (try again); kPermissionDenied; as errno says.
  static absl::StatusOr<std::unique_ptr<NetlinkRouter>> Create(Settings settings);
  static absl::StatusOr<std::unique_ptr<NetlinkRouter>> Create() { return Create(Settings()); }

  absl::Status Attach(const AttachSpec& spec, int pod_netns) override;
  absl::Status Detach(const std::string& host_link) override;
  absl::Status FinishDetaching() override;
  absl::StatusOr<std::vector<AttachedLink>> ListAttached() override;
  absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) override;
  absl::StatusOr<Nic> ReadNic(const std::string& name) override;

 private:
  NetlinkRouter(Settings settings, netns::Netns node, netlink::Socket socket,
                std::unique_ptr<Graveyard> graveyard);

  AttachIndexes NextIndexes();
  // Attach() with nothing buried in its way.
  absl::Status Build(const AttachSpec& spec, const netns::Netns& pod);
  // Our routes of both families, in the main table.
  absl::StatusOr<std::vector<netlink::Route>> DumpOurRoutes();

  const Settings settings_;
  const netns::Netns node_;
  netlink::Socket socket_;  // In the node's namespace.
  const std::unique_ptr<Graveyard> graveyard_;
  const bool has_ipv6_;  // The kernel speaks it at all.
  uint32_t next_index_;
  // What each host link was attached with, those of earlier agents included.
  std::map<std::string, std::vector<ip::Address>> attached_;
};

}  // namespace spoke::netagent
