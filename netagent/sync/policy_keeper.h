// Takes the node's policy from the server, keeps it across the agent's restarts, and says so.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "lib/telemetry/log.h"
#include "netagent/core/policy_bundle.h"
#include "netagent/sync/server_link.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it.
//
// A policy is acknowledged only once it is in force and written. One that cannot be taken or
// written is answered with what is wrong, and the last good one stays: in memory and in the file.
class PolicyKeeper {
 public:
  // Borrows `server` and `log`. `path` is on tmpfs; its directory must exist.
  // `put_in_force` may be empty; what it refuses is not taken.
  PolicyKeeper(std::string path, ServerLink& server, telemetry::Log& log,
               std::function<absl::Status(const Policy&)> put_in_force = {})
      : path_(std::move(path)),
        server_(server),
        log_(log),
        put_in_force_(std::move(put_in_force)) {}

  // Reads what the last agent kept. A file that is missing or cannot be read is no policy; the
  // latter is complained about, and the server asked for all of it.
  void Start();

  // Acknowledges `update`, with an error or without. A change relative to a version that is not
  // here also ends the session: the next hello asks for all of it.
  void OnPolicy(const PolicyUpdate& update);

  // What is in force.
  const Policy& policy() const { return policy_; }

  // What was in force is not known: it was kept, and cannot be read.
  bool lost() const { return lost_; }
  // What is here could not be put in force: the next hello asks for all of it, and the server hears
  // why it is refused.
  void NotInForce() {
    ask_for_all_ = true;
    in_force_ = false;
  }

  // For the hello: 0 when all of it has to be sent.
  uint64_t VersionForHello() const { return ask_for_all_ ? 0 : policy_.version; }

 private:
  absl::Status Take(const PolicyUpdate& update);

  const std::string path_;
  ServerLink& server_;
  telemetry::Log& log_;
  const std::function<absl::Status(const Policy&)> put_in_force_;
  Policy policy_;
  bool ask_for_all_ = false;
  bool lost_ = false;
  bool in_force_ = true;  // What is in policy_.
};

}  // namespace spoke::netagent
