#include "ipam-server/core/address_pool.h"

#include <utility>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

uint64_t UsableIn(const PoolSpec& spec) {
  const uint64_t reserved = uint64_t{spec.reserve_first} + spec.reserve_last;
  return spec.cidr.size() > reserved ? spec.cidr.size() - reserved : 0;
}

}  // namespace

AddressPool::AddressPool(PoolSpec spec) : spec_(std::move(spec)), usable_(UsableIn(spec_)) {}

absl::StatusOr<ip::Address> AddressPool::Take() {
  while (never_used_ < usable_) {
    const uint64_t offset = never_used_++;
    if (held_.insert(offset).second) return AddressAt(offset);
  }
  while (!returned_.empty()) {
    const uint64_t offset = returned_.front();
    returned_.pop_front();
    if (held_.insert(offset).second) return AddressAt(offset);
  }
  return absl::ResourceExhaustedError(Describe());
}

bool AddressPool::Hold(const ip::Address& address) {
  return Owns(address) && held_.insert(OffsetOf(address)).second;
}

bool AddressPool::Return(const ip::Address& address) {
  if (!Owns(address) || held_.erase(OffsetOf(address)) == 0) return false;
  // What lies ahead of the cursor will be met there; listing it twice would reuse it too early.
  if (OffsetOf(address) < never_used_) returned_.push_back(OffsetOf(address));
  return true;
}

bool AddressPool::Owns(const ip::Address& address) const {
  if (!spec_.cidr.Contains(address)) return false;
  if (ip::Distance(spec_.cidr.base(), address) < spec_.reserve_first) return false;
  return OffsetOf(address) < usable_;
}

bool AddressPool::Holds(const ip::Address& address) const {
  return Owns(address) && held_.contains(OffsetOf(address));
}

uint64_t AddressPool::OffsetOf(const ip::Address& address) const {
  return ip::Distance(spec_.cidr.base(), address) - spec_.reserve_first;
}

ip::Address AddressPool::AddressAt(uint64_t offset) const {
  return ip::Advance(spec_.cidr.base(), offset + spec_.reserve_first);
}

std::string AddressPool::Describe() const {
  return fmt::format("pool {} ({}): {} usable, {} attached, {} free", spec_.name,
                     spec_.cidr.ToString(), usable(), held(), free());
}

}  // namespace spoke::ipam
