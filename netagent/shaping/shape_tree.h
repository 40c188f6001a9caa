// Decides which rates the classes of a tree have, so that pods get their weighted max-min shares.
// Pure.
//
// Only the ceils hold anybody back. A class's own rate is what it gets before others borrow; what
// is left (1 - kAssured, and what nobody uses) goes round by the quantum. But whoever has nothing
// waiting when its turn comes misses it, and a TCP that has found its own rate stays there, so own
// rates are nearly all there is. They stay as they were while they are right to within kSlack,
// those of classes that share a level to within kLevelSlack.
//
// A class that has sent at its own rate owes the time that the packet takes at that rate, and gets
// nothing of its own until that is over, also when its rate has long been raised (net/sched/
// sch_htb.c keeps tokens as a time). So nobody's own rate is far below its part: see kIdlePart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

// The part of what is shared that is handed out as own rates.
inline constexpr double kAssured = 0.99;
// The fraction of its part by weight that a class that wants nothing has as own rate. No packet is
// longer than its queue, kLongQueueTime of its part unless that is next to nothing: it owes at most
// a second.
inline constexpr double kIdlePart = 0.1;
inline constexpr double kSlack = 0.15;
inline constexpr double kLevelSlack = 0.03;
// The least limit. Less is next to nothing, and not even that for long bursts'
// clocks.
inline constexpr units::ByteRate kMinLimit{1000};
inline constexpr units::ByteRate kMinLeafRate{16};
// The greatest limit: more is a slip, and sums must not overflow.
inline constexpr units::ByteRate kMaxLimit{1'000'000'000'000};
inline constexpr units::ByteCount kMinQueue{2 * 1514};
// The longest packet that offloads make of TCP's, as the queue charges it: 45 frames.
inline constexpr units::ByteCount kOffloadedPacket{45 * 1514};
// The number of offloaded packets on their way: BBR keeps three of them on their way however slow
// that is (net/ipv4/tcp_bbr.c, bbr_quantization_budget), and then some.
inline constexpr uint32_t kInFlight = 4;
inline constexpr units::ByteCount kMaxQueue{8U << 20U};
inline constexpr uint32_t kMaxQuanta = 16;

// A node of the tree. Rates are of frames.
struct ShapeNode {
  std::string name;
  size_t parent = 0;  // The index of its parent + 1; 0: none. Parents come before their children.
  bool leaf = false;
  units::ByteRate limit = {};   // The limit of its own, at most kMaxLimit; zero: none.
  uint32_t weight = 1;          // The weight of a leaf; at least 1.
  units::ByteRate demand = {};  // The demand of a leaf.
};

struct RatedClass {
  ShapeClass shape;               // The class, without numbers.
  units::ByteRate expected = {};  // The rate that it gets now if it wants it, at least.
};

// Returns a class for each of `nodes`, in the same order. `former` are the classes in force, by
// name. Of children of a limited node own rates add up to at most the node's; no ceil is above the
// parent's.
std::vector<RatedClass> RateTree(const std::vector<ShapeNode>& nodes,
                                 const std::map<std::string, ShapeClass>& former);

}  // namespace spoke::netagent
