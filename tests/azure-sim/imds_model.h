// The instance metadata service, as each VM sees it at 169.254.169.254: instance documents, tokens
// of managed identities, scheduled events. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "lib/http/message.h"
#include "tests/azure-sim/backend.h"

namespace spoke::azure_sim {

struct ScheduledEvent {
  std::string id;
  std::string type = "Reboot";         // The type: Reboot, Redeploy, Freeze, Preempt or Terminate.
  std::vector<std::string> resources;  // The names of instances: "pool_0".
  absl::Time not_before;
  bool started = false;
  std::string description;
  std::string source = "Platform";  // Or "User".
  int duration_seconds = -1;        // The default says that it is unknown.
  // How long after its beginning it is over, and leaves the document.
  absl::Duration over_after = absl::Minutes(10);
  absl::Time begun = absl::InfiniteFuture();
};

class ImdsModel {
 public:
  // The backend is borrowed: documents show its world, knobs rule here as well.
  explicit ImdsModel(Backend& backend) : backend_(backend) {}

  // Returns what the VM with this id gets. Status 0: there is no such VM, so nobody answers.
  http::Response Handle(const http::Request& request, std::string_view instance_id, absl::Time now);

  // Shows an event to all VMs of the set that has the instances. Returns the event's id.
  std::string Schedule(ScheduledEvent event);

  // Returns the whole document: {"compute": ..., "network": ...}.
  Json Document(const Instance& instance, absl::Time now) const;

 private:
  struct Rate {
    int64_t second = 0;
    int calls = 0;
  };

  http::Response HandleInstance(const Target& target, const Instance& instance, absl::Time now);
  http::Response HandleToken(const Target& target, absl::Time now);
  http::Response HandleEvents(const http::Request& request, const Instance& instance,
                              absl::Time now);
  void MoveEvents(absl::Time now);
  std::optional<http::Response> Refuse(const http::Request& request, const Target& target,
                                       const Instance& instance, absl::Time now);
  bool TakeOne(const std::string& key, int per_second, absl::Time now);
  Json Compute(const Instance& instance) const;
  Json Network(const Instance& instance, absl::Time now) const;

  Backend& backend_;
  std::unordered_map<std::string, Rate> rates_;
  std::vector<ScheduledEvent> events_;
  int64_t incarnation_ = 1;
};

}  // namespace spoke::azure_sim
