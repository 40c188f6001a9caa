// Weighted max-min shares: the fair way to divide what not all can have in full. Pure.
#pragma once

#include <span>
#include <vector>

namespace spoke::base {

struct Claimant {
  double demand = 0;  // The most that it could use.
  double weight = 1;  // The weight is above 0.
  double min = 0;     // The part that comes first, as far as the demand goes.
  double max = 0;     // The most that it may get; 0: no such bound.
};

// A share for each, in the same order: not above demand and max; not below min as long as demand is
// not and all mins fit (else they are cut alike); all of `capacity` is used when the demands are
// that large; and nobody could get more without somebody with a smaller share for its weight
// getting less (Bertsekas and Gallager, Data Networks, 6.5.2). Linear in practice. Negative numbers
// count as 0.
std::vector<double> WeightedMaxMin(double capacity, std::span<const Claimant> claimants);

}  // namespace spoke::base
