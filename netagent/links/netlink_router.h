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
#include "netagent/links/attach_batches.h"
#include "netagent/links/deferred_deletion.h"
#include "netagent/links/fault_points.h"
#include "netagent/links/router.h"

namespace spoke::netagent {

// Works in the network namespace it was made in, its node's, whichever the calling thread is in
// later. Not thread-safe. Needs CAP_NET_ADMIN there and in the pods' namespaces, and CAP_SYS_ADMIN
// to enter those.
//
// Attach() takes two sends: one in the pod's namespace, which makes the pair, and one in the
// node's. Some 0.5 ms. Detach() takes one of 0.1 ms; the 20 ms that the kernel needs to unregister
// a link are the DeferredDeletion's.
class NetlinkRouter final : public Router {
 public:
  struct Settings {
    telemetry::Log* log = nullptr;  // Borrowed; may be null.
    FaultPoint fault_point = {};
    std::string sysctl_root = "/proc/sys";  // See SysctlRoot().
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
  absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& nic) override;
  absl::StatusOr<uint32_t> HostIndex(const std::string& host_link) override;
  absl::StatusOr<Nic> ReadNic(const std::string& name) override;

 private:
  NetlinkRouter(Settings settings, netns::Netns node, netlink::Socket socket,
                std::unique_ptr<DeferredDeletion> deferred_deletion);

  AttachIndexes NextIndexes();
  // Attach() with nothing deferred in its way.
  absl::Status Build(const AttachSpec& spec, const AttachIndexes& indexes, const netns::Netns& pod);
  // Takes the link out of use with all that is there for it, into `group`. OK when it is done;
  // `left` is then what was refused beside the link itself.
  absl::Status Retire(const std::string& host_link, uint32_t group, absl::Status& left);
  // Takes back what there is of an attachment that failed half-way.
  absl::Status Undo(const AttachSpec& spec, const AttachIndexes& indexes,
                    netlink::Socket& pod_socket);
  // Takes up what an earlier agent attached, and removes source rules that nobody has any more.
  absl::Status TakeStock();
  // Requests that remove the source rules of `addresses`, but for those `host_link` does not have
  // alone.
  std::vector<netlink::Request> RuleDeletions(const std::string& host_link,
                                              const std::vector<ip::Address>& addresses) const;
  // Whether an attachment has the address; `but_by`: another than this one.
  bool IsHeld(const ip::Address& address, const std::string& but_by = {}) const;
  // Requests that remove the source rules that the spec's addresses have and it does not want.
  std::vector<netlink::Request> DeletionsOfOtherRules(const AttachSpec& spec) const;
  // Our routes of both families, in the main table.
  absl::StatusOr<std::vector<netlink::Route>> DumpOurRoutes();

  const Settings settings_;
  const netns::Netns node_;
  netlink::Socket socket_;  // In the node's namespace.
  const std::unique_ptr<DeferredDeletion> deferred_deletion_;
  const bool has_ipv6_;  // The kernel speaks it at all.
  uint32_t next_index_;
  // What each host link was attached with, those of earlier agents included.
  struct Attached {
    int32_t index = 0;  // 0: not known, since an earlier agent attached it.
    std::vector<ip::Address> addresses;
  };
  std::map<std::string, Attached> attached_;
  // The source rules of ours that the kernel has.
  std::map<ip::Address, uint32_t> source_tables_;
};

}  // namespace spoke::netagent
