// Finds out that another machine has an address of this node: asks the network about what is new
// here, hears what it says otherwise (verification/address_questions.h decides), and tells
// Attachments.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attachments.h"
#include "netagent/verification/address_questions.h"
#include "netagent/verification/neighbour_watch.h"

namespace spoke::netagent {

// The pauses between two looks at what was heard: while answers may come, and otherwise.
inline constexpr absl::Duration kAnswerLookPause = absl::Milliseconds(100);
inline constexpr absl::Duration kListenPause = absl::Seconds(1);

// Not thread-safe; the agent's one loop owns it. For networks that leave ARP and Neighbour
// Discovery to their machines: a cloud's fabric answers by itself for every address.
//
// A question about an address that a pod of ours uses is answered (IPv4), so that the machine that
// asks leaves it alone; another agent of ours then does not assign it.
class ConflictDetector {
 public:
  struct Edges {
    NeighbourWatch& neighbours;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  // Borrows the edges and `attachments`.
  ConflictDetector(const Edges& edges, Attachments& attachments)
      : edges_(edges), attachments_(attachments) {}

  // Does what is due. Call it after every change of what is attached, before anything of it is
  // assigned, and at NextWake(). Never blocks.
  void Tick();
  absl::Time NextWake() const;

 private:
  absl::Time NextLook() const;
  void LookAtOwn(absl::Time now);
  void Listen();
  // The unused address of each pool that has one.
  std::map<std::string, ip::Address> UnusedByPool() const;
  void Hear(absl::Time now);
  void Answer(const NeighbourClaim& claim);
  void Tell(absl::Time now);
  void Ask(absl::Time now);
  // These log the first of several failures in a row.
  void NoteHearing(const absl::Status& status);
  void NoteSending(const absl::Status& status);

  const Edges edges_;
  Attachments& attachments_;
  AddressQuestions questions_;
  // What the questions go by: the last version of Assignments::Own() that was seen, the pools'
  // unused addresses, and an address of ours in each network.
  std::optional<uint64_t> own_version_;
  std::map<std::string, ip::Address> unused_;
  std::map<std::pair<std::optional<ip::MacAddress>, ip::Family>, ip::Address> networks_;
  absl::Time last_look_ = absl::InfinitePast();
  absl::Status listening_;          // How listening to all NICs went.
  std::set<ip::Address> answered_;  // Addresses answered for since the last look.
  bool hearing_failed_ = false;
  bool sending_failed_ = false;
};

}  // namespace spoke::netagent
