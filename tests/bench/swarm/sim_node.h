// The state of one simulated agent, what it says, and what it would complain about: a netagent
// without a kernel.
//
// It believes nothing it is told: whatever a correct server never says goes to the ledger.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lib/ip/address.h"
#include "proto/spoke/v1/node.pb.h"
#include "tests/bench/swarm/ledger.h"
#include "tests/bench/swarm/sim_budgets.h"

namespace spoke::swarm {

struct NodeNames {
  std::string name;
  std::string vm_id;
  std::string boot_id;
  std::string mac;
};

// Returns names as long as real ones, since they are stored and sent: "sim-00042" and two UUIDs.
NodeNames NamesOf(uint32_t node);

// Returns the node of that name; nullopt: none of ours.
std::optional<uint32_t> NodeOf(std::string_view name);

// Returns the container that the assignment `generation` of `node` is for: 64 hexadecimal digits,
// as a runtime's.
std::string ContainerOf(uint32_t node, uint64_t generation);

// The node. Not thread-safe; its Agent serialises calls. Borrows the ledger. Times are nanoseconds
// of any clock that does not go back.
class SimNode {
 public:
  enum class Use : uint8_t { kGone, kAvailable, kInUse, kCooldown, kWithdrawn };

  struct Held {
    ip::Address address;
    uint64_t generation = 0;  // The generation of its last assignment.
    Use use = Use::kGone;
    bool settled = true;  // Whether the server has said that it knows `use`.
    bool listed = false;  // Whether the full state that is being read lists it.
    bool brief = false;   // Whether its pod ends once its assignment is acknowledged.
  };

  // The way in which a node's assignments and releases go out.
  struct Reporting {
    size_t operations = 1;  // The most operations in one report.
    size_t window = 1;      // The most reports that may be unacknowledged at a time.
  };

  // A node whose NIC is dead from some time on: no probe arrives there or leaves it. Its stream
  // lives on, as a real one does for a while.
  struct DeadNic {
    uint32_t node = UINT32_MAX;
    int64_t from = 0;
  };

  SimNode(uint32_t node, Reporting reporting, Ledger& ledger)
      : SimNode(node, reporting, ledger, DeadNic()) {}
  SimNode(uint32_t node, Reporting reporting, Ledger& ledger, DeadNic dead_nic)
      : node_(node), reporting_(reporting), dead_nic_(dead_nic), ledger_(ledger), budgets_(node) {}

  // Begins a stream: everything that is in use or in cooldown is said, and what was not
  // acknowledged counts as said by this.
  void Greet(v1::Hello& out, int64_t now = 0);

  // The result of what the server says. Answers are appended to `answers`, in order; latencies of
  // operations that this acknowledges, to `latencies`.
  struct Outcome {
    std::vector<v1::AgentMessage> answers;
    absl::InlinedVector<int64_t, 8> latencies;
    // When the write was sent that this acknowledges: a report, or the hello; -1: it acknowledges
    // none.
    int64_t written = -1;
    // Since when the first of the operations that it acknowledges had waited; -1: there is none.
    int64_t wanted = -1;
  };
  void Take(const v1::ServerMessage& message, int64_t now, Outcome& out);

  // Assigns the next available address; returns false when there is none.
  bool Assign();
  // Assigns the next available address to a pod that ends once that is acknowledged; returns false
  // when there is none.
  bool RunPod(int64_t now);
  // Assigns each of `pods` an address, gives it back once that is acknowledged, and so on. Returns
  // how many found an available address. With kWaits they wait for one, now and later, where
  // otherwise having none is a fault.
  enum class Patience : uint8_t { kNone, kWaits };
  size_t StartPods(size_t pods, Patience patience = Patience::kNone);
  // Finishes what is under way, and begins nothing new.
  void StopPods() {
    working_ = false;
    waiting_pods_ = 0;
  }

  // Returns whether FillReport() has something to say now.
  bool HasReport() const {
    return !queued_.empty() && unacknowledged_.size() < reporting_.window && welcomed_;
  }
  // Makes the next report; `out` is overwritten. The report also says that addresses released by
  // acknowledged reports have ended their cooldown.
  void FillReport(v1::AssignmentReport& out, int64_t now, int64_t unix_ms);

  // Makes the next report about budgets; false when the policy has none, or nobody would hear it.
  bool FillBudgetReport(v1::BudgetReport& out) { return welcomed_ && budgets_.FillReport(out); }

  bool welcomed() const { return welcomed_; }
  // Returns whether it is welcomed, and told the whole state.
  bool synced() const { return welcomed_ && told_; }
  // Returns whether nothing waits to be said or acknowledged.
  bool settled() const { return queued_.empty() && unacknowledged_.empty() && welcomed_; }
  // Returns when the oldest report that is not acknowledged was sent, and the hello if that is not
  // answered; -1: nothing waits for an answer.
  int64_t waits_since() const;
  // Returns whether it has something to say that the server has not acknowledged.
  bool IsUrgent() const {
    return !queued_.empty() || !unacknowledged_.empty() || !greeted_.empty();
  }
  // Returns the number of addresses it may assign or has assigned.
  size_t usable() const;
  size_t Count(Use use) const;
  // Returns all entries, including those that are gone.
  const std::vector<Held>& held() const { return held_; }
  uint32_t node() const { return node_; }
  // Returns the epoch of the last Welcome.
  uint64_t session_epoch() const { return session_epoch_; }
  uint64_t last_generation() const { return last_generation_; }
  // Returns how many addresses it has agreed to give up, ever.
  uint64_t given_up() const { return given_up_; }

 private:
  enum class Kind : uint8_t { kAssign, kRelease };
  struct Operation {
    Kind kind;
    uint32_t slot;   // The index into held_.
    int64_t wanted;  // The time when it came up.
  };
  struct Report {
    uint64_t sequence;
    int64_t sent_at;
    absl::InlinedVector<Operation, 4> operations;
  };

  void TakeOne(const v1::ServerMessage& message, int64_t now, Outcome& out);
  void TakeWelcome(const v1::Welcome& welcome, int64_t now, Outcome& out);
  void TakeDesired(const v1::DesiredState& desired, int64_t now, Outcome& out);
  void TakeAdded(const v1::IpConfiguration& added, bool anew, int64_t now);
  void TakeRemoved(const v1::IpConfiguration& removed, int64_t now);
  void DropUnlisted(int64_t now);
  void TakeReportAck(uint64_t sequence, int64_t now, Outcome& out);
  void TakeReclaim(const v1::ReclaimRequest& request, int64_t now, Outcome& out);
  bool GiveUp(const v1::IpConfiguration& configuration, int64_t now);
  void TakePolicy(const v1::PolicyBundle& policy, Outcome& out);
  void TakeInventory(uint64_t id, Outcome& out) const;
  void TakeProbes(const v1::ProbeRequest& request, int64_t now, Outcome& out) const;

  Held* AssignNext();
  static void NoteWaited(const Operation& operation, Outcome& out);
  void Queue(Kind kind, uint32_t slot);
  void Settle(const Operation& operation, int64_t now);
  // Notes in the history that an operation is about to be said, or acknowledged.
  enum class Step : uint8_t { kBegun, kStored };
  void NoteOperation(const Operation& operation, Step step, int64_t now) const;
  void NoteMissing(const ip::Address& address, int64_t now) const;
  void StartWaiting();
  void FillAssignment(const Held& held, v1::Assignment& out) const;
  Held* Find(const ip::Address& address);
  Held& NewSlot();
  void Complain(std::string_view kind, const std::string& text) const;

  const uint32_t node_;
  const Reporting reporting_;
  const DeadNic dead_nic_;
  Ledger& ledger_;
  SimBudgets budgets_;

  std::vector<Held> held_;
  size_t cursor_ = 0;  // The place where Assign() looks next, so that reuse takes turns.
  std::deque<uint32_t>
      // The slots whose release is acknowledged, and whose end of cooldown is not yet said.
      released_;
  std::deque<Operation> queued_;
  std::deque<Report> unacknowledged_;
  std::vector<Operation> greeted_;  // What the hello says, until it is answered.
  uint64_t last_generation_ = 0;
  uint64_t policy_version_ = 0;
  uint64_t session_epoch_ = 0;
  uint64_t given_up_ = 0;
  bool working_ = false;
  Patience patience_ = Patience::kNone;
  size_t waiting_pods_ = 0;  // The pods that wait for an available address.

  int64_t now_ = 0;  // The latest time that was told.
  int64_t greeted_at_ = 0;
  // Whether the present stream is welcomed.
  bool welcomed_ = false;
  bool told_ = false;
  uint64_t desired_version_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t acknowledged_ = 0;
};

}  // namespace spoke::swarm
