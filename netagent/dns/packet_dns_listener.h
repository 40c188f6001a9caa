// The DnsListener over a packet socket: what each promise of dns_listener.h is to the kernel.
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstdint>
#include <vector>

#include "lib/os/unique_fd.h"
#include "netagent/dns/dns_listener.h"

namespace spoke::netagent {

// Returns the filter of what the socket lets through: UDP from port 53 of `resolvers`,
// unfragmented, in IPv6 without extension headers. Its offsets begin with the IP header, as those
// of SOCK_DGRAM do. Pure.
std::vector<sock_filter> FilterForDns(const std::vector<ip::Prefix>& resolvers);

// One socket for all devices of the network namespace of the thread that calls Open(). While it is
// open, the kernel shows each packet to its filter; so it is open only while somebody has names.
// Needs CAP_NET_RAW.
class PacketDnsListener final : public DnsListener {
 public:
  absl::Status Open(const std::vector<ip::Prefix>& resolvers) override;
  void Close() override { socket_.Reset(); }
  int fd() const override { return socket_.get(); }
  absl::StatusOr<HeardDns> Take(size_t most) override;

 private:
  // Returns whether a packet that passed by that device in that manner (sll_pkttype) is to be
  // heard.
  bool IsHeard(int device, unsigned char kind) const;

  os::UniqueFd socket_;
  std::array<uint8_t, kMaxPacket> buffer_{};
};

}  // namespace spoke::netagent
