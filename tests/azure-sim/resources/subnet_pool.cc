#include "tests/azure-sim/resources/subnet_pool.h"

#include <algorithm>
#include <bit>

#include "lib/base/check.h"

namespace spoke::azure_sim {
namespace {

constexpr uint64_t kMostV6 = 65'536;
constexpr uint64_t kMostV4 = 1ULL << 24U;  // The addresses of a /8, the largest subnet there is.
constexpr uint64_t kFirstUsable = 4;
constexpr uint64_t kBlock = 16;

}  // namespace

SubnetPool::SubnetPool(const ip::Prefix& prefix)
    : prefix_(prefix),
      size_(std::min(prefix.size(), prefix.base().is_v4() ? kMostV4 : kMostV6)),
      free_(0),
      used_((size_ + 63) / 64, 0) {
  CHECK(size_ >= 8, "no subnet is smaller than a /29");
  for (uint64_t offset = 0; offset < kFirstUsable; ++offset) Mark(offset);
  // The tail of the last word lies outside, and the last address is the broadcast address.
  for (uint64_t offset = size_ - 1; offset < used_.size() * 64; ++offset) Mark(offset);
  free_ = size_ - kFirstUsable - 1;
}

std::optional<ip::Address> SubnetPool::TakeLowest() {
  while (lowest_word_ < used_.size() && used_[lowest_word_] == ~uint64_t{0}) ++lowest_word_;
  if (lowest_word_ == used_.size()) return std::nullopt;
  const auto bit = static_cast<uint64_t>(std::countr_one(used_[lowest_word_]));
  const uint64_t offset = lowest_word_ * 64 + bit;
  Mark(offset);
  --free_;
  return ip::Advance(prefix_.base(), offset);
}

std::optional<ip::Address> SubnetPool::TakeBlock() {
  constexpr uint64_t kMask = 0xFFFF;
  for (; (lowest_block_ + 1) * kBlock <= size_; ++lowest_block_) {
    const uint64_t offset = lowest_block_ * kBlock;
    uint64_t& word = used_[offset / 64];
    const uint64_t mask = kMask << (offset % 64);
    if ((word & mask) != 0) continue;
    word |= mask;
    free_ -= kBlock;
    return ip::Advance(prefix_.base(), offset);
  }
  return std::nullopt;
}

SubnetPool::Taken SubnetPool::Take(const ip::Address& address) {
  if (!prefix_.Contains(address)) return Taken::kOutside;
  const uint64_t offset = ip::Distance(prefix_.base(), address);
  if (offset < kFirstUsable || offset + 1 >= size_) return Taken::kReserved;
  if (IsUsed(offset)) return Taken::kInUse;
  Mark(offset);
  --free_;
  return Taken::kYes;
}

void SubnetPool::Free(const ip::Address& base, uint64_t count) {
  const uint64_t first = ip::Distance(prefix_.base(), base);
  for (uint64_t offset = first; offset < first + count; ++offset) {
    CHECK(offset < size_ && IsUsed(offset), "only what was taken is given back");
    used_[offset / 64] &= ~(uint64_t{1} << (offset % 64));
    ++free_;
  }
  lowest_word_ = std::min(lowest_word_, first / 64);
  lowest_block_ = std::min(lowest_block_, first / kBlock);
}

}  // namespace spoke::azure_sim
