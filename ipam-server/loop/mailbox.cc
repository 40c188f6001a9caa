#include "ipam-server/loop/mailbox.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

namespace spoke::ipam {
namespace {

// A fourth of the work of a turn is for agents that come back while others wait as well: what is
// begun for one agent is ended before many more are let in.
constexpr size_t kHellosShare = 4;
// An operator's change may take most of a turn by itself: agents then get a fourth of theirs.
constexpr size_t kShareBesideChange = 4;

constexpr size_t kOfMessage = 4;  // The message, and its record's part of the commit.
constexpr size_t kOfPlan = 16;    // The node is brought towards its target.
constexpr size_t kOfHello = 24;   // As much as a plan, and the whole state is told.

size_t Work(const ReportEvent& event) {
  const node_api::AssignmentReport& report = event.report;
  return kOfMessage + report.in_use.size() + report.released.size() + report.cooled.size();
}
size_t Work(const ReclaimAnswerEvent& event) {
  return kOfMessage + event.answer.agreed.size() + event.answer.denied.size();
}
size_t Work(const InventoryEvent& event) {
  return kOfMessage + event.inventory.held.size() + event.inventory.in_use.size();
}
size_t Work(const CloudEvent& event) {
  return 2 * kOfMessage + (event.result.ok() ? event.result->configurations.size() : 0);
}
size_t Work(const DemandEvent& event) { return kOfPlan + event.demand.waiting.size(); }
template <typename Event>
size_t Work(const Event& /*event*/) {
  return kOfMessage;
}

// Returns the event's session; 0: it is of no session.
SessionId SessionOf(const AgentEvent& event) {
  return std::visit(
      [](const auto& e) -> SessionId {
        using Event = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<Event, CloudEvent> || std::is_same_v<Event, ListingEvent> ||
                      std::is_same_v<Event, AskInventoriesEvent>) {
          return 0;
        } else {
          return e.session;
        }
      },
      event);
}

// Moves the first ones of `from` to `to` until they come to `most` work. Returns what they are.
template <typename Event>
size_t TakeSome(std::deque<Event>& from, size_t most, std::vector<Event>& to) {
  size_t work = 0;
  for (; !from.empty(); from.pop_front()) {
    const size_t more = WorkOf(from.front());
    if (work + more > most && !to.empty()) return work;
    work += more;
    to.push_back(std::move(from.front()));
  }
  return work;
}

template <typename Event>
std::optional<Event> TakeFirst(std::deque<Event>& from) {
  if (from.empty()) return std::nullopt;
  std::optional<Event> first = std::move(from.front());
  from.pop_front();
  return first;
}

}  // namespace

size_t WorkOf(const AgentEvent& event) {
  return std::visit([](const auto& e) { return Work(e); }, event);
}

size_t WorkOf(const HelloEvent& event) {
  return kOfHello + event.hello.in_use.size() + event.hello.cooldown.size();
}

void Mailbox::Post(QueryEvent event) {
  absl::MutexLock lock(&mutex_);
  queries_.push_back(std::move(event));
}

void Mailbox::Post(OperatorEvent event) {
  absl::MutexLock lock(&mutex_);
  changes_.push_back(std::move(event));
}

void Mailbox::Post(AgentEvent event) {
  absl::MutexLock lock(&mutex_);
  agents_.push_back(std::move(event));
}

void Mailbox::Post(HelloEvent event) {
  absl::MutexLock lock(&mutex_);
  hellos_.push_back(std::move(event));
}

void Mailbox::PostClosed(SessionId session, std::string refused) {
  absl::MutexLock lock(&mutex_);
  const auto waiting = std::find_if(hellos_.begin(), hellos_.end(), [&](const HelloEvent& hello) {
    return hello.session == session;
  });
  if (waiting != hellos_.end()) {
    hellos_.erase(waiting);
    return;
  }
  const bool unread = std::any_of(agents_.begin(), agents_.end(), [&](const AgentEvent& event) {
    return SessionOf(event) == session;
  });
  if (unread) {
    agents_.emplace_back(ClosedEvent{session, std::move(refused)});
  } else {
    closed_.emplace_back(ClosedEvent{session, std::move(refused)});
  }
}

std::optional<Mailbox::Taken> Mailbox::Take(absl::Duration wait, const Lanes& lanes) {
  absl::MutexLock lock(&mutex_);
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || !changes_.empty() || (lanes.queries && !queries_.empty()) ||
           (lanes.agents &&
            (!agents_.empty() || (lanes.hellos && !hellos_.empty()) || !closed_.empty()));
  };
  // A wait of no time would be a system call, in each of the turns that go on at once.
  if (wait > absl::ZeroDuration()) mutex_.AwaitWithTimeout(absl::Condition(&ready), wait);
  if (stopped_) return std::nullopt;
  Taken taken;
  if (!lanes.agents) return taken;
  const bool both = lanes.hellos && !agents_.empty() && !hellos_.empty();
  const size_t most = changes_.empty() ? lanes.work : lanes.work / kShareBesideChange;
  const size_t kept = both ? most / kHellosShare : 0;
  const size_t work = most - kept;
  size_t used = TakeSome(agents_, work, taken.agents);
  std::vector<AgentEvent> closed;
  used += TakeSome(closed_, work, closed);
  taken.agents.insert(taken.agents.end(), std::make_move_iterator(closed.begin()),
                      std::make_move_iterator(closed.end()));
  // A Hello never overtakes the end of a session before it.
  if (lanes.hellos && closed_.empty()) {
    TakeSome(hellos_, std::max(kept, most - std::min(used, most)), taken.hellos);
  }
  return taken;
}

std::optional<OperatorEvent> Mailbox::NextChange() {
  absl::MutexLock lock(&mutex_);
  return TakeFirst(changes_);
}

std::optional<QueryEvent> Mailbox::NextQuery() {
  absl::MutexLock lock(&mutex_);
  return TakeFirst(queries_);
}

void Mailbox::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

size_t Mailbox::waiting_agents() const {
  absl::MutexLock lock(&mutex_);
  return agents_.size() + closed_.size();
}

size_t Mailbox::waiting_hellos() const {
  absl::MutexLock lock(&mutex_);
  return hellos_.size();
}

CloudAnswer AnswersTo(Mailbox& mailbox) {
  return [&mailbox](const NodeKey& node, absl::StatusOr<NicAddresses> result) {
    mailbox.Post(AgentEvent(CloudEvent{node, std::move(result)}));
  };
}

}  // namespace spoke::ipam
