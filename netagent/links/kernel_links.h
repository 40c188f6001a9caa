// Links over rtnetlink: what each promise of links.h is to the kernel.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "lib/netns/netns.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"
#include "netagent/links/deferred_deletion.h"
#include "netagent/links/fault_points.h"
#include "netagent/links/link_requests.h"
#include "netagent/links/links.h"
#include "netagent/links/pod_watch.h"

namespace spoke::netagent {

// Works in the network namespace it was made in, its node's, whichever the calling thread is in
// later. Not thread-safe. Needs CAP_NET_ADMIN there and in the pods' namespaces, and CAP_SYS_ADMIN
// to enter those; with CAP_NET_BROADCAST it hears of changes in them as well.
//
// A link is made in two sends: one in the pod's namespace, which makes the pair, and one in the
// node's, which take some 0.5 ms. It is taken down in one send of 0.1 ms; the 20 ms that the kernel
// needs to unregister a link are the DeferredDeletion's. Read() takes seven or eight dumps; with
// 500 pods some 5 ms. ReadPod() takes some 0.2 ms.
class KernelLinks final : public Links {
 public:
  struct Settings {
    telemetry::Log* log = nullptr;  // Borrowed; may be null.
    FaultPoint fault_point = {};
    std::string sysctl_root = "/proc/sys";  // The root of sysctls; see SysctlRoot().
  };
  // Makes one for the calling thread's network namespace. Unregisters what a dead agent had taken
  // down. Errors: kUnavailable (try again); kPermissionDenied; what errno says.
  static absl::StatusOr<std::unique_ptr<KernelLinks>> Create(Settings settings);
  static absl::StatusOr<std::unique_ptr<KernelLinks>> Create() { return Create(Settings()); }

  absl::StatusOr<std::map<std::string, HostSide>> Read() override;
  absl::StatusOr<PodSide> ReadPod(const AttachSpec& spec, int pod_netns) override;
  PodChanges TakePodChanges() override;
  uint32_t IndexOf(const std::string& host_link) const override;
  HostSide Recall(const std::string& host_link) const override;
  absl::Status Apply(const AttachSpec& spec, const LinkOperations& plan,
                     std::optional<int> pod_netns) override;
  absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) override;
  absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& nic) override;
  absl::StatusOr<Nic> ReadNic(const std::string& name) override;

  // Waits until every link that was taken down is unregistered. Errors: kUnavailable (try again).
  absl::Status FinishDetaching() { return deferred_deletion_->FinishAll(); }

 private:
  // A pod whose namespace is known to be the right one.
  struct Pod {
    netlink::Socket socket;
    netlink::LinkState link;
  };

  KernelLinks(Settings settings, netns::Netns node, netlink::Socket socket,
              std::unique_ptr<DeferredDeletion> deferred_deletion);

  static absl::StatusOr<netlink::Socket> OpenSocketIn(const netns::Netns& netns);

  // These do Apply() for the three kinds of plan.
  absl::Status Make(const AttachSpec& spec, const LinkOperations& plan, int pod_netns);
  absl::Status TakeDown(const std::string& host_link, const LinkOperations& plan);
  absl::Status Mend(const AttachSpec& spec, const LinkOperations& plan,
                    std::optional<int> pod_netns);

  // Gives the pod's namespace a number in the node's that is lower than all others' of pods.
  void NumberPod(const netns::Netns& pod);
  // Does Make() when nothing deferred is in its way.
  absl::Status Build(const AttachSpec& spec, const LinkOperations& plan, const LinkEnds& ends,
                     const netns::Netns& pod);
  // Takes back what there is of a link that failed half-way.
  absl::Status Undo(const AttachSpec& spec, const LinkEnds& ends, netlink::Socket& pod_socket);
  // Takes the link out of use with all that is there for it, into `group`. OK when it is done;
  // `left` then says what was refused beside the link itself.
  absl::Status Retire(const std::string& host_link, const LinkOperations& plan, uint32_t group,
                      absl::Status& left);
  // Writes RouterSettingOf(spec) to the host link's file below /proc/sys.
  absl::Status IgnoreRouters(const AttachSpec& spec);
  absl::Status MendOne(const AttachSpec& spec, const LinkOperation& operation, const LinkEnds& ends,
                       netlink::Socket& socket);

  absl::StatusOr<netlink::LinkState> FindHostLink(const std::string& name);
  absl::StatusOr<Pod> EnterPod(const AttachSpec& spec, const netlink::LinkState& host,
                               int pod_netns);
  // Reads our rules, told apart by whose address they are for.
  absl::Status ReadRules(ip::Family family, std::map<std::string, HostSide>& sides);
  std::vector<ip::Family> Families() const;
  // Takes up what an earlier agent attached, and removes source rules that nobody has any more.
  absl::Status TakeStock();
  // Whether a link has the address; `but_by`: whether another than this one has it.
  bool IsHeld(const ip::Address& address, const std::string& but_by = {}) const;
  // Requests that remove the source rules that the spec's addresses have and it does not want.
  std::vector<netlink::Request> DeletionsOfOtherRules(const AttachSpec& spec) const;

  const Settings settings_;
  const netns::Netns node_;
  netlink::Socket socket_;  // Works in the node's namespace.
  const std::unique_ptr<DeferredDeletion> deferred_deletion_;
  const bool has_ipv6_;  // Whether the kernel speaks it at all.
  uint32_t next_index_;
  int32_t next_pod_number_;
  // What TakePodChanges() opens at its first call, if it can.
  std::optional<PodWatch> pod_watch_;
  bool pod_watch_tried_ = false;
  // The index and addresses of each host link, those of earlier agents' links included.
  struct Attached {
    int32_t index = 0;
    std::vector<ip::Address> addresses;
  };
  std::map<std::string, Attached> attached_;
  // The source rules of ours that the kernel has.
  std::map<ip::Address, uint32_t> source_tables_;
};

// Opens the network namespace at `path` for Links, which makes sure that it is the right one.
// Errors: those of netns::Netns::Open().
absl::StatusOr<os::UniqueFd> OpenPodNetns(const std::string& path);

// Puts the kernel's refusal in the words of links.h: any code except those that are promised (by
// default those of the calls that read a link) becomes kInternal.
absl::Status Narrow(const absl::Status& status,
                    std::initializer_list<absl::StatusCode> promised = {
                        absl::StatusCode::kNotFound, absl::StatusCode::kFailedPrecondition,
                        absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnavailable});

}  // namespace spoke::netagent
