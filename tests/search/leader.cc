#include "tests/search/leader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/inventory.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/loop/server_state.h"
#include "lib/base/check.h"
#include "tests/search/fleet_of.h"
#include "tests/search/names.h"

namespace spoke::search {
namespace {

using ipam::Effects;
using ipam::NodeKey;

size_t NodeOf(const NodeKey& key) { return static_cast<size_t>(key.name.front() - 'a'); }
uint8_t VmOf(const NodeKey& key) { return static_cast<uint8_t>(key.vm_id.front() - '0'); }

std::vector<node_api::Assignment> AssignmentsOf(const Message& message) {
  std::vector<node_api::Assignment> in_use;
  for (size_t i = 0; i < kAddresses; ++i) {
    if (message.in_use[i].pod != 0) in_use.push_back(ToAssignment(i, message.in_use[i]));
  }
  return in_use;
}

std::vector<ip::Address> AddressesOf(Mask mask) {
  std::vector<ip::Address> addresses;
  for (size_t i = 0; i < kAddresses; ++i) {
    if (Has(mask, i)) addresses.push_back(AddressOf(i));
  }
  return addresses;
}

std::vector<ipam::IpConfiguration> EntriesOf(Mask mask) {
  std::vector<ipam::IpConfiguration> entries;
  for (const ip::Prefix& prefix : PrefixesOf(mask)) entries.push_back({"entry", prefix});
  return entries;
}

node_api::Hello HelloOf(size_t node, const Message& message) {
  const NodeKey key = KeyOf(node, message.vm);
  node_api::Hello hello{.node = {.node_name = key.name,
                                 .vm_id = key.vm_id,
                                 .boot_id = BootOf(node, message.vm, message.boot)}};
  hello.in_use = AssignmentsOf(message);
  hello.cooldown = AddressesOf(message.a);
  return hello;
}

node_api::AssignmentReport ReportOf(const Message& message) {
  node_api::AssignmentReport report;
  report.in_use = AssignmentsOf(message);
  report.cooled = AddressesOf(message.a);
  for (size_t i = 0; i < kAddresses; ++i) {
    if (message.released[i] != 0) report.released.push_back({AddressOf(i), message.released[i]});
  }
  return report;
}

// One turn of the leader's loop: what is heard and decided, then stored, then carried out.
class Turn {
 public:
  Turn(World& world, const Step& step)
      : Turn(world, step, FleetOf(world, step.defect, Loading::kGoesOn), RecoveryOf(world)) {}
  Turn(World& world, const Step& step, ipam::Fleet fleet, ipam::Recovery recovery)
      : world_(world), step_(step), fleet_(std::move(fleet)), recovery_(std::move(recovery)) {}

  void OnHello(size_t node, const Message& message);
  void OnMessage(size_t node, const Message& message);
  // Stores, and does what follows; a recovery ends if it may `by` then.
  void Finish(absl::Time by = kNow);

  ipam::Fleet& fleet() { return fleet_; }
  Effects& effects() { return effects_; }

  // Has the cloud begin with what this store knows, as the static one does whenever a leader opens.
  void BeginCloud();

 private:
  void DoWrong();
  void TryToOpen(absl::Time by);
  void Commit();
  void CarryOut();
  void Send(size_t node, const Message& message);
  void GreetAnew(size_t node);
  void SayDesired(const NodeKey& key);
  void AskForNext(size_t node);
  void Request(const NodeKey& key);
  Session* SessionWith(const NodeKey& key);

  World& world_;
  const Step step_;
  ipam::Fleet fleet_;
  ipam::Recovery recovery_;
  Effects effects_;
  std::set<size_t> inventories_;    // The nodes that are asked for all they have.
  std::optional<size_t> answered_;  // The node that has answered a request.
};

Session* Turn::SessionWith(const NodeKey& key) {
  Session& session = world_.nodes[NodeOf(key)].session;
  return session.open && session.vm == VmOf(key) ? &session : nullptr;
}

void Turn::OnHello(size_t node, const Message& message) {
  if (message.epoch != 0) {
    if (message.epoch > world_.store.epoch)
      world_.highest = std::max(world_.highest, message.epoch);
    if (step_.defect != Defect::kTrustsMark &&
        recovery_.OnMark({"store", message.epoch, message.nodes}, kNow)) {
      fleet_.hold.active = true;
      effects_.recovery = true;
      for (size_t i = 0; i < kNodes; ++i) {
        if (world_.nodes[i].session.open) inventories_.insert(i);
      }
    }
  }
  const node_api::Hello hello = HelloOf(node, message);
  CHECK(CheckIdentity(fleet_, hello).ok(), "nobody here says that it is another");
  effects_.Merge(ipam::OnHello(fleet_, hello, kNow));
  world_.nodes[node].session = {.open = true, .vm = message.vm, .full_due = true};
  const NodeKey key = ipam::KeyOf(hello);
  effects_.desired.insert(key);
  if (recovery_.phase() == ipam::Recovery::Phase::kRecovering) {
    inventories_.insert(node);
  } else if (!recovery_.open()) {
    recovery_.OnSpoken(key);
  }
}

void Turn::OnMessage(size_t node, const Message& message) {
  if (message.kind == MessageKind::kHello) return OnHello(node, message);
  Session& session = world_.nodes[node].session;
  if (!session.open) return;
  const NodeKey key = KeyOf(node, session.vm);
  if (message.kind == MessageKind::kReport) {
    effects_.Merge(OnReport(fleet_, key, ReportOf(message), kNow));
  } else if (message.kind == MessageKind::kReclaimAnswer) {
    if (!session.reclaim_pending && step_.defect != Defect::kOldAnswers) return;
    session.reclaim_pending = false;
    answered_ = node;
    effects_.Merge(OnReclaimAnswer(
        fleet_, key, {.id = 1, .agreed = PrefixesOf(message.a), .denied = PrefixesOf(message.b)},
        kNow));
  } else if (message.kind == MessageKind::kInventory) {
    if (recovery_.phase() != ipam::Recovery::Phase::kRecovering) return;
    const node_api::Inventory inventory{
        .id = 1, .held = AddressesOf(message.a), .in_use = AssignmentsOf(message)};
    effects_.Merge(OnInventory(fleet_, key, inventory, kNow));
    recovery_.OnSpoken(key);
  } else {
    CHECK(false, "an agent does not say that");
  }
}

void Turn::Finish(absl::Time by) {
  DoWrong();
  TryToOpen(by);
  CheckInvariants(fleet_.ledger);
  Commit();
  if (step_.ending == Ending::kGoesOn) CarryOut();
}

// The defects of the server that are put in.
void Turn::DoWrong() {
  if (step_.defect == Defect::kDetachesUnasked) {
    for (const auto& [key, ranges] : std::exchange(effects_.reclaim, {})) {
      effects_.Merge(OnReclaimAnswer(fleet_, key, {.id = 1, .agreed = ranges}, kNow));
    }
  }
  if (step_.defect == Defect::kFreesEarly && answered_) {
    const NodeKey key = KeyOf(*answered_, world_.nodes[*answered_].session.vm);
    if (const ipam::NodeRecord* record = fleet_.ledger.Find(key); record != nullptr) {
      effects_.Merge(OnNic(fleet_, key, ipam::NicOf(*record).configurations, kNow));
      effects_.attach.insert(key);
    }
  }
  if (step_.defect == Defect::kStoresLess) {
    std::erase_if(effects_.changed, [&](const NodeKey& key) {
      const ipam::NodeRecord* record = fleet_.ledger.Find(key);
      return record != nullptr && record->mode == ipam::NodeMode::kRetired;
    });
  }
}

void Turn::TryToOpen(absl::Time by) {
  // The shortest time is over for whoever is waited for.
  if (world_.restored) by = std::max(by, kNow + ipam::Recovery::kLeastTime);
  std::vector<NodeKey> known = NodesWithAddresses(fleet_.ledger);
  const bool early = step_.defect == Defect::kOpensEarly;
  if (world_.restored && !early && recovery_.phase() == ipam::Recovery::Phase::kProving) {
    // It is taken that they speak in time, whether this store knows them or not.
    for (size_t i = 0; i < kNodes; ++i) {
      if (world_.nodes[i].nic != 0) known.push_back(KeyOf(i, world_.nodes[i].agent.vm));
    }
  }
  if (recovery_.open() || !recovery_.MayOpen(known, by)) return;
  ipam::ServerState state{.fleet = std::move(fleet_),
                          .objects = {},
                          .bundles = ipam::BundleHistory(ipam::ObjectSet()),
                          .configured = {},
                          .recovery = std::move(recovery_)};
  effects_.Merge(EndRecovery(state, kNow));
  fleet_ = std::move(state.fleet);
  recovery_ = std::move(state.recovery);
  world_.restored = false;
  BeginCloud();
}

// Clouds with NICs of their own choose the addresses as well, which is left out here.
void Turn::BeginCloud() {
  for (Node& node : world_.nodes) node.nic = 0;
  for (const ipam::NicAddresses& nic : ipam::AllNics(fleet_)) {
    const size_t number = NodeOf(nic.node);
    if (world_.nodes[number].agent.vm != VmOf(nic.node)) continue;
    for (const ipam::IpConfiguration& entry : nic.configurations) {
      world_.nodes[number].nic |= BitOf(NumberOf(entry.range.base()));
    }
  }
}

void Turn::Commit() {
  const bool stores = effects_.Stores();
  if (WriteRecords(fleet_, effects_.changed, world_)) world_.unstored = true;
  if (stores) recovery_.Committed();
  Remember(fleet_, recovery_, world_);
  if (!stores) return;
  world_.store = {.epoch = static_cast<uint8_t>(recovery_.state().epoch),
                  .cause = world_.cause,
                  .cause_nodes = world_.cause_nodes};
}

void Turn::CarryOut() {
  for (const size_t node : inventories_) Send(node, {.kind = MessageKind::kInventoryRequest});
  if (!recovery_.open()) {
    // Nobody is told, asked for, or given anything from a store that may be old.
    effects_.resend.clear();
    effects_.desired.clear();
    effects_.reclaim.clear();
    effects_.attach.clear();
  }
  for (const auto& [key, why] : effects_.greet_anew) {
    if (SessionWith(key) != nullptr) GreetAnew(NodeOf(key));
  }
  for (const NodeKey& key : effects_.resend) {
    if (Session* const session = SessionWith(key); session != nullptr) {
      session->full_due = true;
      effects_.desired.insert(key);
    }
  }
  for (const NodeKey& key : effects_.desired) SayDesired(key);
  for (const auto& [key, ranges] : effects_.reclaim) {
    Session* const session = SessionWith(key);
    if (session == nullptr) continue;
    session->reclaim_next |= MaskOf(ranges);
    if (!session->reclaim_pending) AskForNext(NodeOf(key));
  }
  if (answered_ && world_.nodes[*answered_].session.open &&
      !world_.nodes[*answered_].session.reclaim_pending) {
    AskForNext(*answered_);
  }
  for (const NodeKey& key : effects_.attach) Request(key);
}

// What is said in a session that an agent has left is lost with it.
void Turn::Send(size_t node, const Message& message) {
  Node& to = world_.nodes[node];
  if (to.agent.stream != Stream::kOpen || to.up.HasHello()) return;
  if (!to.down.Push(message)) world_.overflow = true;
}

void Turn::GreetAnew(size_t node) {
  Node& to = world_.nodes[node];
  to.session = Session();
  if (to.up.HasHello()) {
    while (to.up.messages[0].kind != MessageKind::kHello) to.up.Pop();
    return;
  }
  to.up.Clear();
  if (to.agent.stream == Stream::kOpen) to.agent.stream = Stream::kDead;
}

void Turn::SayDesired(const NodeKey& key) {
  Session* const session = SessionWith(key);
  const ipam::NodeRecord* const record = fleet_.ledger.Find(key);
  if (session == nullptr || record == nullptr) return;
  ipam::Session real = SessionOf(*session);
  const node_api::DesiredState desired = NextDesired(fleet_, *record, kNow, real);
  session->told = MaskOf(real.told);
  session->full_due = real.full_due;
  Message message{
      .kind = MessageKind::kDesired, .b = MaskOf(desired.removed), .flag = desired.full};
  for (const node_api::DesiredConfiguration& added : desired.added) {
    const Mask bit = BitOf(NumberOf(added.range.base()));
    message.a |= bit;
    if (added.cooldown > absl::Seconds(1)) {
      message.c |= bit;
    } else if (added.cooldown > absl::ZeroDuration()) {
      message.d |= bit;
    }
  }
  message.epoch = static_cast<uint8_t>(recovery_.state().epoch);
  message.nodes = static_cast<uint8_t>(NodesWithAddresses(fleet_.ledger).size());
  Send(NodeOf(key), message);
}

void Turn::AskForNext(size_t node) {
  Session& session = world_.nodes[node].session;
  const ipam::NodeRecord* const record = fleet_.ledger.Find(KeyOf(node, session.vm));
  const Mask next = std::exchange(session.reclaim_next, Mask{0});
  Mask ranges = 0;
  for (size_t i = 0; i < kAddresses && record != nullptr; ++i) {
    const ipam::Configuration* const held = record->Holding(AddressOf(i));
    if (Has(next, i) && held != nullptr && held->state == ipam::AddressState::kAttached) {
      ranges |= BitOf(i);
    }
  }
  if (ranges == 0) return;
  session.reclaim_pending = true;
  Send(node, {.kind = MessageKind::kReclaimRequest, .a = ranges});
}

// A newer request takes the place of one that waits. A machine that is no more takes none.
void Turn::Request(const NodeKey& key) {
  Node& node = world_.nodes[NodeOf(key)];
  const ipam::NodeRecord* const record = fleet_.ledger.Find(key);
  if (record == nullptr || !HasItsInstance(fleet_.ledger, *record)) return;
  if (node.agent.vm != VmOf(key)) return;
  NicCall call{.there = true, .vm = VmOf(key)};
  for (const ipam::IpConfiguration& entry : ipam::NicOf(*record).configurations) {
    call.on_nic |= BitOf(NumberOf(entry.range.base()));
  }
  node.asked = call;
}

}  // namespace

bool Listen(World& world, const Step& step) {
  Node& node = world.nodes[step.node];
  if (node.up.size == 0) return false;
  const Message message = node.up.Pop();
  Turn turn(world, step);
  turn.OnMessage(step.node, message);
  turn.Finish();
  return true;
}

bool HearCloud(World& world, const Step& step) {
  Node& node = world.nodes[step.node];
  if (!node.answer.there) return false;
  const NicCall answer = std::exchange(node.answer, NicCall());
  Turn turn(world, step);
  turn.effects().Merge(
      OnNic(turn.fleet(), KeyOf(step.node, answer.vm), EntriesOf(answer.on_nic), kNow));
  turn.Finish();
  return true;
}

bool Review(World& world, const Step& step) {
  Turn turn(world, step);
  const ipam::NodeRecord* const record = FindByName(turn.fleet().ledger, KeyOf(step.node, 0).name);
  if (record == nullptr) return false;
  const NodeKey key = record->key;
  turn.effects().Merge(ReviewNode(turn.fleet(), key, {}, kNow));
  // What the cloud forgot is asked for again.
  const bool on_its_way = std::any_of(
      record->configurations.begin(), record->configurations.end(),
      [](const auto& entry) { return entry.second.state != ipam::AddressState::kAttached; });
  const Node& node = world.nodes[step.node];
  if (on_its_way && !node.asked.there && !node.answer.there) turn.effects().attach.insert(key);
  turn.Finish();
  return true;
}

bool ChangeMode(World& world, const Step& step) {
  Turn turn(world, step);
  const std::string name = KeyOf(step.node, 0).name;
  const ipam::NodeRecord* const record = FindByName(turn.fleet().ledger, name);
  if (record == nullptr) return false;
  const bool drains = record->mode == ipam::NodeMode::kDraining;
  auto effects = SetMode(turn.fleet(), name,
                         drains ? ipam::NodeMode::kActive : ipam::NodeMode::kDraining, kNow);
  CHECK(effects.ok(), "there is such a node");
  turn.effects().Merge(*std::move(effects));
  turn.Finish();
  return true;
}

bool ListMachines(World& world, const Step& step) {
  Turn turn(world, step);
  std::set<NodeKey> present;
  std::set<NodeKey> connected;
  for (size_t i = 0; i < kNodes; ++i) {
    const Node& node = world.nodes[i];
    const NodeKey key = KeyOf(i, node.agent.vm);
    present.insert(key);
    if (node.session.open) connected.insert(KeyOf(i, node.session.vm));
    turn.effects().Merge(OnListedNic(turn.fleet(), key, EntriesOf(node.nic)));
  }
  // While the store may be an old one a list frees nothing.
  if (!turn.fleet().hold.active) {
    turn.effects().Merge(OnListing(turn.fleet(), present, connected, kNow));
  }
  turn.Finish();
  return true;
}

bool PassTime(World& world, const Step& step) {
  for (Node& node : world.nodes) {
    for (auto* records : {&node.stored, &node.saved}) {
      for (Record& record : *records) {
        for (Held& held : record.held) {
          held.denied = false;
          held.old = held.use == static_cast<uint8_t>(node_api::Use::kCooldown);
        }
        for (Cooling& released : record.released) {
          if (released == Cooling::kRecent) released = Cooling::kOld;
        }
      }
    }
    for (Journalled& entry : node.agent.journal) {
      if (entry.use == AgentUse::kCooling) entry.use = AgentUse::kCooled;
    }
    node.ended = 0;
  }
  Turn turn(world, step);
  turn.effects().Merge(Expire(turn.fleet(), kNow));
  // After a restore it is taken that whoever has addresses speaks before the time is over.
  turn.Finish(world.restored ? kNow : kNow + ipam::Recovery::kProvingTime);
  return true;
}

void Begin(World& world, Mark mark, Defect defect, uint8_t newer, uint8_t nodes) {
  for (Node& node : world.nodes) {
    node.session = Session();
    node.up.Clear();
    node.asked = NicCall();
    node.answer = NicCall();
    node.memory = {};
    if (node.agent.stream == Stream::kOpen) node.agent.stream = Stream::kDead;
  }
  world.doubtful = 0;
  world.highest = mark == Mark::kNewer ? newer : uint8_t{0};
  std::set<NodeKey> changed;
  ipam::Fleet fleet = FleetOf(world, defect, Loading::kBegins, &changed);
  ipam::RecoveryState state{.store_id = "store", .epoch = world.store.epoch};
  if (world.store.cause) {
    state.cause = ipam::RecoveryState::Cause{
        .reason = "restored", .since = kNow, .nodes = world.store.cause_nodes};
  }
  ipam::Recovery recovery(std::move(state));
  ipam::Witness witness;
  if (mark != Mark::kOfOther) {
    const bool is_newer = mark == Mark::kNewer;
    witness.last = ipam::StoreMark{"store", is_newer ? newer : world.store.epoch, nodes};
    witness.same_boot = true;
  }
  if (defect != Defect::kTrustsMark) recovery.Begin(witness, kNow);
  fleet.hold.active = !recovery.open();
  const bool opens = recovery.open();
  Turn turn(world, {.defect = defect}, std::move(fleet), std::move(recovery));
  turn.effects().changed = std::move(changed);
  if (opens) turn.BeginCloud();
  turn.effects().attach = NodesToAsk(turn.fleet());
  turn.Finish();
  if (world.phase == Phase::kOpen) world.restored = false;
}

uint8_t NodesWithAddresses(const World& world) {
  uint8_t count = 0;
  for (const Node& node : world.nodes) {
    for (const Record& record : node.stored) {
      const bool has = std::any_of(record.held.begin(), record.held.end(),
                                   [](const Held& held) { return held.state != 0; });
      const bool retired = record.mode == static_cast<uint8_t>(ipam::NodeMode::kRetired);
      if (record.present && has && !retired) ++count;
    }
  }
  return count;
}

}  // namespace spoke::search
