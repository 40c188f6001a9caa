#include "tests/search/agent.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/check.h"
#include "lib/os/clock.h"
#include "netagent/attach/attachments.h"
#include "netagent/journal/fake_journal.h"
#include "tests/search/names.h"

namespace spoke::search {
namespace {

using netagent::Attachments;

// How long a cooldown still lasts that is over, and that nobody has looked at.
constexpr absl::Duration kRest = absl::Milliseconds(1);

class QuietLog final : public telemetry::Log {
 public:
  void Write(telemetry::Level /*level*/, std::string_view /*event*/,
             std::initializer_list<telemetry::Field> /*fields*/) override {}
};

// A kernel that does what it is told, and in which nothing else happens.
class WillingLinks final : public netagent::Links {
 public:
  absl::StatusOr<std::map<std::string, netagent::HostSide>> Read() override {
    return std::map<std::string, netagent::HostSide>();
  }
  netagent::PodChanges TakePodChanges() override { return {.all = true}; }
  absl::StatusOr<netagent::PodSide> ReadPod(const netagent::AttachSpec& /*spec*/,
                                            int /*pod_netns*/) override {
    return absl::NotFoundError("nobody looks into pods");
  }
  uint32_t IndexOf(const std::string& /*host_link*/) const override { return 1; }
  netagent::HostSide Recall(const std::string& /*host_link*/) const override { return {}; }
  absl::Status Apply(const netagent::AttachSpec& /*spec*/, const netagent::LinkOperations& /*plan*/,
                     std::optional<int> /*pod_netns*/) override {
    return absl::OkStatus();
  }
  absl::Status SetUnreachable(const std::vector<ip::Address>& /*addresses*/) override {
    return absl::OkStatus();
  }
  absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& /*nic*/) override { return 1; }
  absl::StatusOr<netagent::Nic> ReadNic(const std::string& name) override {
    return netagent::Nic{.name = name, .mtu = 1500};
  }
};

void AddSaid(const std::vector<node_api::Assignment>& in_use, Message& message) {
  for (const node_api::Assignment& assignment : in_use) {
    message.in_use[NumberOf(assignment.address)] = {PodOf(assignment.lessee.container_id),
                                                    GenerationOf(assignment.generation)};
  }
}

// Keeps what the agent says.
class Outbox final : public netagent::ServerLink {
 public:
  void Report(const node_api::AssignmentReport& report) override {
    Message& message = messages.emplace_back(Message{.kind = MessageKind::kReport});
    message.a = MaskOf(report.cooled);
    AddSaid(report.in_use, message);
    for (const node_api::Release& release : report.released) {
      message.released[NumberOf(release.address)] = GenerationOf(release.generation);
    }
  }
  void Answer(const node_api::ReclaimAnswer& answer) override {
    messages.push_back({.kind = MessageKind::kReclaimAnswer,
                        .a = MaskOf(answer.agreed),
                        .b = MaskOf(answer.denied)});
  }
  void Answer(const node_api::Inventory& inventory) override {
    Message& message = messages.emplace_back(Message{.kind = MessageKind::kInventory});
    message.a = MaskOf(inventory.held);
    AddSaid(inventory.in_use, message);
  }
  void Acknowledge(uint64_t /*desired_version*/) override {}
  void AcknowledgePolicy(const node_api::PolicyAck& /*ack*/) override {}
  void Answer(const node_api::AttachTracesAnswer& /*traces*/) override {}
  void Answer(const node_api::ProbeAnswer& /*probes*/) override {}
  void Answer(const node_api::PolicyTrialAnswer& /*trial*/) override {}
  void Answer(const node_api::NodeDataAnswer& /*data*/) override {}
  void Ask(const node_api::Demand& /*demand*/) override {}
  void ReportTraffic(const node_api::TrafficReport& /*report*/) override {}
  void ReportBudgets(const node_api::BudgetReport& /*report*/) override {}
  void ReportConflict(const ip::Address& /*address*/,
                      const std::optional<ip::MacAddress>& /*other_mac*/) override {}
  void BeginAnew(std::string_view /*why*/) override {}

  std::vector<Message> messages;
};

absl::Duration CooldownOf(AgentUse use) { return use == AgentUse::kCooling ? kCooldown : kRest; }

bool IsCooling(const Journalled& entry) {
  return entry.use == AgentUse::kCooling || entry.use == AgentUse::kCooled;
}

// The journal that says what the world has, compacted.
std::vector<netagent::Event> EventsOf(const Agent& agent) {
  std::vector<std::pair<uint8_t, netagent::Holding>> holdings;
  for (size_t i = 0; i < kAddresses; ++i) {
    if (!agent.journal[i].listed) continue;
    holdings.emplace_back(agent.journal[i].order,
                          netagent::Holding{AddressOf(i), "pool", ip::MacAddress()});
  }
  std::stable_sort(holdings.begin(), holdings.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  netagent::HoldingsReplaced replaced;
  for (auto& [order, holding] : holdings) replaced.holdings.push_back(std::move(holding));
  std::vector<netagent::Event> events;
  events.emplace_back(std::move(replaced));
  netagent::WithdrawnSet withdrawn;
  for (size_t i = 0; i < kAddresses; ++i) {
    const Journalled& entry = agent.journal[i];
    if (entry.withdrawn) withdrawn.addresses.push_back(AddressOf(i));
    if (entry.use == AgentUse::kInUse) {
      const netagent::AttachmentKey key = ContainerOf(entry.pod);
      events.emplace_back(netagent::AssignmentBegun{{.key = key,
                                                     .addresses = {AddressOf(i)},
                                                     .generation = entry.generation,
                                                     .since = kNow}});
      events.emplace_back(netagent::AssignmentBuilt{key});
    } else if (IsCooling(entry) && !Has(agent.agreed, i)) {
      events.emplace_back(netagent::CooldownSet{AddressOf(i), kNow + CooldownOf(entry.use)});
    }
  }
  if (!withdrawn.addresses.empty()) events.emplace_back(std::move(withdrawn));
  return events;
}

// The agent of one node for the length of one step.
class Running {
 public:
  Running(World& world, size_t node, Defect defect, absl::Duration later = absl::ZeroDuration())
      : world_(world),
        node_(world.nodes[node]),
        clock_(kNow + later),
        attachments_(
            {.node_name = "node",
             .nic = "eth0",
             .cooldown = defect == Defect::kNoAgentCooldown ? kRest : kCooldown,
             .unrecorded_use_end =
                 node_.rebooted && defect != Defect::kForgetsBoot ? kNow : absl::InfinitePast()},
            {links_, outbox_, clock_, log_}, std::make_unique<netagent::FakeJournal>(tmpfs_)) {
    const Agent& agent = node_.agent;
    CHECK(attachments_.Start(EventsOf(agent)).ok(), "this kernel refuses nothing");
    if (agent.agreed == 0) return;
    attachments_.OnReclaim({.id = 1, .ranges = PrefixesOf(agent.agreed)});
    // What is in cooldown cannot be agreed to, so that it is told afterwards.
    node_api::DesiredState cooling;
    for (size_t i = 0; i < kAddresses; ++i) {
      if (!Has(agent.agreed, i) || !IsCooling(agent.journal[i])) continue;
      cooling.added.push_back({.range = PrefixOf(i),
                               .pool = "pool",
                               .nic_mac = ip::MacAddress(),
                               .cooldown = CooldownOf(agent.journal[i].use)});
    }
    if (!cooling.added.empty()) CHECK(attachments_.OnDesired(cooling).ok(), "it is journalled");
    outbox_.messages.clear();
  }

  Attachments& attachments() { return attachments_; }
  os::SimClock& clock() { return clock_; }
  std::vector<Message>& said() { return outbox_.messages; }

  // Ends the step: what the agent has done is written down, and what it says is on its way.
  void Finish() {
    attachments_.Tick();
    ReadBack();
    for (const Message& message : outbox_.messages) {
      if (node_.agent.stream != Stream::kOpen) return;
      if (!node_.up.Push(message)) world_.overflow = true;
    }
  }
  void ReadBack();

 private:
  World& world_;
  Node& node_;
  WillingLinks links_;
  Outbox outbox_;
  os::SimClock clock_;
  QuietLog log_;
  netagent::FakeTmpfs tmpfs_;
  Attachments attachments_;
};

void Running::ReadBack() {
  std::array<Journalled, kAddresses> journal = {};
  std::vector<size_t> listed;
  for (const netagent::Event& event : attachments_.assignments().Snapshot()) {
    if (const auto* replaced = std::get_if<netagent::HoldingsReplaced>(&event)) {
      for (const netagent::Holding& holding : replaced->holdings) {
        const size_t number = NumberOf(holding.address);
        journal[number] = {.use = AgentUse::kAvailable, .listed = true};
        listed.push_back(number);
      }
    } else if (const auto* begun = std::get_if<netagent::AssignmentBegun>(&event)) {
      Journalled& entry = journal[NumberOf(begun->assignment.addresses.front())];
      entry.use = AgentUse::kInUse;
      entry.generation = GenerationOf(begun->assignment.generation);
      entry.pod = PodOf(begun->assignment.key.container_id);
    } else if (const auto* cooldown = std::get_if<netagent::CooldownSet>(&event)) {
      const bool over = cooldown->until <= kNow + absl::Seconds(1);
      journal[NumberOf(cooldown->address)].use = over ? AgentUse::kCooled : AgentUse::kCooling;
    } else if (const auto* withdrawn = std::get_if<netagent::WithdrawnSet>(&event)) {
      for (const ip::Address& address : withdrawn->addresses) {
        journal[NumberOf(address)].withdrawn = true;
      }
    }
  }
  uint8_t order = 0;
  for (const size_t number : listed) {
    if (journal[number].use == AgentUse::kAvailable) journal[number].order = order++;
  }
  Mask withdrawn = 0;
  for (size_t i = 0; i < kAddresses; ++i) {
    if (journal[i].withdrawn) withdrawn |= BitOf(i);
  }
  node_.agent.journal = journal;
  node_.agent.agreed &= withdrawn;
}

void HearDesired(Running& running, Agent& agent, const Message& message) {
  node_api::DesiredState desired{.version = 1, .full = message.flag};
  desired.removed = PrefixesOf(message.b);
  for (size_t i = 0; i < kAddresses; ++i) {
    if (!Has(message.a, i)) continue;
    desired.added.push_back({.range = PrefixOf(i),
                             .pool = "pool",
                             .nic_mac = ip::MacAddress(),
                             .cooldown = Has(message.c, i)   ? kCooldown
                                         : Has(message.d, i) ? kRest
                                                             : absl::ZeroDuration()});
  }
  CHECK(running.attachments().OnDesired(desired).ok(), "this journal refuses nothing");
  agent.epoch = message.epoch;
  agent.nodes = message.nodes;
}

}  // namespace

bool Hear(World& world, size_t node, Defect defect) {
  Node& here = world.nodes[node];
  if (here.down.size == 0) return false;
  const Message message = here.down.Pop();
  Running running(world, node, defect);
  switch (message.kind) {
    case MessageKind::kDesired:
      HearDesired(running, here.agent, message);
      break;
    case MessageKind::kReclaimRequest:
      running.attachments().OnReclaim({.id = 1, .ranges = PrefixesOf(message.a)});
      for (const Message& answer : running.said()) here.agent.agreed |= answer.a;
      break;
    case MessageKind::kInventoryRequest:
      running.attachments().OnInventory({.id = 1});
      if (defect == Defect::kNamesWithdrawn) {
        running.said().back().a = MaskOf(running.attachments().assignments().Attached());
      }
      break;
    case MessageKind::kHello:
    case MessageKind::kReport:
    case MessageKind::kReclaimAnswer:
    case MessageKind::kInventory:
      CHECK(false, "a server does not say that");
  }
  running.Finish();
  if (defect == Defect::kForgetsWithdrawal) {
    for (Journalled& entry : here.agent.journal) entry.withdrawn = false;
    here.agent.agreed = 0;
  }
  return true;
}

bool AddPod(World& world, size_t node, uint8_t pod, Defect defect) {
  Agent& agent = world.nodes[node].agent;
  if (agent.pods[pod - 1] != 0) return false;
  Running running(world, node, defect);
  const netagent::AttachmentKey key = ContainerOf(pod);
  if (!running.attachments().Add({.key = key}, 0).ok()) return false;
  const netagent::Assignment* made = running.attachments().assignments().Find(key);
  agent.pods[pod - 1] = static_cast<uint8_t>(NumberOf(made->addresses.front()) + 1);
  running.Finish();
  return true;
}

bool DeletePod(World& world, size_t node, uint8_t pod, Defect defect) {
  Node& here = world.nodes[node];
  if (here.agent.pods[pod - 1] == 0) return false;
  here.ended |= BitOf(here.agent.pods[pod - 1] - 1U);
  here.agent.pods[pod - 1] = 0;
  here.agent.late_del[pod - 1] = true;
  Running running(world, node, defect);
  // Runtimes say it twice as a rule.
  CHECK(running.attachments().Del(ContainerOf(pod)).ok(), "this kernel refuses nothing");
  CHECK(running.attachments().Del(ContainerOf(pod)).ok(), "this kernel refuses nothing");
  running.Finish();
  return true;
}

bool DeletePodLate(World& world, size_t node, uint8_t pod, Defect defect) {
  Agent& agent = world.nodes[node].agent;
  if (agent.pods[pod - 1] == 0 || !agent.late_del[pod - 1]) return false;
  agent.late_del[pod - 1] = false;
  Running running(world, node, defect);
  CHECK(running.attachments().DelAskedAt(ContainerOf(pod), kLongAgo).ok(),
        "this kernel refuses nothing");
  running.Finish();
  return true;
}

bool LookAtCooldowns(World& world, size_t node, Defect defect) {
  const Agent& agent = world.nodes[node].agent;
  if (std::none_of(agent.journal.begin(), agent.journal.end(),
                   [](const Journalled& entry) { return entry.use == AgentUse::kCooled; })) {
    return false;
  }
  Running running(world, node, defect);
  running.clock().Advance(2 * kRest);
  running.Finish();
  return true;
}

bool Connect(World& world, size_t node, Defect defect) {
  Node& here = world.nodes[node];
  Agent& agent = here.agent;
  if (agent.stream != Stream::kNone) return false;
  Running running(world, node, defect);
  const netagent::Greeting greeting = running.attachments().BeginSession();
  Message hello{.kind = MessageKind::kHello,
                .a = MaskOf(greeting.hello.cooldown),
                .epoch = agent.epoch,
                .nodes = agent.nodes,
                .boot = agent.boot,
                .vm = agent.vm};
  AddSaid(greeting.hello.in_use, hello);
  agent.stream = Stream::kOpen;
  agent.agreed = 0;
  here.down.Clear();
  if (!here.up.Push(hello)) world.overflow = true;
  const Mask withdrawn = MaskOf(running.attachments().assignments().Withdrawn());
  if (defect == Defect::kOldAnswers && withdrawn != 0 &&
      !here.up.Push({.kind = MessageKind::kReclaimAnswer, .a = withdrawn})) {
    world.overflow = true;
  }
  running.Finish();
  return true;
}

void Disconnect(Node& node) {
  node.agent.stream = Stream::kNone;
  node.agent.agreed = 0;
  node.down.Clear();
}

void Restart(World& world, size_t node, Defect defect) {
  Disconnect(world.nodes[node]);
  Running(world, node, defect, 2 * kRest).ReadBack();
}

}  // namespace spoke::search
