// A node with a shaper, pods behind it, and an Internet and a cluster in the fabric.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "netagent/shaping/queues/tc_shaper.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {

inline constexpr ip::Address kInternetV4 = ip::Address::V4(0x08080808);  // 8.8.8.8
inline constexpr ip::Address kInternetV6 = ip::Address::V6(0x2001'4860'4860'0000, 0x8888);
inline constexpr ip::Address kClusterV4 = ip::Address::V4(0x0A020001);  // 10.2.0.1
inline constexpr ip::Address kClusterV6 = ip::Address::V6(0xFD00'0000'0000'0002, 1);

// Runs `command` with a shell in the namespace, and returns its exit status.
int ShellStatus(const netns::Netns& netns, const std::string& command);

// A pipe from a command that runs in a namespace.
class Child {
 public:
  Child(const netns::Netns& netns, const std::string& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // Returns when it has said `text`.
  void Await(const std::string& text);
  // Returns all it says until it ends.
  std::string Read();

 private:
  std::FILE* pipe_ = nullptr;
};

struct ShapedPod {
  PodNetns netns;
  std::string host_link;
  uint32_t host_index = 0;
  ip::Address v4;
  ip::Address v6;
};

enum class Way : uint8_t { kDownload, kUpload };

// One TCP connection of iperf3(1), under way from the moment it is made.
class Stream {
 public:
  Stream(const netns::Netns& fabric, const ShapedPod& pod, const ip::Address& far, Way way,
         uint16_t port = 5201);
  // Returns what has arrived of payload, Mbit/s, over two seconds after the first one. Call it
  // once.
  double Mbit();

 private:
  std::unique_ptr<Child> server_;
  std::unique_ptr<Child> client_;
};

// Payload of one TCP connection between the fabric and a pod.
struct Bulk {
  const netns::Netns& fabric;
  const netns::Netns& pod;
  ip::Address listen;  // The address of the fabric.
  ip::Address target;  // The address that the pod connects to.
  Way way = Way::kDownload;
  absl::Duration window;
};
// Returns what has arrived in the window, which begins when the connection is there, Mbit/s.
double BulkMbit(const Bulk& bulk);

class ShapingWorldTest : public NodeLinksTest {
 protected:
  static constexpr ShapeClassId kTop = 1;

  void SetUp() override;

  // Begins as a new agent does.
  void Begin();
  std::unique_ptr<ShapedPod> Attach(uint8_t number, const AttachOptions& options = {});
  double Mbit(const ShapedPod& pod, const ip::Address& far, Way way);
  void MustApply(const ShapingTables& tables);

  // A class, charged so that `mbit` of TCP payload pass.
  static ShapeClass Inner(ShapeClassId id, ShapeClassId parent, uint64_t mbit);
  static ShapeClass Leaf(ShapeClassId id, ShapeClassId parent, uint64_t mbit);
  // Scopes, and a total for each direction.
  static ShapingTables Scopes(uint64_t total_mbit);
  // The pod's flows, both ways, in class `id` of either tree.
  static void AddFlows(const ShapedPod& pod, ShapeClassId id, ShapingTables& tables);
  // Limits one pod to so much of the Internet.
  static ShapingTables Limit(const ShapedPod& pod, uint64_t mbit);

  ShapeClassReading ClassRead(TrafficDirection direction, ShapeClassId id);
  ShapedFlowReading FlowRead(const ShapedPod& pod, TrafficDirection direction);

  std::unique_ptr<TcShaper> shaper_;
};

}  // namespace spoke::netagent
