#include "netagent/packets/packet_socket.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {

absl::Status PacketError(int error, const std::string& what) {
  const absl::Status status = base::ErrnoToStatus(error, what);
  switch (error) {
    case ENETDOWN:
    case ENXIO:
    case ENODEV:
    case ENOBUFS:
    case EAGAIN:
      return absl::UnavailableError(status.message());
    case EPERM:
    case EACCES:
      return absl::PermissionDeniedError(status.message());
    default:
      return absl::InternalError(status.message());
  }
}

absl::StatusOr<os::UniqueFd> OpenPacketSocket(const std::string& device, uint16_t ethertype,
                                              std::span<sock_filter> filter) {
  const unsigned index = ::if_nametoindex(device.c_str());
  if (index == 0) return absl::UnavailableError(fmt::format("no network device {}", device));
  // With protocol 0 nothing arrives before the filter is there and bind() has said from which
  // device.
  os::UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return PacketError(errno, "open packet socket");
  const sock_fprog program{.len = static_cast<uint16_t>(filter.size()), .filter = filter.data()};
  if (!filter.empty() &&
      ::setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0) {
    return PacketError(errno, "set the packet socket's filter");
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ethertype);
  address.sll_ifindex = static_cast<int>(index);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) {
    return PacketError(errno, "bind packet socket to " + device);
  }
  return fd;
}

absl::Status SendFrame(const os::UniqueFd& socket, const std::vector<uint8_t>& frame,
                       const std::string& what) {
  while (::send(socket.get(), frame.data(), frame.size(), 0) < 0) {
    if (errno != EINTR) return PacketError(errno, what);
  }
  return absl::OkStatus();
}

}  // namespace spoke::netagent
