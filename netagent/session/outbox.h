// Holds what has still to be said to the server in the present session, in the right order and
// bounded. Pure: no I/O, no clock, no locks.
//
// At most one report waits for the server's acknowledgement; what happens meanwhile is merged into
// the next ones. So a burst becomes few messages, and a slow server makes the agent's memory grow
// up to a limit only: beyond it the session is to be given up, for a new one begins with a hello
// that says everything.
//
// Order. The server takes a report's `assigned` first, then `released`, then `cooled`: events of
// one address are merged into one report only as far as that order gives what really happened, and
// nothing is left out, for it is the address's history. An answer never overtakes a report that was
// given before it: an address that was assigned and given back meanwhile would else be assigned
// after it had been agreed to go. Acknowledgements, the demand and conflicts stand for themselves
// and go first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <variant>

#include "lib/node_api/messages.h"

namespace spoke::netagent {

// Not thread-safe.
class Outbox {
 public:
  static constexpr size_t kMaxWaitingEntries =
      10'000;                                         // The reports' assigned, released and cooled.
  static constexpr size_t kMaxReportEntries = 1'000;  // A message's, far below gRPC's 4 MiB.
  static constexpr size_t kMaxWaitingAnswers = 16;

  // Each returns false when too much waits: give the session up, for nothing that is in here
  // matters then. Reports are numbered here.
  [[nodiscard]] bool Add(const node_api::AssignmentReport& report);
  [[nodiscard]] bool Add(const node_api::ReclaimAnswer& answer);
  [[nodiscard]] bool Add(const node_api::Inventory& inventory);
  [[nodiscard]] bool Add(const node_api::AttachTracesAnswer& answer);
  [[nodiscard]] bool Add(const node_api::ProbeAnswer& answer);
  [[nodiscard]] bool Add(const node_api::PolicyTrialAnswer& answer);
  [[nodiscard]] bool Add(const node_api::NodeDataAnswer& answer);

  // The latest message of each kind, and of each address, replaces the one that still waits.
  void Add(const node_api::DesiredAck& ack) { desired_ack_ = ack; }
  void Add(const node_api::PolicyAck& ack) { policy_ack_ = ack; }
  void Add(const node_api::Demand& demand) { demand_ = demand; }
  void Add(const node_api::BudgetReport& report) { budgets_ = report; }
  void Add(const node_api::NodeFindings& findings) { findings_ = findings; }
  void Add(const node_api::Maintenance& maintenance) { maintenance_ = maintenance; }
  // The report goes last: nobody waits for it.
  void Add(const node_api::TrafficReport& report) { traffic_ = report; }
  void Add(const node_api::ConflictReport& conflict) {
    conflicts_.insert_or_assign(conflict.address, conflict);
  }

  // Returns the next message to send, which is then no longer here; nullopt: none before the server
  // has acknowledged a report, or none at all.
  std::optional<node_api::AgentMessage> Next();
  bool HasNext() const;
  // Whether Next() has a report and nothing else: nobody waits for it, and what comes up meanwhile
  // can go into it.
  bool HasOnlyAReport() const;

  // Notes that the report of that number and all before it are durable.
  void OnReportAck(uint64_t sequence);
  // Whether a report is on its way that the server has not acknowledged.
  bool awaits_ack() const { return unacknowledged_; }
  // Whether there is what a server should hear soon: a report, an answer or pods that wait.
  bool IsUrgent() const {
    return unacknowledged_ || !items_.empty() || (demand_ && !demand_->waiting.empty());
  }

 private:
  // A report that is being gathered.
  struct Gathered {
    node_api::AssignmentReport report;
    size_t entries = 0;
    // The last that was said of each address: 0 assigned, 1 released, 2 cooled.
    std::map<ip::Address, int> last;
  };
  using Item = std::variant<Gathered, node_api::ReclaimAnswer, node_api::Inventory,
                            node_api::AttachTracesAnswer, node_api::ProbeAnswer,
                            node_api::PolicyTrialAnswer, node_api::NodeDataAnswer>;

  // Returns the report that an event of rank `rank` for `address` belongs into.
  node_api::AssignmentReport& Gather(const ip::Address& address, int rank);
  template <typename Answer>
  bool AddAnswer(const Answer& answer);
  // Whether the first of `items_` may go.
  bool HasItem() const;

  std::optional<node_api::DesiredAck> desired_ack_;
  std::optional<node_api::PolicyAck> policy_ack_;
  std::optional<node_api::Demand> demand_;
  std::optional<node_api::BudgetReport> budgets_;
  std::optional<node_api::NodeFindings> findings_;
  std::optional<node_api::Maintenance> maintenance_;
  std::optional<node_api::TrafficReport> traffic_;
  std::map<ip::Address, node_api::ConflictReport> conflicts_;
  std::deque<Item> items_;
  size_t waiting_entries_ = 0;
  size_t waiting_answers_ = 0;
  uint64_t last_sequence_ = 0;
  bool unacknowledged_ = false;  // The report of `last_sequence_` is on its way.
};

}  // namespace spoke::netagent
