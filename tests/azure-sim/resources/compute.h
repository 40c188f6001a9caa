// Microsoft.Compute: scale sets, their instances, and virtual machines of Flexible sets. Pure; not
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/http/message.h"
#include "tests/azure-sim/backend.h"
#include "tests/azure-sim/resources/profile.h"

namespace spoke::azure_sim {

class Compute {
 public:
  explicit Compute(Backend& backend) : backend_(backend) {}

  // -- Requests whose group is known to be there, for paths below "/providers/Microsoft.Compute".
  // `rest` is where the segment behind the provider is: 6 in a group, 4 in a subscription.
  http::Response Handle(Call& call, ResourceGroup* group, size_t rest);

  // -- What happens without a request. `when` is now.
  // Starts the deletion of an instance, as DELETE does.
  void DeleteInstance(Instance& instance, absl::Time when);
  // Takes it away at once, as a failing host or a forced deletion does.
  void RemoveInstance(Instance& instance, absl::Time when);
  // Gives instances the network profile of their set: "manualupgrade".
  void Upgrade(const std::vector<Instance*>& instances, absl::Time when);
  void Reimage(Instance& instance, absl::Time when);
  // Returns false when the subnet is full.
  bool AddInstances(ScaleSet& set, int count, absl::Time when);
  // Another writer adds a backend pool to the instance's primary IP configuration.
  void WriteAsForeigner(Instance& instance);

 private:
  // -- Sets (compute_sets.cc).
  http::Response ListSets(Call& call, ResourceGroup* group);
  http::Response OneSet(Call& call, ResourceGroup& group);
  http::Response GetSet(Call& call, ScaleSet& set);
  http::Response PutSet(Call& call, ResourceGroup& group, ScaleSet* set);
  static std::optional<http::Response> RefuseSetWrite(const Call& call, const ResourceGroup& group,
                                                      const ScaleSet* set, const Json& body);
  http::Response DeleteSet(Call& call, ScaleSet& set);
  http::Response UpgradeInstances(Call& call, ScaleSet& set);
  Parsed<ScaleSet*> CreateSet(const Json& body, const Call& call, ResourceGroup& group);
  // Returns a response when the body does not fit. `changed` says whether it says anything new.
  std::optional<http::Response> ApplyToSet(const Json& body, ScaleSet& set, bool* changed);
  void FinishSet(ScaleSet& set, const std::string& operation, absl::Time when);

  // -- Instances (compute_instances.cc).
  http::Response BelowSet(Call& call, ScaleSet& set);
  http::Response ListInstances(Call& call, ScaleSet& set);
  http::Response OneInstance(Call& call, ScaleSet& set);
  http::Response GetInstance(Call& call, Instance& instance, bool view_only);
  http::Response PutInstance(Call& call, Instance& instance);
  http::Response DeleteInstanceRequest(Call& call, Instance& instance);
  http::Response ReimageRequest(Call& call, Instance& instance);
  std::optional<http::Response> RefuseWrite(Call& call, Instance& instance, const Json& body);
  // Returns whether something else runs on it; a knob decides who yields.
  std::optional<http::Response> Preempt(Instance& instance, absl::Time now);
  std::optional<http::Response> TakeProfile(const Json& properties, Instance& instance,
                                            bool* changed);
  // Gives the instance what its profile says; `fate` is how that ends.
  void Carry(Instance& instance, const std::string& operation, const Backend::Fate& fate);
  // Returns false when a subnet is full, and `error` says so.
  bool Realize(Instance& instance, absl::Time when, Backend::AssignError* error);
  void MarkGone(ScaleSet& set, int64_t number, absl::Time when);

  // -- Flexible (compute_machines.cc).
  http::Response Machines(Call& call, ResourceGroup* group, size_t rest);
  http::Response ListMachines(Call& call, ResourceGroup* group);
  http::Response OneMachine(Call& call, ResourceGroup& group);
  http::Response GetMachine(Call& call, Instance& instance);
  http::Response WriteMachine(Call& call, Instance& instance);
  // Returns what the request's etags say against it.
  static std::optional<http::Response> RefuseStale(const Call& call, const Instance& instance);

  // Answers 202, with an operation that succeeds at `end`. Its id goes to `id`, unless that is
  // null.
  http::Response Accept(Call& call, const ScaleSet& set, absl::Time end, std::string* id = nullptr);
  // Does the same for what deletes instances: by its end they are gone, however long each takes.
  http::Response AcceptDeletion(Call& call, const ScaleSet& set, std::string* id = nullptr);

  Throttle::Scope ScopeOf(const ScaleSet& set) const;
  Throttle::Scope ScopeOf(const Instance& instance) const;

  Backend& backend_;
};

// Returns whether `if_match`, an If-Match header, allows to write a resource with this etag.
bool EtagMatches(std::string_view if_match, std::string_view etag);

}  // namespace spoke::azure_sim
