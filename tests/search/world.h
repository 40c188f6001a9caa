// One state of a small fleet, as a value that can be written in a few dozen bytes: what the store
// has, what the leader remembers beside it, what is on NICs and asked of the cloud, and for each
// node its agent's journal, its pods and its stream. Pure.
//
// It is not the state itself that decides: leader.h and agent.h make the real objects from it for
// each step, and read them back.
//
// What has no influence on decisions is left out or made the same, so that the states are finitely
// many. The time is always the same: what began so long ago that a cooldown is over is `old`.
// Generations and epochs are ranks: only their order is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spoke::search {

inline constexpr size_t kNodes = 3;
inline constexpr size_t kAddresses = 3;
inline constexpr size_t kVms = 2;   // Machines under one name: the first, and one that replaced it.
inline constexpr size_t kPods = 2;  // Attachments of one node at a time.
inline constexpr size_t kQueue = 4;

// A set of addresses.
using Mask = uint8_t;
inline constexpr Mask BitOf(size_t address) { return static_cast<Mask>(1U << address); }
inline constexpr bool Has(Mask mask, size_t address) { return (mask & BitOf(address)) != 0; }

// What the server's record has of one address.
struct Held {
  uint8_t state = 0;  // ipam::AddressState.
  bool denied = false;
  uint8_t use = 0;   // node_api::Use.
  bool old = false;  // It has been in cooldown for long enough.
  uint8_t generation = 0;
  uint8_t pod = 0;  // One more than its number; 0: none.

  bool operator==(const Held&) const = default;
};

enum class Cooling : uint8_t { kNo, kRecent, kOld };

struct Record {
  bool present = false;
  uint8_t mode = 0;  // ipam::NodeMode.
  uint8_t boot = 0;
  std::array<Held, kAddresses> held;
  std::array<Cooling, kAddresses> released = {};

  bool operator==(const Record&) const = default;
};

// What the leader remembers of a record that no store has.
struct Memory {
  bool missing = false;  // The last listing lacked it.
  bool spoken = false;
  bool greet_anew = false;
  Mask claims = 0;

  bool operator==(const Memory&) const = default;
};

struct Session {
  bool open = false;
  uint8_t vm = 0;
  Mask told = 0;
  bool full_due = false;
  bool reclaim_pending = false;
  Mask reclaim_next = 0;

  bool operator==(const Session&) const = default;
};

enum class MessageKind : uint8_t {
  kHello,           // a: in cooldown.
  kReport,          // a: cooled.
  kReclaimAnswer,   // a: agreed, b: denied.
  kInventory,       // a: held.
  kDesired,         // a: added, b: removed, c: a whole cooldown, d: the end of one; flag: full.
  kReclaimRequest,  // a: asked for.
  kInventoryRequest,
};

struct AssignmentSaid {
  uint8_t pod = 0;  // One more than its number; 0: none.
  uint8_t generation = 0;

  bool operator==(const AssignmentSaid&) const = default;
};

struct Message {
  MessageKind kind = MessageKind::kHello;
  Mask a = 0;
  Mask b = 0;
  Mask c = 0;
  Mask d = 0;
  bool flag = false;
  std::array<AssignmentSaid, kAddresses> in_use = {};
  std::array<uint8_t, kAddresses> released = {};  // Generations; 0: none.
  uint8_t epoch = 0;                              // Of the store's mark; 0: none.
  uint8_t nodes = 0;
  uint8_t boot = 0;
  uint8_t vm = 0;

  bool operator==(const Message&) const = default;
};

// In order; what a stream has lost it has lost with all that follows.
struct Queue {
  uint8_t size = 0;
  std::array<Message, kQueue> messages = {};

  // False: there are too many already.
  bool Push(const Message& message);
  Message Pop();
  void Clear();
  bool HasHello() const;

  bool operator==(const Queue&) const = default;
};

enum class AgentUse : uint8_t { kAbsent, kAvailable, kInUse, kCooling, kCooled };

// What the agent's journal has of one address.
struct Journalled {
  AgentUse use = AgentUse::kAbsent;  // kCooled: its cooldown is over, and nobody has looked.
  bool listed = false;
  bool withdrawn = false;
  uint8_t order = 0;  // In which it became available.
  uint8_t generation = 0;
  uint8_t pod = 0;

  bool operator==(const Journalled&) const = default;
};

enum class Stream : uint8_t {
  kNone,
  kOpen,
  kDead,  // The server's side is gone, and the agent has not noticed.
};

struct Agent {
  uint8_t vm = 0;
  uint8_t boot = 0;
  Stream stream = Stream::kNone;
  Mask agreed = 0;  // Given up in this session.
  std::array<Journalled, kAddresses> journal = {};
  uint8_t epoch = 0;  // Of the mark that it was last told; 0: none.
  uint8_t nodes = 0;
  std::array<uint8_t, kPods> pods = {};  // One more than the address that it has; 0: no pod.
  std::array<bool, kPods> late_del =
      {};  // A DEL of an earlier pod of this key is still on its way.

  bool operator==(const Agent&) const = default;
};

// A request to the cloud, or its answer.
struct NicCall {
  bool there = false;
  uint8_t vm = 0;
  Mask on_nic = 0;

  bool operator==(const NicCall&) const = default;
};

// All that is about one node, so that nodes can change places.
struct Node {
  std::array<Record, kVms> stored;
  std::array<Record, kVms> saved;  // In the backup.
  std::array<Memory, kVms> memory;
  Session session;
  Mask nic = 0;  // What is on the NIC of the present machine.
  NicCall asked;
  NicCall answer;
  Agent agent;
  Queue up;               // To the server.
  Queue down;             // To the agent.
  Mask ended = 0;         // Pods here had these, and ended lately.
  bool rebooted = false;  // Lately, too.

  bool operator==(const Node&) const = default;
};

enum class Phase : uint8_t { kOpen, kProving, kRecovering };

struct Store {
  uint8_t epoch = 1;
  bool cause = false;
  uint8_t cause_nodes = 0;

  bool operator==(const Store&) const = default;
};

// What happens only so often.
enum class Rare : uint8_t {
  kAdd,
  kCut,
  kAgentRestart,
  kReboot,
  kReplace,
  kMode,
  kTick,
  kLeaderChange,
  kListing,
  kBackup,
  kRestore,
};
inline constexpr size_t kRares = 11;

constexpr std::string_view NameOf(Rare rare) {
  constexpr std::array<std::string_view, kRares> kNames = {
      "pods",      "streams cut",    "agent restarts", "boots",   "replaced machines", "drains",
      "cooldowns", "leader changes", "listings",       "backups", "restores"};
  return kNames[static_cast<size_t>(rare)];
}

struct World {
  std::array<Node, kNodes> nodes;
  Store store;
  bool has_backup = false;
  Store backup;
  // --- The leader's. ---
  Phase phase = Phase::kOpen;
  bool cause = false;
  uint8_t cause_nodes = 0;
  uint8_t highest = 0;  // The newest epoch that was shown, if the store is behind it.
  Mask doubtful = 0;
  // --- Not a part of anybody's knowledge. ---
  bool restored = false;                  // The leader has not opened since the store was restored.
  std::array<uint8_t, kRares> left = {};  // How often each may still happen.
  uint8_t faults_left = 0;                // Of those that are faults, all together.
  // --- What has come of the last step; not written down. ---
  bool overflow = false;  // A queue was full: the state is not looked into.
  bool unstored = false;  // A decision has changed records that it does not store.

  bool operator==(const World&) const = default;
};

// Replaces generations and epochs by their ranks, and puts down what is known to mean nothing.
void Normalise(World& world);

// Puts the nodes in the order in which Encode() is the least. Returns where each was before.
std::array<uint8_t, kNodes> Canonicalise(World& world);

// Returns the world in bytes, and back.
std::string Encode(const World& world);
World Decode(std::string_view bytes);

}  // namespace spoke::search
