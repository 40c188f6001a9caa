#include "netagent/verification/packet_wire_probe.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/packets/packet_socket.h"
#include "netagent/packets/probe_frame.h"

namespace spoke::netagent {
namespace {

// The limit of one call: whatever else arrives, the loop goes on.
constexpr int kMaxFramesACall = 256;

// Lets through echo replies of `answerer` with our identifier, whole and not fragmented. Offsets
// are those of the frame: 14 bytes of Ethernet and then IPv4.
std::array<sock_filter, 14> EchoReplyFilter(const ip::Address& answerer, uint16_t identifier) {
  constexpr uint32_t kIcmp = 1;
  constexpr uint32_t kEchoReply = 0;
  const auto source = static_cast<uint32_t>(answerer.low());
  // Each jump's last number is how far the refusal at the end lies behind the next instruction.
  return {{BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),  // Protocol.
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIcmp, 0, 11),
           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 26),  // Source address.
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, source, 0, 9),
           BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),  // Flags and fragment offset.
           BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3FFF, 7, 0),
           BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),  // X: the header's length.
           BPF_STMT(BPF_LD | BPF_B | BPF_IND, 14),   // ICMP type.
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kEchoReply, 0, 4),
           BPF_STMT(BPF_LD | BPF_H | BPF_IND, 18),  // Identifier.
           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, identifier, 0, 2),
           BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_RET | BPF_A, 0),
           BPF_STMT(BPF_RET | BPF_K, 0)}};
}

}  // namespace

ip::Address NextHopTo(const ip::Address& answerer, const std::vector<ip::Prefix>& subnets) {
  std::optional<ip::Address> gateway;
  for (const ip::Prefix& subnet : subnets) {
    if (subnet.Contains(answerer)) return answerer;
    if (!gateway && subnet.family() == answerer.family()) gateway = ip::Advance(subnet.base(), 1);
  }
  return gateway.value_or(answerer);
}

absl::Status PacketWireProbe::Open() {
  if (ipv4_.valid()) return absl::OkStatus();
  auto filter = EchoReplyFilter(settings_.answerer, settings_.identifier);
  auto arp = OpenPacketSocket(settings_.device, ETH_P_ARP, {});
  if (!arp.ok()) return arp.status();
  auto ipv4 = OpenPacketSocket(settings_.device, ETH_P_IP, filter);
  if (!ipv4.ok()) return ipv4.status();
  arp_ = *std::move(arp);
  ipv4_ = *std::move(ipv4);
  return absl::OkStatus();
}

absl::Status PacketWireProbe::Send(const ip::Address& address) {
  if (!address.is_v4()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: only IPv4 addresses are probed", address.ToString()));
  }
  RETURN_IF_ERROR(Open());
  if (next_hop_mac_) return SendEcho(address);
  held_back_.insert(address);
  return SendProbe(arp_, BuildArpRequest(settings_.mac, settings_.address, settings_.next_hop));
}

absl::Status PacketWireProbe::SendEcho(const ip::Address& address) {
  sent_.insert(address);
  return SendProbe(ipv4_, BuildEchoRequest({.nic_mac = settings_.mac,
                                            .next_hop_mac = *next_hop_mac_,
                                            .from = address,
                                            .to = settings_.answerer,
                                            .identifier = settings_.identifier,
                                            .sequence = sequence_++,
                                            .nonce = settings_.nonce}));
}

absl::Status PacketWireProbe::SendProbe(const os::UniqueFd& socket,
                                        const std::vector<uint8_t>& frame) const {
  return SendFrame(socket, frame, "send a probe on " + settings_.device);
}

absl::StatusOr<std::optional<size_t>> PacketWireProbe::Receive(const os::UniqueFd& socket) {
  while (true) {
    const ssize_t got = ::recv(socket.get(), buffer_.data(), buffer_.size(), 0);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EAGAIN) return std::nullopt;
    if (errno != EINTR) return PacketError(errno, "hear probes on " + settings_.device);
  }
}

absl::Status PacketWireProbe::LearnNextHop() {
  for (int i = 0; i < kMaxFramesACall; ++i) {
    ASSIGN_OR_RETURN(const std::optional<size_t> length, Receive(arp_));
    if (!length) break;
    const auto reply = ParseArpReply(std::span(buffer_).first(*length));
    if (!reply || reply->address != settings_.next_hop) continue;
    next_hop_mac_ = reply->mac;
  }
  if (!next_hop_mac_) return absl::OkStatus();
  absl::Status first_error;
  for (const ip::Address& address : std::exchange(held_back_, {})) {
    first_error.Update(SendEcho(address));
  }
  return first_error;
}

absl::StatusOr<std::vector<ip::Address>> PacketWireProbe::TakeAnswered() {
  if (!ipv4_.valid()) return std::vector<ip::Address>();
  RETURN_IF_ERROR(LearnNextHop());
  std::set<ip::Address> answered;
  for (int i = 0; i < kMaxFramesACall; ++i) {
    ASSIGN_OR_RETURN(const std::optional<size_t> length, Receive(ipv4_));
    if (!length) break;
    const auto reply = ParseEchoReply(std::span(buffer_).first(*length));
    if (reply && reply->nic_mac == settings_.mac && reply->from == settings_.answerer &&
        reply->identifier == settings_.identifier && reply->nonce == settings_.nonce &&
        sent_.contains(reply->to)) {
      answered.insert(reply->to);
    }
  }
  return std::vector<ip::Address>(answered.begin(), answered.end());
}

void PacketWireProbe::Rest() {
  arp_.Reset();
  ipv4_.Reset();
  next_hop_mac_.reset();
  held_back_.clear();
  sent_.clear();
}

}  // namespace spoke::netagent
