// Takes the node's policy from the server, keeps it across the agent's restarts, and says so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/telemetry/log.h"
#include "netagent/connections/cuts_by_rule.h"
#include "netagent/policy/policy_bundle.h"
#include "netagent/session/server_link.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it.
//
// A policy is acknowledged only once it is in force and written. One that cannot be taken or
// written, or that would end more connections than it may, is answered with what is wrong, and the
// last good one stays: in memory and in the file.
class PolicyKeeper {
 public:
  // nullopt: nothing was counted, since the policy ends none that those in force do not end as
  // well.
  using CountDone = std::function<void(absl::StatusOr<std::optional<CutsByRule>>)>;
  struct Callbacks {
    // Puts a policy in force; what it refuses is not taken. May be empty.
    std::function<absl::Status(const Policy&)> put_in_force = {};
    // Counts how many connections the policy would end. Answers on the loop's thread, at once or
    // later; kUnimplemented: nobody can know on this node. May be empty: no policy ends any.
    std::function<void(const Policy&, CountDone)> count_cuts = {};
  };

  // Borrows `server` and `log`. `path` is on tmpfs; its directory must exist.
  PolicyKeeper(std::string path, ServerLink& server, telemetry::Log& log)
      : PolicyKeeper(std::move(path), server, log, Callbacks()) {}
  PolicyKeeper(std::string path, ServerLink& server, telemetry::Log& log, Callbacks callbacks)
      : path_(std::move(path)), server_(server), log_(log), callbacks_(std::move(callbacks)) {}

  // Reads what the last agent kept. A file that is missing or cannot be read is no policy; the
  // latter is complained about, and the server asked for all of it.
  void Start();

  // Acknowledges `update`, with an error or without, once its connections are counted; not at all
  // where another update comes before that. A change relative to a version that is not here also
  // ends the session: the next hello asks for all of it.
  void OnPolicy(const node_api::PolicyUpdate& update);

  // The policy in force.
  const Policy& policy() const { return policy_; }

  // Whether what was in force is not known: it was kept, and cannot be read.
  bool lost() const { return lost_; }
  // Notes that this policy could not be put in force: the next hello asks for all of it, and the
  // server hears why it is refused.
  void NotInForce() {
    ask_for_all_ = true;
    in_force_ = false;
  }

  // The version for the hello; 0 when all of it has to be sent.
  uint64_t VersionForHello() const { return ask_for_all_ ? 0 : policy_.version; }

 private:
  // The facts of an update while its connections are counted.
  struct Proposed {
    Policy policy;
    std::optional<CutLimit> limit;
  };
  void OnCounted(Proposed proposed, const absl::StatusOr<std::optional<CutsByRule>>& count);
  absl::Status Take(Policy next);
  void Answer(const node_api::PolicyAck& ack, const absl::Status& taken);

  const std::string path_;
  ServerLink& server_;
  telemetry::Log& log_;
  const Callbacks callbacks_;
  Policy policy_;
  uint64_t updates_ = 0;  // The number that have come.
  bool ask_for_all_ = false;
  bool lost_ = false;
  bool in_force_ = true;  // Whether policy_ is in force.
};

}  // namespace spoke::netagent
