// Brings lendings, journal, kernel and server together: the only writer of each on this node.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/core/lendings.h"
#include "netagent/core/server_messages.h"
#include "netagent/journal/journal.h"
#include "netagent/kernel/router.h"

namespace spoke::netagent {

// The way to the server. Thread-safe; never blocks; says nothing while there is no session.
class ServerLink {
 public:
  virtual ~ServerLink() = default;
  virtual void Report(const LendingReport& report) = 0;
  virtual void Acknowledge(uint64_t desired_version) = 0;
};

// Not thread-safe; the agent's one loop owns it, since one thread does the kernel work.
class Attachments {
 public:
  struct Edges {
    Router& router;
    ServerLink& server;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  struct Settings {
    std::string node_name;
    std::string nic;
    absl::Duration cooldown = absl::Seconds(30);
    uint32_t mtu = 0;  // Of pod links, in bytes; 0: what the NIC has at Start().
  };
  // Borrows the edges.
  Attachments(Settings settings, const Edges& edges, std::unique_ptr<Journal> journal);

  // Replays `events`, undoes what was begun and not finished, and withholds every address that is
  // routed to a link of ours which the journal does not know: a pod may be using it.
  // Errors: what the kernel says; call it again.
  absl::Status Start(const std::vector<Event>& events);

  // Lends addresses and builds the link. On an error nothing is left behind.
  // Errors: kResourceExhausted (no free address: the message names the pools with their counts);
  // kAlreadyExists (`key` has a lending, or the interface is there); kFailedPrecondition and the
  // rest as Router::Attach; kUnavailable (the journal cannot be written).
  absl::StatusOr<AttachSpec> Add(const AttachmentKey& key, const PodReference& pod, int pod_netns);

  // Takes the link down and lets the addresses cool. OK when there is nothing to do.
  // Errors: kInternal and kUnavailable: nothing is freed, try again.
  absl::Status Del(const AttachmentKey& key);

  // The server's word on what this node has. Errors: kUnavailable (not journalled: the old list
  // stands, and nothing is acknowledged).
  absl::Status OnDesired(const DesiredState& desired);

  // To begin a session with.
  Greeting Greet() const;

  // Ends cooldowns that are over. Call at NextWake(), or at any time.
  void Tick();
  std::optional<absl::Time> NextWake() const { return lendings_.NextCooldownEnd(); }

  const Lendings& lendings() const { return lendings_; }

 private:
  absl::Status Record(const Event& event);
  absl::Status UndoUnfinished();
  absl::Status AdoptUnknownLinks();
  absl::Status SyncUnreachable();
  absl::Status ExplainEmpty(const absl::Status& why) const;
  std::vector<Holding> NextListing(const DesiredState& desired) const;

  const Settings settings_;
  Router& router_;
  ServerLink& server_;
  const os::Clock& clock_;
  telemetry::Log& log_;
  const std::unique_ptr<Journal> journal_;
  Lendings lendings_;
  std::vector<Holding> listing_;          // As the server last said.
  std::vector<PoolState> pools_;          // Likewise.
  std::vector<ip::Address> unreachable_;  // As the kernel was last told.
  uint32_t mtu_ = 0;                      // Of pod links; known from Start() on.
};

}  // namespace spoke::netagent
