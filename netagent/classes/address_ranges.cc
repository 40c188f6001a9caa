#include "netagent/classes/address_ranges.h"

namespace spoke::netagent {

std::vector<ip::Prefix> BlocksOf(const ip::Address& first, const ip::Address& last) {
  std::vector<ip::Prefix> blocks;
  ip::Address next = first;
  while (true) {
    // This is the length of the largest block that begins at `next` and does not go beyond `last`.
    int length = next.bits();
    while (length > 0) {
      const ip::Prefix wider = ip::Prefix::Of(next, length - 1).value();
      if (wider.base() != next || last < wider.last()) break;
      --length;
    }
    blocks.push_back(ip::Prefix::Of(next, length).value());
    if (blocks.back().last() == last) return blocks;
    next = ip::Advance(blocks.back().last(), 1);
  }
}

}  // namespace spoke::netagent
