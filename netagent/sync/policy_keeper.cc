#include "netagent/sync/policy_keeper.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "netagent/journal/policy_codec.h"

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

void PolicyKeeper::OnPolicy(const PolicyUpdate& update) {
  const absl::Status taken = Take(update);
  server_.AcknowledgePolicy({update.version, std::string(taken.message())});
  if (taken.ok()) {
    ask_for_all_ = false;
    lost_ = false;
    log_.Info("policy_taken", {{"version", policy_.version}, {"objects", policy_.entries.size()}});
    return;
  }
  log_.Error("policy_refused",
             {{"version", update.version}, {"kept", policy_.version}, {"error", taken}});
  if (absl::IsAborted(taken)) {
    ask_for_all_ = true;
    server_.BeginAnew("the policy that came is relative to another one");
  }
}

absl::Status PolicyKeeper::Take(const PolicyUpdate& update) {
  ASSIGN_OR_RETURN(Policy next, ApplyPolicy(policy_, update));
  if (next == policy_ && in_force_) return absl::OkStatus();
  if (put_in_force_) RETURN_IF_ERROR(put_in_force_(next));
  in_force_ = true;
  // Visible is enough: after a reboot the server sends all of it.
  const absl::Status kept =
      base::Annotate(os::WriteFileAtomic(path_, EncodePolicyFile(next), os::Durability::kVisible),
                     "keep the policy");
  if (!kept.ok()) {
    // What is in force is what is acknowledged. If this fails too, the next policy puts it right.
    if (put_in_force_) put_in_force_(policy_).IgnoreError();
    return kept;
  }
  policy_ = std::move(next);
  return absl::OkStatus();
}

}  // namespace spoke::netagent
