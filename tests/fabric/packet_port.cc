#include "tests/fabric/packet_port.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::fabric {
namespace {

// A device makes no frame longer than 64 KiB and its headers (GSO_LEGACY_MAX_SIZE).
constexpr size_t kMaxFrameBytes = (64UL << 10) + 256;
constexpr size_t kTagBytes = 4;
constexpr size_t kMacsBytes = 12;
// The room for a burst of 64 KiB segments while another process has the processor.
constexpr int kSocketBufferBytes = 16 << 20;

absl::Status SetOption(int fd, int level, int name, int value, const char* what) {
  if (::setsockopt(fd, level, name, &value, sizeof(value)) < 0) {
    return base::ErrnoToStatus(errno, what);
  }
  return absl::OkStatus();
}

absl::Status Configure(int fd) {
  RETURN_IF_ERROR(SetOption(fd, SOL_PACKET, PACKET_VNET_HDR, 1, "set PACKET_VNET_HDR"));
  RETURN_IF_ERROR(SetOption(fd, SOL_PACKET, PACKET_AUXDATA, 1, "set PACKET_AUXDATA"));
  RETURN_IF_ERROR(SetOption(fd, SOL_SOCKET, SO_RCVBUFFORCE, kSocketBufferBytes, "set SO_RCVBUF"));
  return SetOption(fd, SOL_SOCKET, SO_SNDBUFFORCE, kSocketBufferBytes, "set SO_SNDBUF");
}

struct VlanTag {
  uint16_t protocol = 0;
  uint16_t control = 0;
};

// The kernel takes the outer VLAN tag out of the frame and puts it here.
std::optional<VlanTag> TagOf(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) continue;
    tpacket_auxdata auxiliary{};
    std::memcpy(&auxiliary, CMSG_DATA(c), sizeof(auxiliary));
    if ((auxiliary.tp_status & TP_STATUS_VLAN_VALID) == 0) return std::nullopt;
    const bool named = (auxiliary.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
    return VlanTag{named ? auxiliary.tp_vlan_tpid : static_cast<uint16_t>(ETH_P_8021Q),
                   auxiliary.tp_vlan_tci};
  }
  return std::nullopt;
}

// Puts `tag` behind the MAC addresses of a frame that begins kTagBytes into `buffer`, so that it
// then begins at its start.
void PutTagBack(const VlanTag& tag, std::vector<uint8_t>& buffer) {
  std::memmove(buffer.data(), buffer.data() + kTagBytes, kMacsBytes);
  const uint16_t protocol = htons(tag.protocol);
  const uint16_t control = htons(tag.control);
  std::memcpy(buffer.data() + kMacsBytes, &protocol, sizeof(protocol));
  std::memcpy(buffer.data() + kMacsBytes + sizeof(protocol), &control, sizeof(control));
}

absl::Status IoError(int error, const std::string& what) {
  if (error == ENETDOWN || error == ENXIO) return absl::UnavailableError(what + ": device is down");
  if (error == ENOBUFS || error == EAGAIN) {
    return absl::ResourceExhaustedError(what + ": queue is full");
  }
  return absl::InternalError(what + ": " + std::strerror(error));
}

}  // namespace

PacketPort::PacketPort(std::string device, os::UniqueFd fd)
    : device_(std::move(device)), fd_(std::move(fd)), buffer_(kTagBytes + kMaxFrameBytes) {}

absl::StatusOr<PacketPort> PacketPort::Open(const std::string& device) {
  const unsigned index = ::if_nametoindex(device.c_str());
  if (index == 0) return absl::NotFoundError(fmt::format("no network device {}", device));
  // Protocol 0: nothing arrives until bind() has said from which device.
  os::UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open packet socket");
  RETURN_IF_ERROR(base::Annotate(Configure(fd.get()), "packet socket on " + device));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(index);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) {
    return base::ErrnoToStatus(errno, "bind packet socket to " + device);
  }
  return PacketPort(device, std::move(fd));
}

absl::StatusOr<std::optional<PacketPort::Received>> PacketPort::Receive() {
  Received received{};
  std::array<iovec, 2> parts{iovec{received.offload.data(), received.offload.size()},
                             iovec{buffer_.data() + kTagBytes, kMaxFrameBytes}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(tpacket_auxdata))> control{};
  sockaddr_ll from{};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof(from);
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd_.get(), &message, 0);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return std::nullopt;
    return IoError(errno, "receive from " + device_);
  }
  const bool ours = from.sll_pkttype == PACKET_OUTGOING;
  const bool truncated = (message.msg_flags & MSG_TRUNC) != 0;
  if (ours || truncated || static_cast<size_t>(got) < received.offload.size()) return std::nullopt;
  const size_t frame_bytes = static_cast<size_t>(got) - received.offload.size();
  const std::optional<VlanTag> tag = TagOf(message);
  if (tag.has_value() && frame_bytes >= kMacsBytes) {
    PutTagBack(*tag, buffer_);
    received.offload = ShiftedBy(received.offload, kTagBytes);
    received.frame = std::span(buffer_).first(kTagBytes + frame_bytes);
  } else {
    received.frame = std::span(buffer_).subspan(kTagBytes, frame_bytes);
  }
  return received;
}

absl::Status PacketPort::Send(const Offload& offload, std::span<const uint8_t> frame) {
  Offload header = offload;  // iovec wants it writable.
  std::array<iovec, 2> parts{iovec{header.data(), header.size()},
                             iovec{const_cast<uint8_t*>(frame.data()), frame.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (::sendmsg(fd_.get(), &message, 0) < 0) {
    if (errno != EINTR) return IoError(errno, "send to " + device_);
  }
  return absl::OkStatus();
}

uint64_t PacketPort::TakeOverflowed() {
  tpacket_stats statistics{};
  socklen_t size = sizeof(statistics);
  if (::getsockopt(fd_.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) < 0) return 0;
  return statistics.tp_drops;
}

}  // namespace spoke::fabric
