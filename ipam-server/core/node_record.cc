#include "ipam-server/core/node_record.h"

namespace spoke::ipam {

void AddressCounts::Add(const HeldAddress& held) {
  switch (held.state) {
    case LeaseState::kFree:
      return;
    case LeaseState::kAttaching:
      ++attaching;
      return;
    case LeaseState::kDetaching:
      ++detaching;
      return;
    case LeaseState::kAttached:
      break;
  }
  switch (held.use) {
    case Use::kIdle:
      ++idle;
      return;
    case Use::kLent:
      ++lent;
      return;
    case Use::kCooling:
      ++cooling;
      return;
  }
}

AddressCounts CountAddresses(const NodeRecord& record) {
  AddressCounts counts;
  for (const auto& [address, held] : record.addresses) counts.Add(held);
  return counts;
}

AddressCounts CountAddresses(const NodeRecord& record, ip::Family family) {
  AddressCounts counts;
  for (const auto& [address, held] : record.addresses) {
    if (address.family() == family) counts.Add(held);
  }
  return counts;
}

}  // namespace spoke::ipam
