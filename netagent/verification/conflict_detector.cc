#include "netagent/verification/conflict_detector.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace spoke::netagent {

void ConflictDetector::Tick() {
  const absl::Time now = edges_.clock.Now();
  const bool due = NextLook() <= now;
  const bool changed = own_version_ != attachments_.assignments().own_version() ||
                       (due && unused_ != UnusedByPool());
  if (changed) LookAtOwn(now);
  if (changed || due) Listen();
  if (due) {
    last_look_ = now;
    Hear(now);
  }
  // Of hundreds of addresses mostly none is asked about, but this runs before each ADD.
  if (!changed && !questions_.IsDue(now)) return;
  Tell(now);
  Ask(now);
  attachments_.OnQuestions(questions_.Open());
}

void ConflictDetector::LookAtOwn(absl::Time now) {
  const Assignments& assignments = attachments_.assignments();
  own_version_ = assignments.own_version();
  unused_ = UnusedByPool();
  networks_.clear();
  std::set<ip::Address> in_conflict;
  for (const ConflictNoted& conflict : assignments.Conflicts())
    in_conflict.insert(conflict.address);
  std::vector<OwnAddress> own;
  for (const ip::Address& address : assignments.Own()) {
    own.push_back({.address = address,
                   .nic = assignments.NicOf(address),
                   .in_conflict = in_conflict.contains(address)});
    const auto unused = unused_.find(assignments.PoolOf(address));
    if (unused != unused_.end() && unused->second.family() == address.family()) {
      own.back().control = unused->second;
    }
    networks_.try_emplace({own.back().nic, address.family()}, address);
  }
  questions_.SetOwn(own, now);
}

// Listens on each NIC, for each family. A NIC that is not there is told elsewhere.
void ConflictDetector::Listen() {
  listening_ = absl::OkStatus();
  for (const auto& [network, address] : networks_) {
    const absl::Status status = edges_.neighbours.Listen({address, network.first});
    if (!absl::IsNotFound(status)) listening_.Update(status);
  }
}

std::map<std::string, ip::Address> ConflictDetector::UnusedByPool() const {
  std::map<std::string, ip::Address> unused;
  for (const node_api::PoolState& state : attachments_.pools()) {
    if (state.unused) unused.emplace(state.name, *state.unused);
  }
  return unused;
}

void ConflictDetector::Hear(absl::Time now) {
  answered_.clear();
  const auto heard = edges_.neighbours.Take();
  absl::Status status = listening_;
  status.Update(heard.status());
  NoteHearing(status);
  if (!heard.ok()) return;
  for (const NeighbourClaim& claim : *heard) {
    if (claim.kind == NeighbourClaim::Kind::kAsks) Answer(claim);
    questions_.OnHeard(claim, now);
  }
  for (const ip::MacAddress& proxy : questions_.TakeProxies()) {
    edges_.log.Warn("proxy_on_network", {{"mac", proxy.ToString()}});
  }
}

void ConflictDetector::Answer(const NeighbourClaim& claim) {
  const Assignments& assignments = attachments_.assignments();
  if (!claim.address.is_v4() || !assignments.IsAssigned(claim.address) ||
      !answered_.insert(claim.address).second) {
    return;
  }
  NoteSending(
      edges_.neighbours.Answer({claim.address, assignments.NicOf(claim.address)}, claim.mac));
}

void ConflictDetector::Tell(absl::Time now) {
  for (const ConflictNoted& conflict : questions_.TakeConflicts(now)) {
    // An address that has gone since is nobody's; a failed journal entry has been logged.
    attachments_.OnConflict(conflict.address, conflict.other_mac).IgnoreError();
  }
  for (const ip::Address& address : questions_.TakeOver(now)) {
    attachments_.OnConflictOver(address).IgnoreError();
  }
}

void ConflictDetector::Ask(absl::Time now) {
  absl::Status first_error;
  const std::vector<Question> questions = questions_.TakeQuestions(now);
  for (const Question& question : questions) {
    const absl::Status status = edges_.neighbours.Ask(question);
    // Addresses on a NIC that is not there are not assigned, and hold up no other question.
    if (!absl::IsNotFound(status)) first_error.Update(status);
  }
  if (questions.empty()) return;
  if (!first_error.ok()) questions_.OnNotSent(now);
  NoteSending(first_error);
}

void ConflictDetector::NoteHearing(const absl::Status& status) {
  if (!status.ok() && !hearing_failed_) {
    edges_.log.Warn("neighbours_not_heard", {{"error", status}});
  }
  hearing_failed_ = !status.ok();
}

void ConflictDetector::NoteSending(const absl::Status& status) {
  if (!status.ok() && !sending_failed_) {
    edges_.log.Warn("neighbours_not_asked", {{"error", status}});
  }
  sending_failed_ = !status.ok();
}

absl::Time ConflictDetector::NextLook() const {
  return last_look_ + (questions_.IsAsking() ? kAnswerLookPause : kListenPause);
}

absl::Time ConflictDetector::NextWake() const {
  return std::min(NextLook(), questions_.NextWake().value_or(absl::InfiniteFuture()));
}

}  // namespace spoke::netagent
