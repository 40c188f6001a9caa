// Tells whether this node can take pods, and if not, why and what to do about it: what the agent's
// readiness says. Pure.
//
// Readiness is for those who roll agents out and for people; it never keeps the agent from serving
// pods. So a server that goes away later takes nothing back.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace spoke::netagent {

struct ServiceFacts {
  std::string server;  // The server's address.
  // Whether there was a session since this agent started.
  bool session_established = false;
  // Why the last attempt or session ended; OK: none has.
  absl::Status last_attempt;
  // Why it has no certificate to begin one with, and the remedy; empty: it has one.
  std::string no_certificate;
  std::string nic;
  absl::Status nic_state;                  // Not OK: the device cannot be read.
  std::string cni_reason;                  // What keeps plugin and conflist from their place.
  std::vector<std::string> node_findings;  // Findings that block pods, each with its remedy.
};

// Returns a line for each reason: what is wrong, and its remedy. None: it is ready.
std::vector<std::string> ReasonsNotReady(const ServiceFacts& facts);

// Returns what to do about an attempt that ended so, by gRPC's words for it.
std::string RemedyFor(const absl::Status& attempt);

}  // namespace spoke::netagent
