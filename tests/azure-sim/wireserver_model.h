// The wireserver, as each VM sees it at 168.63.129.16: which addresses the fabric has programmed
// for its NICs. Pure; not thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "lib/http/message.h"
#include "tests/azure-sim/backend.h"

namespace spoke::azure_sim {

class WireserverModel {
 public:
  // The backend is borrowed.
  explicit WireserverModel(Backend& backend) : backend_(backend) {}

  // Returns what the VM with this id gets. Status 0: there is no such VM.
  http::Response Handle(const http::Request& request, std::string_view instance_id, absl::Time now);

  // Returns <Interfaces>...</Interfaces>.
  std::string InterfaceInfo(const Instance& instance) const;

 private:
  Backend& backend_;
};

}  // namespace spoke::azure_sim
