// NeighbourWatch over packet sockets: what each promise of neighbour_watch.h is to the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/os/unique_fd.h"
#include "netagent/verification/neighbour_watch.h"

namespace spoke::netagent {

// Adds nothing to the node: no address, no route, no neighbour. Whole frames go out with the NIC's
// MAC.
//
// Each NIC has two sockets. One hears ARP alone. The other, opened with the first IPv6 address, has
// a filter that lets through solicitations and advertisements of Neighbour Discovery and nothing of
// what pods send and receive; the all-nodes group, where answers to such questions go (RFC 4861
// section 7.2.4), is heard also where the kernel's own IPv6 is off. The groups in which others ask
// about our IPv6 addresses are not joined: 128 of them would make a NIC hear all multicast. Queues
// are small: a flood is lost, not kept. Works in the network namespace of the thread that calls it.
// Needs CAP_NET_RAW.
class PacketNeighbourWatch final : public NeighbourWatch {
 public:
  // `device` is the node's first NIC.
  explicit PacketNeighbourWatch(std::string device) : device_(std::move(device)) {}

  absl::Status Listen(const Question& question) override;
  absl::Status Ask(const Question& question) override;
  absl::Status Answer(const Question& question, const ip::MacAddress& asker) override;
  absl::StatusOr<std::vector<NeighbourClaim>> Take() override;

 private:
  struct Nic {
    ip::MacAddress mac = {};
    os::UniqueFd arp = {};
    os::UniqueFd discovery = {};
    bool wants_ipv6 = false;
  };
  using Key = std::optional<ip::MacAddress>;  // The same as Question::nic.

  absl::StatusOr<std::string> DeviceOf(const Key& key) const;
  // Opens the sockets that are not open. On an error all of them are closed.
  absl::Status Open(const Key& key, Nic& nic) const;
  absl::Status OpenMissing(const Key& key, Nic& nic) const;
  absl::StatusOr<Nic*> OpenFor(const Question& question);
  absl::Status Hear(const os::UniqueFd& socket, size_t& left, std::vector<NeighbourClaim>& heard);
  bool IsOwn(const NeighbourClaim& claim) const;

  const std::string device_;
  std::map<Key, Nic> nics_;
  std::array<uint8_t, 256> buffer_{};  // Holds a frame; the rest of a longer one is not looked at.
};

}  // namespace spoke::netagent
