#include "netagent/dns/packet_dns_listener.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/links/attach_plan.h"
#include "netagent/packets/udp_packet.h"

namespace spoke::netagent {
namespace {

constexpr uint16_t kDnsPort = 53;
// The bytes that wait: some hundreds of answers; more than a second's worth of them is not handled
// anyway.
constexpr int kReceiveBuffer = 512 << 10;
constexpr int kWordBits = 32;

absl::Status IoError(int error, std::string_view what) {
  const absl::Status status = base::ErrnoToStatus(error, what);
  switch (error) {
    case EPERM:
    case EACCES:
      return absl::PermissionDeniedError(status.message());
    case ENOBUFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(status.message());
    default:
      return absl::InternalError(status.message());
  }
}

// A filter as it grows. Each check ends it with a refusal of its own, so that no jump is far.
class Program {
 public:
  void Add(uint16_t code, uint32_t k) { code_.push_back(BPF_STMT(code, k)); }
  void Refuse() { Add(BPF_RET | BPF_K, 0); }
  void Accept() { Add(BPF_RET | BPF_K, DnsListener::kMaxPacket); }
  void Need(uint32_t value) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    Refuse();
  }
  void NeedNone(uint32_t bits) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    Refuse();
  }
  // Accepts what has a source in `block`, which stands in the packet at `at`; else goes on.
  void AcceptSource(const ip::Prefix& block, uint32_t at) {
    const std::string bytes = block.base().ToBytes();
    const int words = (block.length() + kWordBits - 1) / kWordBits;
    for (int word = 0; word < words; ++word) {
      const int bits = std::min(block.length() - word * kWordBits, kWordBits);
      const uint32_t mask = ~uint32_t{0} << static_cast<unsigned>(kWordBits - bits);
      uint32_t wanted = 0;
      for (size_t i = 0; i < 4; ++i) {
        wanted = wanted << 8U | static_cast<uint8_t>(bytes[static_cast<size_t>(word) * 4 + i]);
      }
      Add(BPF_LD | BPF_W | BPF_ABS, at + static_cast<uint32_t>(word) * 4);
      Add(BPF_ALU | BPF_AND | BPF_K, mask);
      // The jump goes over three instructions for each further word, and what accepts.
      const auto over = static_cast<uint8_t>((words - word - 1) * 3 + 1);
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wanted, 0, over));
    }
    Accept();
  }
  // Adds a jump to where Land() is called with what this returns.
  size_t JumpUnless(uint32_t value) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    Add(BPF_JMP | BPF_JA, 0);
    return code_.size() - 1;
  }
  void Land(size_t jump) { code_[jump].k = static_cast<uint32_t>(code_.size() - jump - 1); }

  std::vector<sock_filter> Take() && { return std::move(code_); }

 private:
  std::vector<sock_filter> code_;
};

}  // namespace

std::vector<sock_filter> FilterForDns(const std::vector<ip::Prefix>& resolvers) {
  const auto accept_sources = [&](Program& program, ip::Family family, uint32_t at) {
    for (const ip::Prefix& block : resolvers) {
      if (block.family() == family) program.AcceptSource(block, at);
    }
    program.Refuse();
  };
  Program program;
  program.Add(BPF_LD | BPF_H | BPF_ABS, static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PROTOCOL));
  const size_t not_v4 = program.JumpUnless(ETH_P_IP);
  program.Add(BPF_LD | BPF_B | BPF_ABS, 9);  // This is the protocol.
  program.Need(IPPROTO_UDP);
  program.Add(BPF_LD | BPF_H | BPF_ABS, 6);  // These are the flags and the fragment offset.
  program.NeedNone(0x3FFF);
  program.Add(BPF_LDX | BPF_B | BPF_MSH, 0);  // X is the header's length.
  program.Add(BPF_LD | BPF_H | BPF_IND, 0);   // This is the source port.
  program.Need(kDnsPort);
  accept_sources(program, ip::Family::kV4, 12);
  program.Land(not_v4);
  program.Need(ETH_P_IPV6);
  program.Add(BPF_LD | BPF_B | BPF_ABS, 6);  // This is the next header.
  program.Need(IPPROTO_UDP);
  program.Add(BPF_LD | BPF_H | BPF_ABS, 40);
  program.Need(kDnsPort);
  accept_sources(program, ip::Family::kV6, 8);
  return std::move(program).Take();
}

absl::Status PacketDnsListener::Open(const std::vector<ip::Prefix>& resolvers) {
  if (resolvers.size() > kMaxResolvers) {
    return absl::InvalidArgumentError(
        fmt::format("{} resolvers to hear; at most {} can be", resolvers.size(), kMaxResolvers));
  }
  // With protocol 0 nothing arrives before the filter is there and bind() has said what.
  os::UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return IoError(errno, "open packet socket for DNS");
  std::vector<sock_filter> filter = FilterForDns(resolvers);
  const sock_fprog program{.len = static_cast<uint16_t>(filter.size()), .filter = filter.data()};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0) {
    return IoError(errno, "set the filter for DNS");
  }
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer)) < 0) {
    return IoError(errno, "set the buffer for DNS");
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  // With one protocol alone a socket would not hear what leaves.
  address.sll_protocol = htons(ETH_P_ALL);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) {
    return IoError(errno, "bind packet socket for DNS");
  }
  socket_ = std::move(fd);
  return absl::OkStatus();
}

bool PacketDnsListener::IsHeard(int device, unsigned char kind) const {
  if (kind != PACKET_HOST && kind != PACKET_OUTGOING) return false;
  ifreq request{};
  request.ifr_ifindex = device;
  // A device that is gone was a pod's.
  if (::ioctl(socket_.get(), SIOCGIFNAME, &request) < 0) return false;
  return IsHostLinkName(static_cast<const char*>(request.ifr_name)) == (kind == PACKET_OUTGOING);
}

absl::StatusOr<HeardDns> PacketDnsListener::Take(size_t most) {
  HeardDns out;
  if (!socket_.valid()) return out;
  while (out.looked_at < most) {
    sockaddr_ll from{};
    socklen_t from_size = sizeof(from);
    const ssize_t got = ::recvfrom(socket_.get(), buffer_.data(), buffer_.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &from_size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got < 0) return IoError(errno, "hear DNS");
    ++out.looked_at;
    if (!IsHeard(from.sll_ifindex, from.sll_pkttype)) continue;
    const auto packet = ParseUdpPacket(std::span(buffer_).first(static_cast<size_t>(got)));
    if (!packet || packet->source_port != kDnsPort) continue;
    out.messages.push_back({packet->source, {packet->payload.begin(), packet->payload.end()}});
  }
  tpacket_stats statistics{};
  socklen_t size = sizeof(statistics);
  // Each reading begins anew.
  if (::getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0) {
    out.lost = statistics.tp_drops;
  }
  return out;
}

}  // namespace spoke::netagent
