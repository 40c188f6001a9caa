// Brings assignments, journal, kernel and server together: the only writer of each on this node.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/assignments.h"
#include "netagent/attach/attach_traces.h"
#include "netagent/attach/pod_traffic.h"
#include "netagent/journal/journal.h"
#include "netagent/links/links.h"
#include "netagent/links/nic_tables.h"
#include "netagent/session/greeting.h"
#include "netagent/session/server_link.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it, since one thread does the kernel work.
//
// Giving addresses up (see attach/assignments.h for what that means). An agreement is journalled
// before it is said. It belongs to the session in which it was said: the server acts upon it in
// that session or never. So
//
//   - a list of the same session that has the address does not lift the withdrawal: it may have
//     been sent before the agreement arrived. Only a change that takes the address off the list
//     does, which is how the server says that it has acted, and a later one brings it back anew;
//   - the whole list that a later session begins with does: had the server acted, the address would
//     not be on it;
//   - without the server, nothing does, restart or not.
//
// Requests, lists and hellos pass through one loop in the order of the streams they came by, and an
// answer is dropped with the stream of its request. So an agreement that is late, said in a session
// that is over, can never reach the server after it has listed the address anew.
//
// The server's part: it ignores answers of older sessions, and takes an agreement only for what was
// attached when it asked and has been ever since. With two requests that overlap, an address may
// have gone by the first and come back, and be assigned, before the answer to the second arrives.
class Attachments {
 public:
  struct Edges {
    Links& links;
    ServerLink& server;
    const os::Clock& clock;
    telemetry::Log& log;
    // The owners of pods' traffic, in the order in which they take a pod.
    std::vector<PodTraffic*> traffic = {};
  };
  struct Settings {
    std::string node_name;
    std::string nic;
    absl::Duration cooldown = absl::Seconds(30);
    uint32_t mtu = 0;  // The MTU of pod links in bytes; 0: the NIC's at Start().
    // The families whose addresses are proven before they are assigned, and what those that wait
    // are waiting for, in words.
    ProofRequired proof_required = {};
    std::function<std::string()> explain_unproven = {};
    // Whether a cooldown ends only after OnConnectionsDeleted().
    bool clearing_required = false;
    // Returns the trace by which the namespace of a descriptor is known again at its path. Empty:
    // none is known again.
    std::function<netns::Trace(const std::string& path, int netns)> trace_netns = {};
    // When the last use of an address ended that the journal does not know, by the clock: see
    // journal/clock_base.h. InfinitePast: there was none.
    absl::Time unrecorded_use_end = absl::InfinitePast();
  };
  // Borrows the edges.
  Attachments(Settings settings, const Edges& edges, std::unique_ptr<Journal> journal);

  // Replays `events`, lets no cooldown among them end later than one that begins now, undoes what
  // was begun and not finished, and withholds every address that is routed to a link of ours which
  // the journal does not know: a pod may be using it. Errors: what the kernel says; call it again.
  absl::Status Start(const std::vector<Event>& events);

  // Assigns addresses and builds the link. On an error nothing is left behind; where the kernel
  // refuses to take down what was built, the addresses stay assigned until a DEL, a Tick() or the
  // next agent has done it. Errors: those of Plan(); kAlreadyExists (the interface is there);
  // kFailedPrecondition and the rest of Links::Apply(), whose kResourceExhausted is kUnavailable
  // here: only for want of addresses is there something to wait for; kUnavailable (the journal
  // cannot be written).
  //
  // The same request again, with the same attempt (not 0), gives the same answer and changes
  // nothing: its plugin did not hear the first one. `steps` (may be null) gets the time of each.
  absl::StatusOr<AttachSpec> Add(const Assignment& asked, int pod_netns,
                                 StepTimes* steps = nullptr);

  // Returns what Add() would assign now. Errors: Assignments::PlanAssignment()'s, with every pool
  // and its counts in the message of kResourceExhausted and kPermissionDenied.
  absl::StatusOr<Assignment> Plan(const Assignment& asked) const;

  // Takes the link down and begins the cooldown of its addresses. OK when there is nothing to do.
  // Errors: kInternal and kUnavailable: nothing is freed, try again.
  absl::Status Del(const AttachmentKey& key);

  // Does Del() for a DEL that was asked for at `asked`, when no agent was there, unless the
  // assignment is younger, which then stays.
  absl::Status DelAskedAt(const AttachmentKey& key, absl::Time asked);

  // Does Del() for each attachment of the CNI network `network`, or of an unknown one, that is not
  // in `valid` and older than kGarbageAge: an ADD may be on its way to the runtime's list. Goes on
  // after an error, and returns the first. `deleted` counts the attachments.
  static constexpr absl::Duration kGarbageAge = absl::Seconds(60);
  absl::Status CollectGarbage(const std::string& network, const std::vector<AttachmentKey>& valid,
                              size_t& deleted);

  // Returns how `assignment` looks in the kernel. Errors: those of PlanAttach().
  absl::StatusOr<AttachSpec> SpecOf(const Assignment& assignment) const;

  // Every pod that has a link, for those who count.
  std::vector<TrafficPod> TrafficPods() const;

  // Takes the server's word on what this node has. What a whole list has and the journal does not
  // know may have been a pod's before the journal was lost, with the boot or otherwise, and the
  // server need not have heard of that pod: it is in cooldown from then. Errors: kUnavailable (not
  // journalled, and nothing is acknowledged: what the server sends next would be relative to a list
  // that is not here, so begin a new session).
  absl::Status OnDesired(const node_api::DesiredState& desired);

  // Gives up what can be given up, and answers. The same request again gives the same answer, as
  // long as nothing has been assigned in between. What cannot be journalled is denied.
  void OnReclaim(const node_api::ReclaimRequest& request);

  // Does Del() for the attachment that has the address, if it is still the same assignment.
  void OnEndAssignment(const node_api::EndAssignment& request);

  // Answers the request at once, from memory.
  void OnInventory(const node_api::InventoryRequest& request);

  // Notes that another machine answers for `address`: it is not assigned before that is over, or
  // the address has left the server's list; and the server is told, now, with each repetition, and
  // at the beginning of each session. A pod that has it keeps it. Errors: kNotFound (not an address
  // of this node); kUnavailable (not journalled: a restart forgets it).
  absl::Status OnConflict(const ip::Address& address,
                          const std::optional<ip::MacAddress>& other_mac);
  // Notes that no other machine answers for `address` any more. Does nothing for one that was not
  // in conflict. Errors: kUnavailable (not journalled, and so not done).
  absl::Status OnConflictOver(const ip::Address& address);

  // Notes that these addresses work, and may be assigned from now on. Errors: kUnavailable (not
  // journalled, and so not done).
  absl::Status OnProven(const std::vector<ip::Address>& addresses);

  // Notes that the kernel tracks no connections any more that these had when they were released.
  void OnConnectionsDeleted(const std::set<ip::Address>& addresses) {
    assignments_.SetCleared(addresses);
  }

  // Takes the addresses that are on the node's own device: none of them is assigned.
  void OnNicAddresses(std::set<ip::Address> addresses) {
    assignments_.SetOnNic(std::move(addresses));
  }

  // Takes the addresses that the network is being asked about: they are assigned after all others.
  void OnQuestions(std::set<ip::Address> open) { assignments_.SetUnasked(std::move(open)); }

  // Begins a new session: returns what to say first, except the policy.
  Greeting BeginSession();

  // Ends cooldowns that are over, tries again what the kernel refused, and tells the server what
  // has happened since, after the pods, who must not wait for it. Call it after each round of the
  // loop, and at NextWake().
  void Tick();
  std::optional<absl::Time> NextWake() const;

  const Assignments& assignments() const { return assignments_; }
  // The pools that this node draws from, as the server last said; empty: it has not yet.
  const std::vector<node_api::PoolState>& pools() const { return pools_; }

 private:
  absl::Status Record(const Event& event);
  absl::Status Build(const Assignment& assignment, const AttachSpec& spec, int pod_netns,
                     StepTimes* steps);
  TrafficPod TrafficPodOf(const Assignment& assignment, uint32_t host_index,
                          const std::string& host_link, const AttachSpec& spec) const;
  absl::Status TakeDown(const std::string& host_link);
  // Takes the link down, and ends its counting.
  absl::Status Undo(const std::string& host_link);
  absl::Status Release(const Assignment& assignment, const std::string& host_link);
  void UndoLeftovers();
  void SayNews();
  absl::Status UndoUnfinished();
  absl::Status AdoptUnknownLinks();
  absl::Status SyncUnreachable();
  void PrepareNicTables(const std::vector<Holding>& listing);
  // Adds every pool and its counts to `why`.
  absl::Status Explain(const absl::Status& why) const;
  std::vector<Holding> NextListing(const node_api::DesiredState& desired) const;
  std::vector<PoolRule> NextRules(const node_api::DesiredState& desired,
                                  const std::vector<Holding>& listing) const;
  std::vector<ip::Address> ListedAnew(const node_api::DesiredState& desired) const;
  // Begins the cooldowns that OnDesired() says. The longer one counts: the server may have another
  // in its configuration. Errors: Record()'s.
  absl::Status BeginCooldowns(const node_api::DesiredState& desired);

  const Settings settings_;
  Links& links_;
  ServerLink& server_;
  const os::Clock& clock_;
  telemetry::Log& log_;
  const std::vector<PodTraffic*> traffic_;
  const std::unique_ptr<Journal> journal_;
  Assignments assignments_;
  std::deque<Event> unwritten_;   // Applied, and not in the journal yet: they precede what follows.
  std::vector<Holding> listing_;  // The list that the server last said.
  std::vector<node_api::PoolState> pools_;  // The pools that the server last said.
  std::set<ip::Address> agreed_;            // Given up in the present session.
  // The version of Assignments::Attached() that the kernel was last told; nullopt: it was not.
  std::optional<uint64_t> unreachable_version_;
  ip::MacAddress first_nic_;  // The MAC of the node's first NIC; known from Start() on.
  NicTables nic_tables_;
  uint32_t mtu_ = 0;                              // The MTU of pod links; known from Start() on.
  std::vector<node_api::AssignmentReport> news_;  // Not said yet; each has one thing.
  // When to try again to undo what could not be undone; nullopt: there is nothing.
  std::optional<absl::Time> undo_at_;
  // When to try again to make the tables that could not be made; nullopt: there are none.
  std::optional<absl::Time> nic_tables_at_;
};

}  // namespace spoke::netagent
