// Inspector over rtnetlink: what each promise of inspector.h is to the kernel.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/link_state.h"
#include "lib/netlink/request.h"
#include "lib/netlink/route.h"
#include "lib/netlink/socket.h"
#include "lib/netns/netns.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/inspector.h"

namespace spoke::netagent {

// Works in the network namespace it was made in, its node's, whichever the calling thread is in
// later. Not thread-safe; shares nothing with a NetlinkRouter beside it. Needs what that one needs.
//
// ReadHostSides() takes seven or eight dumps; with 500 pods some 5 ms. ReadPodSide() takes some 0.2
// ms.
class NetlinkInspector final : public Inspector {
 public:
  // For the calling thread's network namespace. Errors: kPermissionDenied; as errno says.
  static absl::StatusOr<std::unique_ptr<NetlinkInspector>> Create();

  absl::StatusOr<std::map<std::string, HostSide>> ReadHostSides() override;
  absl::StatusOr<PodSide> ReadPodSide(const AttachSpec& spec, int pod_netns) override;
  absl::Status Mend(const AttachSpec& spec, const std::vector<Difference>& differences,
                    std::optional<int> pod_netns) override;

 private:
  // A pod that is known to be the one.
  struct Pod {
    netlink::Socket socket;
    netlink::LinkState link;
  };
  struct Sides {
    netlink::LinkState host;
    std::optional<Pod> pod;
  };

  NetlinkInspector(netns::Netns node, netlink::Socket socket, bool has_ipv6);

  std::vector<ip::Family> Families() const;
  absl::StatusOr<netlink::LinkState> FindHostLink(const std::string& name);
  absl::StatusOr<Pod> EnterPod(const AttachSpec& spec, const netlink::LinkState& host,
                               int pod_netns);
  absl::StatusOr<Sides> Enter(const AttachSpec& spec, std::optional<int> pod_netns);
  absl::Status MendOne(const AttachSpec& spec, const Difference& difference, Sides& sides);
  absl::Status MendHostMac(const AttachSpec& spec, const Sides& sides);
  // The rules of ours, told apart by whose address they are for.
  absl::Status ReadRules(ip::Family family, std::map<std::string, HostSide>& sides);
  absl::Status MendHostRules(const AttachSpec& spec, const ip::Address& address);
  absl::Status MendHostRoute(const ip::Address& address, int32_t link);

  const netns::Netns node_;
  netlink::Socket socket_;  // In the node's namespace.
  const bool has_ipv6_;     // The kernel speaks it at all.
};

// A descriptor of the network namespace at `path`, for an Inspector, which makes sure that it is
// the right one. Errors: as netns::Netns::Open().
absl::StatusOr<os::UniqueFd> OpenPodNetns(const std::string& path);

}  // namespace spoke::netagent
