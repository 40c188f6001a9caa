// Destinations cut into cells: addresses that the same policies have a say about. Pure.
//
// However many blocks the policies name, the kernel finds a packet's cell with one lookup, and what
// a policy's blocks have to do with each other (overlaps, exceptions, classes) is settled here.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "netagent/classes/traffic_class.h"

namespace spoke::netagent {

// The destinations that one policy is about.
struct Destinations {
  // A block that lies wholly in what is never translated unless somebody says so (cluster, hub,
  // peer spokes, storage, platform, loopback) is meant as it stands. Of any other block only what
  // lies outside of all of that is meant: who writes 0.0.0.0/0 means the Internet.
  std::vector<ip::Prefix> blocks;
  // Blocks that are only ever meant as far as they lie outside.
  std::vector<ip::Prefix> outside;
  std::vector<ip::Prefix> excluded;

  bool operator==(const Destinations&) const = default;
};

// A kind of destination.
struct Cell {
  // Whether it is the metadata service or the wire server: see policy::kPlatformServices.
  bool platform = false;
  bool cluster = false;            // Whether it is of the traffic class cluster.
  std::vector<uint32_t> policies;  // The indexes of policies that mean it, in order.

  auto operator<=>(const Cell&) const = default;
};

// The addresses `first` to `last`, all of one cell.
struct CellRange {
  ip::Address first;
  ip::Address last;
  uint32_t cell = 0;  // The cell's index.

  bool operator==(const CellRange&) const = default;
};

struct Cells {
  std::vector<Cell> cells;
  // Each is the whole of its address space, sorted, without gaps.
  std::vector<CellRange> v4;
  std::vector<CellRange> v6;

  uint32_t CellOf(const ip::Address& address) const;
};

// Cuts destinations into cells; `own` are addresses of the node itself, about which no policy has a
// say.
Cells CutIntoCells(const std::vector<Destinations>& policies, const ClassMap& classes,
                   const std::set<ip::Address>& own);

}  // namespace spoke::netagent
