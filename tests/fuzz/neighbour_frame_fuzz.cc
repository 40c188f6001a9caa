// Feeds what machines of a network may send: never a crash, and whatever is taken for a claim names
// one machine and one address; what this node asks and answers reads as it was meant.
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/check.h"
#include "netagent/packets/neighbour_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::netagent::NeighbourClaim;
  const auto claim = spoke::netagent::ParseNeighbourClaim({data, size});
  if (!claim) return 0;
  CHECK(!claim->mac.is_multicast() && !claim->source.is_multicast(), "a machine is not a group");
  const auto asked = spoke::netagent::ParseNeighbourClaim(
      spoke::netagent::BuildNeighbourQuestion(claim->mac, claim->address));
  CHECK(asked && asked->kind == NeighbourClaim::Kind::kAsks && asked->mac == claim->mac &&
            asked->address == claim->address,
        "a question about it is read as one");
  if (!claim->address.is_v4()) return 0;
  const auto told = spoke::netagent::ParseNeighbourClaim(
      spoke::netagent::BuildArpAnswer(claim->mac, claim->address, claim->source));
  CHECK(told && told->kind == NeighbourClaim::Kind::kHas && told->mac == claim->mac &&
            told->address == claim->address,
        "an answer about it is read as one");
  return 0;
}
