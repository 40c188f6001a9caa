#include "netagent/verification/packet_neighbour_watch.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/links/attach_plan.h"
#include "netagent/packets/packet_socket.h"

namespace spoke::netagent {
namespace {

constexpr int kReceiveBuffer = 64 << 10;  // A few hundred frames.

// 33:33:00:00:00:01, to which all IPv6 nodes listen (RFC 2464 section 7).
constexpr ip::MacAddress kAllNodes{{0x33, 0x33, 0x00, 0x00, 0x00, 0x01}};

// Lets through neighbour solicitations and advertisements that come from this very network. Offsets
// are those of the frame: 14 bytes of Ethernet and 40 of IPv6.
std::array<sock_filter, 9> DiscoveryFilter() {
  constexpr uint32_t kIcmpv6AndHopLimit = 58U << 8U | 255U;
  constexpr uint32_t kSolicitation = 135;
  constexpr uint32_t kAdvertisement = 136;
  // Each jump's last number is how far the refusal at the end lies behind the next instruction.
  return {{BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),  // Next header, hop limit.
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIcmpv6AndHopLimit, 0, 6),
           BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 54),  // ICMPv6 type.
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSolicitation, 1, 0),
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAdvertisement, 0, 3),
           BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 55),  // Code.
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), BPF_STMT(BPF_RET | BPF_K, 256),
           BPF_STMT(BPF_RET | BPF_K, 0)}};
}

// Asks for the MAC of a device by way of any socket.
absl::StatusOr<ip::MacAddress> MacOf(const os::UniqueFd& socket, const std::string& device) {
  ifreq request{};
  device.copy(static_cast<char*>(request.ifr_name), IFNAMSIZ - 1);
  if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) < 0) {
    return PacketError(errno, "read the MAC of " + device);
  }
  ip::MacAddress mac;
  std::copy_n(std::begin(request.ifr_hwaddr.sa_data), mac.octets.size(), mac.octets.begin());
  return mac;
}

absl::Status JoinAllNodes(const os::UniqueFd& socket, const std::string& device) {
  packet_mreq group{};
  group.mr_ifindex = static_cast<int>(::if_nametoindex(device.c_str()));
  group.mr_type = PACKET_MR_MULTICAST;
  group.mr_alen = static_cast<unsigned short>(kAllNodes.octets.size());
  std::copy(kAllNodes.octets.begin(), kAllNodes.octets.end(), std::begin(group.mr_address));
  if (::setsockopt(socket.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
    return PacketError(errno, "hear the group of all nodes on " + device);
  }
  return absl::OkStatus();
}

absl::StatusOr<os::UniqueFd> OpenListener(const std::string& device, uint16_t ethertype,
                                          std::span<sock_filter> filter) {
  auto socket = OpenPacketSocket(device, ethertype, filter);
  if (!socket.ok()) return socket.status();
  if (::setsockopt(socket->get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer)) <
      0) {
    return PacketError(errno, "set the packet socket's buffer");
  }
  return socket;
}

}  // namespace

absl::StatusOr<std::string> PacketNeighbourWatch::DeviceOf(const Key& key) const {
  if (!key) return device_;
  const os::UniqueFd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!any.valid()) return PacketError(errno, "open a socket");
  const auto first = MacOf(any, device_);
  if (first.ok() && *first == *key) return device_;
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> devices(
      ::if_nameindex(), &::if_freenameindex);
  if (devices == nullptr) return PacketError(errno, "list network devices");
  for (const struct if_nameindex* entry = devices.get(); entry->if_index != 0; ++entry) {
    const std::string name = entry->if_name;
    if (IsHostLinkName(name)) continue;
    const auto mac = MacOf(any, name);
    if (mac.ok() && *mac == *key) return name;
  }
  return absl::NotFoundError(fmt::format("no NIC has the MAC {}", key->ToString()));
}

absl::Status PacketNeighbourWatch::Open(const Key& key, Nic& nic) const {
  if (nic.arp.valid() && (nic.discovery.valid() || !nic.wants_ipv6)) return absl::OkStatus();
  const absl::Status status = OpenMissing(key, nic);
  if (!status.ok()) nic = Nic{.wants_ipv6 = nic.wants_ipv6};
  return status;
}

// Opens what is missing. What is open stays: an answer may wait in it.
absl::Status PacketNeighbourWatch::OpenMissing(const Key& key, Nic& nic) const {
  ASSIGN_OR_RETURN(const std::string device, DeviceOf(key));
  if (!nic.arp.valid()) {
    auto arp = OpenListener(device, ETH_P_ARP, {});
    if (!arp.ok()) return arp.status();
    nic.arp = *std::move(arp);
    ASSIGN_OR_RETURN(nic.mac, MacOf(nic.arp, device));
  }
  if (!nic.wants_ipv6 || nic.discovery.valid()) return absl::OkStatus();
  auto filter = DiscoveryFilter();
  auto discovery = OpenListener(device, ETH_P_IPV6, filter);
  if (!discovery.ok()) return discovery.status();
  nic.discovery = *std::move(discovery);
  return JoinAllNodes(nic.discovery, device);
}

absl::StatusOr<PacketNeighbourWatch::Nic*> PacketNeighbourWatch::OpenFor(const Question& question) {
  const auto [it, inserted] = nics_.try_emplace(question.nic);
  it->second.wants_ipv6 |= !question.address.is_v4();
  if (const absl::Status status = Open(question.nic, it->second); !status.ok()) {
    // Nothing is to be heard of a NIC that is not there.
    if (absl::IsNotFound(status)) nics_.erase(it);
    return status;
  }
  return &it->second;
}

absl::Status PacketNeighbourWatch::Listen(const Question& question) {
  return OpenFor(question).status();
}

absl::Status PacketNeighbourWatch::Ask(const Question& question) {
  ASSIGN_OR_RETURN(const Nic* nic, OpenFor(question));
  const std::vector<uint8_t> frame = BuildNeighbourQuestion(nic->mac, question.address);
  return SendFrame(question.address.is_v4() ? nic->arp : nic->discovery, frame,
                   "ask who has " + question.address.ToString());
}

absl::Status PacketNeighbourWatch::Answer(const Question& question, const ip::MacAddress& asker) {
  if (!question.address.is_v4()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: only for IPv4 addresses is answered", question.address.ToString()));
  }
  ASSIGN_OR_RETURN(const Nic* nic, OpenFor(question));
  return SendFrame(nic->arp, BuildArpAnswer(nic->mac, question.address, asker),
                   "say that we have " + question.address.ToString());
}

bool PacketNeighbourWatch::IsOwn(const NeighbourClaim& claim) const {
  return std::any_of(nics_.begin(), nics_.end(), [&](const auto& entry) {
    return entry.second.mac == claim.source || entry.second.mac == claim.mac;
  });
}

absl::Status PacketNeighbourWatch::Hear(const os::UniqueFd& socket, size_t& left,
                                        std::vector<NeighbourClaim>& heard) {
  while (left > 0) {
    sockaddr_ll from{};
    socklen_t from_size = sizeof(from);
    const ssize_t got = ::recvfrom(socket.get(), buffer_.data(), buffer_.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &from_size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got < 0) return PacketError(errno, "hear neighbours");
    --left;
    // Frames for another machine are heard only where somebody looks at everything.
    if (from.sll_pkttype == PACKET_OTHERHOST) continue;
    const auto claim = ParseNeighbourClaim(std::span(buffer_).first(static_cast<size_t>(got)));
    if (claim && !IsOwn(*claim)) heard.push_back(*claim);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NeighbourClaim>> PacketNeighbourWatch::Take() {
  std::vector<NeighbourClaim> heard;
  absl::Status first_error;
  size_t left = kMaxFramesACall;
  for (auto& [key, nic] : nics_) {
    absl::Status status = Open(key, nic);
    if (absl::IsNotFound(status)) continue;  // It may come back; until then nobody can be heard.
    if (status.ok()) status = Hear(nic.arp, left, heard);
    if (status.ok() && nic.discovery.valid()) status = Hear(nic.discovery, left, heard);
    // A device that is gone and made anew under its name needs other sockets.
    if (!status.ok()) nic = Nic{.wants_ipv6 = nic.wants_ipv6};
    first_error.Update(status);
  }
  if (!first_error.ok() && heard.empty()) return first_error;
  return heard;
}

}  // namespace spoke::netagent
