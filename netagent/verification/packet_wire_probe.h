// WireProbe over packet sockets: what each promise of wire_probe.h is to the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/ip/prefix.h"
#include "lib/os/unique_fd.h"
#include "netagent/verification/wire_probe.h"

namespace spoke::netagent {

// Returns whom a host of `subnets` sends to when it sends to `answerer`: that itself in a subnet of
// its own, and otherwise the gateway, which in Azure is the first address of each subnet ("Virtual
// Network FAQ"). Pure.
ip::Address NextHopTo(const ip::Address& answerer, const std::vector<ip::Prefix>& subnets);

// Adds nothing to the node: no address, no route, no rule. Whole frames go out with the NIC's MAC
// and the address under proof; the answer is heard as it arrives at the NIC. So there is nothing to
// clean up, after a crash neither. (The kernel hears the answer too, finds the unreachable route of
// an available address and tells the answerer so: it does no harm.)
//
// Two sockets, for ARP and for IPv4, open only while probes are under way; the second has a filter
// that lets through nothing but the answerer's echo replies to us, for on a busy NIC every packet
// passes it. Works in the network namespace of the thread that calls Send() after Rest(). Needs
// CAP_NET_RAW.
class PacketWireProbe final : public WireProbe {
 public:
  struct Settings {
    std::string device;
    ip::MacAddress mac;    // The device's.
    ip::Address address;   // The node's own, which asks for the next hop.
    ip::Address answerer;  // Answers to ICMP echo.
    ip::Address next_hop;  // The next hop on the way there: see NextHopTo().
    // A number chosen at random, so that answers to other processes or earlier agents are not ours.
    uint16_t identifier = 0;
    uint64_t nonce = 0;
  };
  explicit PacketWireProbe(Settings settings) : settings_(std::move(settings)) {}

  absl::Status Send(const ip::Address& address) override;
  absl::StatusOr<std::vector<ip::Address>> TakeAnswered() override;
  void Rest() override;

 private:
  absl::Status Open();
  absl::Status SendEcho(const ip::Address& address);
  absl::Status SendProbe(const os::UniqueFd& socket, const std::vector<uint8_t>& frame) const;
  // Reads the next frame into `buffer_`, and returns its length; nullopt: none waits.
  absl::StatusOr<std::optional<size_t>> Receive(const os::UniqueFd& socket);
  absl::Status LearnNextHop();

  const Settings settings_;
  os::UniqueFd arp_;
  os::UniqueFd ipv4_;
  std::optional<ip::MacAddress> next_hop_mac_;  // Learnt anew after each rest.
  std::set<ip::Address> held_back_;             // To be sent from once the MAC is known.
  std::set<ip::Address> sent_;                  // Sent from since the last rest.
  uint16_t sequence_ = 0;
  std::array<uint8_t, 2048> buffer_{};
};

}  // namespace spoke::netagent
