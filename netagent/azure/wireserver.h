// HostList from Azure's wire server, which a VM reaches at 168.63.129.16 whatever its network.
#pragma once

#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/ip/address.h"
#include "netagent/azure/fetch.h"
#include "netagent/azure/wireserver_interfaces.h"
#include "netagent/sync/host_list.h"

namespace spoke::netagent::azure {

inline constexpr absl::Duration kWireserverTimeout = absl::Seconds(3);

// Asks once and waits. `url` is "http://168.63.129.16". Errors: kUnavailable (no answer, or another
// HTTP status than 200), kInvalidArgument (an answer that cannot be read); they name the URL.
absl::StatusOr<std::vector<HostInterface>> ReadWireserver(const std::string& url,
                                                          const Fetch& fetch);

// The addresses of the NIC with that MAC, over all its subnets, blocks taken apart. Pure. Errors:
// kNotFound (no such NIC; the message has those there are); kInvalidArgument (more addresses than
// kMaxHostAddresses, which no NIC has).
inline constexpr uint64_t kMaxHostAddresses = 8192;
absl::StatusOr<std::set<ip::Address>> AddressesOf(const std::vector<HostInterface>& interfaces,
                                                  const ip::MacAddress& mac);

// Thread-safe. One thread of its own, on which `fetch` is called.
class WireserverList final : public HostList {
 public:
  WireserverList(std::string url, Fetch fetch, const ip::MacAddress& mac);
  WireserverList(const WireserverList&) = delete;
  WireserverList& operator=(const WireserverList&) = delete;
  // Waits for the reading that is under way, if one is.
  ~WireserverList() override;

  bool Read(Done done) override;

 private:
  void Run();

  const std::string url_;
  const Fetch fetch_;
  const ip::MacAddress mac_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Done wanted_ ABSL_GUARDED_BY(mutex_);  // Stays until its reading is done.
  std::thread thread_;
};

}  // namespace spoke::netagent::azure
