// A resolver that is told what there is. Tests only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/dns/host_resolver.h"

namespace spoke::ipam {

class FakeResolver final : public HostResolver {
 public:
  // Sets a name's addresses from now on; without an address the name is not there.
  void Set(const std::string& name, std::vector<ip::Address> addresses) {
    absl::MutexLock lock(&mutex_);
    known_.erase(name);
    if (!addresses.empty()) known_.emplace(name, std::move(addresses));
  }

  HostAddresses Resolve(const std::vector<std::string>& names, absl::Duration /*limit*/) override {
    absl::MutexLock lock(&mutex_);
    HostAddresses found;
    for (const std::string& name : names) {
      if (const auto it = known_.find(name); it != known_.end()) found.insert(*it);
    }
    return found;
  }

 private:
  absl::Mutex mutex_;
  HostAddresses known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
