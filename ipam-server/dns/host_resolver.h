// Asks which addresses hosts have. An edge: SystemResolver asks the machine's resolver,
// FakeResolver is told; host_resolver_contract.h holds both to this.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

// The addresses by name; each list is sorted, without repetition and never empty.
using HostAddresses = std::map<std::string, std::vector<ip::Address>>;

// Thread-safe.
class HostResolver {
 public:
  virtual ~HostResolver() = default;

  // The addresses of those of `names` that are known before `limit` (of real time) is over, for all
  // of them together. A name that does not exist, whose servers do not answer, or for which there
  // was no time is left out. Blocks the caller, for at most `limit`.
  virtual HostAddresses Resolve(const std::vector<std::string>& names, absl::Duration limit) = 0;
};

}  // namespace spoke::ipam
