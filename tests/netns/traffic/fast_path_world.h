// A node of namespaces with the fast path on, two pods, and a host beyond the fabric.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "netagent/fastpath/bpf_fast_path.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {

inline constexpr ip::Address kFirstV4 = ip::Address::V4(0x0A000107);   // 10.0.1.7
inline constexpr ip::Address kSecondV4 = ip::Address::V4(0x0A000108);  // 10.0.1.8
inline constexpr ip::Address kFabricV4 = ip::Address::V4(0x0A000101);  // 10.0.1.1
inline constexpr ip::Address kFirstV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);
inline constexpr ip::Address kSecondV6 = ip::Address::V6(0xFD00'0000'0000'0001, 8);
inline constexpr ip::Address kFabricV6 = ip::Address::V6(0xFD00'0000'0000'0001, 1);

// Returns how many packets the thread's namespace has forwarded the ordinary way.
uint64_t Forwarded();

struct Attached {
  explicit Attached(std::vector<ip::Address> addresses) : pod{.addresses = std::move(addresses)} {}
  PodNetns netns;
  TrafficPod pod;
  uint64_t id = 0;
};

class FastPathTest : public NodeLinksTest {
 protected:
  void SetUp() override;

  // Begins as a new agent does.
  void Begin();
  // Returns all of 10/8 except Services and the node itself, and all of fd00::/8 except the node.
  static std::vector<FastHop> Hops();
  // A pod that is fast.
  std::unique_ptr<Attached> Attach(const std::string& name, std::vector<ip::Address> addresses);
  FastCounts CountsOf(uint64_t id);
  // The pods that left the fast path for their pairs.
  std::vector<uint64_t> OverShare();

  std::unique_ptr<BpfFastPath> fast_;
  std::unique_ptr<Attached> one_, two_;

 private:
  // A host there, which reaches the pods by the node.
  void GiveTheFabricAddresses();
};

}  // namespace spoke::netagent
