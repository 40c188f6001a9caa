// A pod that makes frames by itself, as one with NET_RAW may, and who hears them. Nothing is in
// nf_tables here: what is refused is so by the programs at pods' links and by routing alone.
#pragma once

#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/netns/traffic/fast_path_world.h"

namespace spoke::netagent {

inline constexpr std::string_view kMarker = "a frame of a hostile pod";
inline constexpr int kFrames = 1000;

class Frame {
 public:
  explicit Frame(size_t size) : padded_(kPad + size) {}

  const uint8_t* data() const { return padded_.data() + kPad; }
  size_t size() const { return padded_.size() - kPad; }
  template <typename Header>
  Header& At(size_t offset) {
    return *reinterpret_cast<Header*>(padded_.data() + kPad + offset);
  }
  ethhdr& ethernet() { return At<ethhdr>(0); }
  iphdr& v4() { return At<iphdr>(ETH_HLEN); }
  ip6_hdr& v6() { return At<ip6_hdr>(ETH_HLEN); }
  // Puts a tag before the network header; call it last.
  void Tag(uint16_t tci) {
    const std::array<uint8_t, 4> tag = {0x81, 0x00, static_cast<uint8_t>(tci >> 8U),
                                        static_cast<uint8_t>(tci)};
    padded_.insert(padded_.begin() + kPad + 2 * ETH_ALEN, tag.begin(), tag.end());
  }

 private:
  static constexpr size_t kPad = 2;  // The padding aligns the network header.
  std::vector<uint8_t> padded_;
};

// RFC 1071: makes the IPv4 header's checksum right.
void SetSum(Frame& frame);

// Counts the frames with the marker that a device of a namespace receives.
class Listener {
 public:
  Listener(const netns::Netns& netns, const char* device);

  // The frames that came, and those of them with a VLAN tag, until nothing comes for a while.
  struct Heard {
    int frames = 0;
    int tagged = 0;
  };
  Heard Hear();

 private:
  void Take(Heard& heard);

  os::UniqueFd fd_;
};

class HostileWorld : public FastPathTest {
 protected:
  void SetUp() override;

  // Returns a frame of the first pod's MAC, to the node's end of its link.
  Frame Ethernet(uint16_t protocol, size_t payload);
  // Returns a UDP packet of the first pod's, as it may be.
  Frame Packet(const ip::Address& to);
  // Sends from the first pod.
  void Send(const Frame& frame, int times);
  uint64_t Refused(std::string_view reason);
  // Expects nothing in the fabric, at the second pod, or by the fast path.
  void ExpectNothingHeard();

  std::unique_ptr<Listener> fabric_;
  std::unique_ptr<Listener> neighbour_;
};

}  // namespace spoke::netagent
