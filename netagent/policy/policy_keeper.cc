#include "netagent/policy/policy_keeper.h"

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/policy/wire.h"
#include "netagent/policy/policy_file.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::netagent {

void PolicyKeeper::Start() {
  const auto bytes = os::ReadFile(path_);
  if (absl::IsNotFound(bytes.status())) return;
  auto policy = bytes.ok() ? DecodePolicyFile(*bytes) : bytes.status();
  if (!policy.ok()) {
    log_.Error("policy_unreadable", {{"file", path_}, {"error", policy.status()}});
    lost_ = true;
    return;
  }
  policy_ = *std::move(policy);
  log_.Info("policy_restored", {{"version", policy_.version}, {"objects", policy_.entries.size()}});
}

void PolicyKeeper::OnPolicy(const node_api::PolicyUpdate& update) {
  const uint64_t number = ++updates_;
  const uint64_t version = update.bundle->version();
  auto next = ApplyPolicy(policy_, policy::FromWire(*update.bundle));
  if (!next.ok()) return Answer({.version = version, .error = ""}, next.status());
  Proposed proposed{.policy = *std::move(next), .limit = std::nullopt};
  if (update.max_cut_permille) proposed.limit = CutLimit{.permille = *update.max_cut_permille};
  if (!callbacks_.count_cuts || (proposed.policy == policy_ && in_force_)) {
    return Answer({.version = version, .error = ""}, Take(std::move(proposed.policy)));
  }
  const Policy& policy = proposed.policy;
  callbacks_.count_cuts(policy, [this, number, proposed](const auto& count) {
    if (number == updates_) OnCounted(proposed, count);
  });
}

void PolicyKeeper::OnCounted(Proposed proposed,
                             const absl::StatusOr<std::optional<CutsByRule>>& count) {
  node_api::PolicyAck ack{.version = proposed.policy.version, .error = ""};
  if (count.ok() && count->has_value()) ack.cut = SaidOf(**count);
  absl::Status may;
  if (!count.ok()) {
    log_.Warn("policy_cut_not_counted", {{"version", ack.version}, {"error", count.status()}});
    if (proposed.limit && !absl::IsUnimplemented(count.status())) {
      may = base::Annotate(count.status(), "count the connections that it would end");
    }
  } else if (proposed.limit && count->has_value() && !proposed.limit->Admits(**count)) {
    may = absl::FailedPreconditionError(
        fmt::format("would end {} of the node's {} connections, more than {:.3g} %; to go on, see: "
                    "spokectl rollout resume",
                    (*count)->cut(), (*count)->connections, proposed.limit->permille / 10.0));
  }
  ack.held = !may.ok();
  Answer(ack, ack.held ? may : Take(std::move(proposed.policy)));
}

void PolicyKeeper::Answer(const node_api::PolicyAck& ack, const absl::Status& taken) {
  node_api::PolicyAck said = ack;
  said.error = std::string(taken.message());
  server_.AcknowledgePolicy(said);
  if (taken.ok()) {
    ask_for_all_ = false;
    lost_ = false;
    log_.Info("policy_taken", {{"version", policy_.version}, {"objects", policy_.entries.size()}});
    return;
  }
  log_.Error("policy_refused",
             {{"version", ack.version}, {"kept", policy_.version}, {"error", taken}});
  if (absl::IsAborted(taken)) {
    ask_for_all_ = true;
    server_.BeginAnew("the policy that came is relative to another one");
  }
}

absl::Status PolicyKeeper::Take(Policy next) {
  if (next == policy_ && in_force_) return absl::OkStatus();
  if (callbacks_.put_in_force) RETURN_IF_ERROR(callbacks_.put_in_force(next));
  in_force_ = true;
  // Visible is durable enough: after a reboot the server sends all of it.
  const absl::Status kept =
      base::Annotate(os::WriteFileAtomic(path_, EncodePolicyFile(next), os::Durability::kVisible),
                     "keep the policy");
  if (!kept.ok()) {
    // What is in force is what is acknowledged. If this fails too, the next policy puts it right.
    if (callbacks_.put_in_force) callbacks_.put_in_force(policy_).IgnoreError();
    return kept;
  }
  policy_ = std::move(next);
  return absl::OkStatus();
}

}  // namespace spoke::netagent
