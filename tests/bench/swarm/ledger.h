// The one book of all simulated nodes: which node was given which address, and what the server did
// wrong. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "lib/ip/address.h"

namespace spoke::swarm {

class Ledger {
 public:
  // `node` was told that it has `address`. Returns the node that has it already and has not given
  // it up; nothing changes then. Claiming twice for one node has the effect of once.
  std::optional<uint32_t> Claim(const ip::Address& address, uint32_t node);

  // `node` has agreed to be rid of `address`: from now on another may be given it. Nothing changes
  // when it is not the node's.
  void GiveUp(const ip::Address& address, uint32_t node);

  size_t size() const;

  // Notes a fault of the server. `kind` is a stable word; only the first texts are kept.
  void Complain(std::string_view kind, std::string text);

  struct Complaints {
    uint64_t total = 0;
    std::map<std::string, uint64_t> by_kind;
    std::vector<std::string> first;  // At most kTextsKept, with their kinds.
  };
  static constexpr size_t kTextsKept = 20;
  Complaints complaints() const;

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<ip::Address, uint32_t, ip::AddressHash> owners_ ABSL_GUARDED_BY(mutex_);
  Complaints complaints_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::swarm
