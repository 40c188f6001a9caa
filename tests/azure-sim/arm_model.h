// Azure Resource Manager as a value: requests in, answers out, at a time the caller says. Pure; not
// thread-safe.
//
//   ASSIGN_OR_RETURN(auto arm, ArmModel::Build(SmallSpec(3), now));
//   const http::Response response = arm->Handle(request, now);
//
// Time only moves with `now`, which must never go back: what happens later (operations, lags,
// refills) is worked out when it is next asked. One seed gives one run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/http/message.h"
#include "tests/azure-sim/backend.h"
#include "tests/azure-sim/knobs.h"
#include "tests/azure-sim/resources/compute.h"
#include "tests/azure-sim/resources/network.h"
#include "tests/azure-sim/resources/operations.h"
#include "tests/azure-sim/resources/spec.h"

namespace spoke::azure_sim {

class ArmModel {
 public:
  // Errors: kInvalidArgument (as World::Build()); kResourceExhausted (a subnet is too small).
  static absl::StatusOr<std::unique_ptr<ArmModel>> Build(const SimSpec& spec, absl::Time now,
                                                         Knobs knobs = {});

  // Answers a request. Never fails. Status 0 stands for a response that was lost: whether the
  // request had an effect, the client cannot know.
  http::Response Handle(const http::Request& request, absl::Time now);

  // Lets everything happen that is due.
  void Advance(absl::Time now) { backend_.timeline().RunUntil(now); }
  // Returns when something happens next by itself; infinite future: nothing.
  absl::Time NextEvent() const { return backend_.timeline().next(); }

  // Returns the knobs, which may change at any time.
  Knobs& knobs() { return backend_.knobs(); }
  World& world() { return backend_.world(); }
  const World& world() const { return backend_.world(); }
  // Returns the calls, by kind and status, and what they did.
  const Counters& counters();
  Compute& compute() { return compute_; }
  Backend& backend() { return backend_; }

  // Returns what is on the wire now: on every NIC, with every address of it.
  struct OnWire {
    const Instance* instance = nullptr;
    const Nic* nic = nullptr;
    const NicEntry* entry = nullptr;
  };
  std::vector<OnWire> Wire() const;

 private:
  ArmModel(std::unique_ptr<World> world, uint64_t seed, Knobs knobs)
      : backend_(std::move(world), seed, std::move(knobs)),
        compute_(backend_),
        network_(backend_) {}

  http::Response Answer(Call& call);
  // Checks tokens, API versions and the front door. A response: refused.
  std::optional<http::Response> Admit(Call& call);
  http::Response Route(Call& call);
  // Refuses what is asked of no resource: unknown paths and versions, methods that the path has
  // not, and operations that are not simulated.
  std::optional<http::Response> RefuseOperation(Call& call, const PathOperations& path,
                                                const ResourceGroup* group);
  void Decorate(const Call& call, http::Response* response);
  void Count(const Call& call, int status);

  Backend backend_;
  Compute compute_;
  Network network_;
  // The front door's limits for the request under way.
  std::vector<std::pair<std::string, int64_t>> front_door_;
};

}  // namespace spoke::azure_sim
