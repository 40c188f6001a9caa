#include "netagent/links/pod_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"
#include "lib/netns/netns.h"

namespace spoke::netagent {
namespace {

// What PodSide is made of. A qdisc or a setting of a pod's is its own affair.
constexpr std::array kGroups = {RTNLGRP_LINK,        RTNLGRP_NEIGH,      RTNLGRP_IPV4_IFADDR,
                                RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
                                RTNLGRP_IPV4_RULE,   RTNLGRP_IPV6_RULE};
// Some 1,000 notifications: the starts of 40 pods, by which there is always something to look at.
constexpr int kRoomBytes = 2 << 20;
constexpr int kLoopbackIndex = 1;

absl::Status SetOption(int fd, int option, int value, const char* what) {
  if (::setsockopt(fd, SOL_NETLINK, option, &value, sizeof(value)) == 0) return absl::OkStatus();
  return base::ErrnoToStatus(errno, what);
}

absl::StatusOr<os::UniqueFd> OpenSocket() {
  os::UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open a netlink socket for changes in pods");
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kRoomBytes, sizeof(kRoomBytes)) < 0) {
    return base::ErrnoToStatus(errno, "make room for changes in pods");
  }
  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), sizeof(self)) < 0) {
    return base::ErrnoToStatus(errno, "bind a netlink socket for changes in pods");
  }
  RETURN_IF_ERROR(SetOption(fd.get(), NETLINK_LISTEN_ALL_NSID, 1,
                            "listen to pods' network namespaces, which takes CAP_NET_BROADCAST"));
  for (const int group : kGroups) {
    RETURN_IF_ERROR(
        SetOption(fd.get(), NETLINK_ADD_MEMBERSHIP, group, "listen to changes in pods"));
  }
  return fd;
}

// The number of the namespace that a notification came from; nullopt: this one.
std::optional<int32_t> NumberOf(msghdr& header) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_NETLINK || part->cmsg_type != NETLINK_LISTEN_ALL_NSID) continue;
    int32_t number = 0;
    std::memcpy(&number, CMSG_DATA(part), sizeof(number));
    return number;
  }
  return std::nullopt;
}

// Changes something in a namespace made for it, and returns the number that it had.
absl::StatusOr<int32_t> ChangeElsewhere() {
  ASSIGN_OR_RETURN(const netns::Netns elsewhere, netns::Netns::Create());
  ASSIGN_OR_RETURN(netlink::Socket here, netlink::Socket::Open());
  const netlink::Request number = netlink::NumberNetns(elsewhere.fd());
  RETURN_IF_ERROR(netlink::SendBatch(here, std::span(&number, 1)).status);
  RETURN_IF_ERROR(elsewhere.Run([]() -> absl::Status {
    ASSIGN_OR_RETURN(netlink::Socket there, netlink::Socket::Open());
    const netlink::Request up = netlink::SetLinkUp(kLoopbackIndex, true);
    return netlink::SendBatch(there, std::span(&up, 1)).status;
  }));
  ASSIGN_OR_RETURN(const std::optional<int32_t> given, netlink::NetnsNumber(here, elsewhere.fd()));
  if (!given) return absl::UnavailableError("the kernel numbered no network namespace");
  return *given;
}

}  // namespace

absl::StatusOr<PodWatch> PodWatch::Open() {
  ASSIGN_OR_RETURN(os::UniqueFd fd, OpenSocket());
  PodWatch watch(std::move(fd));
  ASSIGN_OR_RETURN(const int32_t number, ChangeElsewhere());
  // The kernel has told of a change before it acknowledges it.
  if (watch.Take().netns.contains(number)) return watch;
  return absl::UnavailableError(
      "the kernel tells nothing of what changes in another network namespace");
}

PodChanges PodWatch::Take() {
  PodChanges changes;
  std::array<uint8_t, sizeof(nlmsghdr)> payload{};
  alignas(cmsghdr) std::array<uint8_t, 2 * CMSG_SPACE(sizeof(int32_t))> control{};
  for (int told = 0; told < kMaxTold; ++told) {
    iovec part{payload.data(), payload.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd_.get(), &header, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return changes;
    // What did not fit is lost, and said so once (ENOBUFS, netlink(7)).
    if (got < 0) {
      changes.all = true;
      if (errno != ENOBUFS) return changes;
      continue;
    }
    if (const auto number = NumberOf(header)) changes.netns.insert(*number);
  }
  changes.all = true;
  return changes;
}

}  // namespace spoke::netagent
