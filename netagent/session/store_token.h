// Keeps what the server last told this node of its store, for the next hello, so that a server with
// an older store finds out (proto/spoke/v1/node.proto). The agent cannot read it, and need not.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/telemetry/log.h"

namespace spoke::netagent {

// Not thread-safe; the agent's loop owns it.
class StoreToken {
 public:
  // Reads the first of `files` that is there; the others are for when it is lost, such as one that
  // outlives a reboot. Borrows `log`.
  StoreToken(std::vector<std::string> files, telemetry::Log& log);

  // The token; empty: none yet.
  const std::string& token() const { return token_; }
  // Writes it to all files. A file that cannot be written is complained about once: then other
  // nodes find out a server with an older store.
  void Keep(const std::string& token);

 private:
  const std::vector<std::string> files_;
  telemetry::Log& log_;
  std::string token_;
  bool complained_ = false;
};

}  // namespace spoke::netagent
