// The worlds from which a search begins, so that what takes many steps to come about need not be
// found first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/search/world.h"

namespace spoke::search {

enum class Start : uint8_t {
  kNothing,
  kSettled,      // Each node has one address, and no pod.
  kDrained,      // One node is to give its address up, and another needs one more.
  kReplaced,     // A machine with a pod is gone, and another one has its name.
  kCameSince,    // One node came after the backup was made.
  kMovedSince,   // An address went from one node to another after the backup was made.
  kMovedCutOff,  // The same, and the former has agreed to that but not heard of it.
};

constexpr std::string_view NameOf(Start start) {
  switch (start) {
    case Start::kNothing:
      return "nothing";
    case Start::kSettled:
      return "settled";
    case Start::kDrained:
      return "drained";
    case Start::kReplaced:
      return "replaced";
    case Start::kCameSince:
      return "came since the backup";
    case Start::kMovedSince:
      return "moved since the backup";
    case Start::kMovedCutOff:
      return "moved since the backup, cut off";
  }
  return "";
}

struct Share {
  Rare rare;
  uint8_t times;
};

// Says how often what is rare may happen from here, and how many faults all together.
void Allow(World& world, uint8_t faults, const std::vector<Share>& shares);

// Returns a world in which nothing rare may happen.
World WorldOf(Start start);

struct Root {
  std::string name;
  World world;
};

// Returns those of the great search, in its order.
std::vector<Root> AllRoots();

}  // namespace spoke::search
