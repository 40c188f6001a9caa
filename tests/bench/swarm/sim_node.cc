#include "tests/bench/swarm/sim_node.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "fmt/core.h"
#include "lib/ip/prefix.h"

namespace spoke::swarm {
namespace {

ip::Address OwnAddressOf(uint32_t node) { return ip::Address::V4(0x64400000U + node); }

constexpr uint64_t kMaxBlock = 4096;

// Calls `take` for each address of the configuration. Returns false when it makes no sense.
template <typename Take>
bool ForEachAddress(const v1::IpConfiguration& configuration, const Take& take) {
  const auto base = ip::Address::FromBytes(configuration.base());
  if (!base.ok() || configuration.prefix_length() > static_cast<uint32_t>(base->bits())) {
    return false;
  }
  const int free_bits = base->bits() - static_cast<int>(configuration.prefix_length());
  if (free_bits > 63 || (uint64_t{1} << free_bits) > kMaxBlock) return false;
  for (uint64_t i = 0; i < (uint64_t{1} << free_bits); ++i) take(ip::Advance(*base, i));
  return true;
}

}  // namespace

NodeNames NamesOf(uint32_t node) {
  return {.name = fmt::format("sim-{:05}", node),
          .vm_id = fmt::format("{:08x}-51a0-4000-8000-{:012x}", node, node),
          .boot_id = fmt::format("{:08x}-b007-4000-8000-{:012x}", node, node),
          .mac = fmt::format("02:51:{:02x}:{:02x}:{:02x}:{:02x}", (node >> 24U) & 0xFFU,
                             (node >> 16U) & 0xFFU, (node >> 8U) & 0xFFU, node & 0xFFU)};
}

std::optional<uint32_t> NodeOf(std::string_view name) {
  constexpr std::string_view kPrefix = "sim-";
  uint32_t node = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (!absl::SimpleAtoi(absl::string_view(name.data(), name.size()), &node)) return std::nullopt;
  return node;
}

std::string ContainerOf(uint32_t node, uint64_t generation) {
  return fmt::format("{:08x}{:040x}{:016x}", node, 0, generation);
}

void SimNode::Greet(v1::Hello& out, int64_t now) {
  welcomed_ = told_ = false;
  greeted_at_ = now_ = now;
  for (const Report& report : unacknowledged_) {
    greeted_.insert(greeted_.end(), report.operations.begin(), report.operations.end());
  }
  for (const Operation& operation : queued_) NoteOperation(operation, Step::kBegun, now);
  greeted_.insert(greeted_.end(), queued_.begin(), queued_.end());
  unacknowledged_.clear();
  queued_.clear();
  budgets_.BeginStream();
  desired_version_ = last_sequence_ = acknowledged_ = 0;
  const NodeNames names = NamesOf(node_);
  out.set_node_name(names.name);
  out.set_vm_id(names.vm_id);
  out.set_boot_id(names.boot_id);
  out.set_agent_version("swarm");
  out.set_policy_version(policy_version_);
  v1::Nic& nic = *out.add_nics();
  nic.set_name("eth0");
  nic.set_mac(names.mac);
  nic.set_mtu(1500);
  nic.add_addresses(OwnAddressOf(node_).ToBytes());
  for (const Held& held : held_) {
    if (held.use == Use::kInUse) FillAssignment(held, *out.add_in_use());
    if (held.use == Use::kCooldown) out.add_cooldown(held.address.ToBytes());
  }
}

void SimNode::Take(const v1::ServerMessage& message, int64_t now, Outcome& out) {
  now_ = now;
  TakeOne(message, now, out);
  StartWaiting();
}

void SimNode::TakeOne(const v1::ServerMessage& message, int64_t now, Outcome& out) {
  if (!welcomed_ && !message.has_welcome()) {
    Complain("no_welcome", fmt::format("message {} comes before Welcome",
                                       static_cast<int>(message.message_case())));
    return;
  }
  switch (message.message_case()) {
    case v1::ServerMessage::kWelcome:
      return TakeWelcome(message.welcome(), now, out);
    case v1::ServerMessage::kDesired:
      return TakeDesired(message.desired(), now, out);
    case v1::ServerMessage::kReportAck:
      return TakeReportAck(message.report_ack().sequence(), now, out);
    case v1::ServerMessage::kReclaim:
      return TakeReclaim(message.reclaim(), now, out);
    case v1::ServerMessage::kPolicy:
      return TakePolicy(message.policy(), out);
    case v1::ServerMessage::kInventoryRequest:
      return TakeInventory(message.inventory_request().id(), out);
    case v1::ServerMessage::kProbeRequest:
      return TakeProbes(message.probe_request(), now, out);
    case v1::ServerMessage::kForecast:
    case v1::ServerMessage::kAttachTracesRequest:
    case v1::ServerMessage::kEndAssignment:
    case v1::ServerMessage::kPolicyTrial:
    case v1::ServerMessage::kMaintenanceStart:
    case v1::ServerMessage::kNodeDataRequest:
      return;  // No pod of a simulated node waits, and nobody asks about one.
    case v1::ServerMessage::kBudgetGrants:
      if (const std::string wrong = budgets_.TakeGrants(message.budget_grants()); !wrong.empty()) {
        Complain("budget", wrong);
      }
      return;
    case v1::ServerMessage::MESSAGE_NOT_SET:
      return;  // It is of a newer server.
  }
}

// All nodes reach each other at once, but for the one whose NIC is dead.
void SimNode::TakeProbes(const v1::ProbeRequest& request, int64_t now, Outcome& out) const {
  v1::ProbeResults& results = *out.answers.emplace_back().mutable_probe_results();
  results.set_id(request.id());
  const bool is_dead = now >= dead_nic_.from;
  const std::string dead = OwnAddressOf(dead_nic_.node).ToString();
  for (const v1::ProbeRequest::Target& target : request.targets()) {
    v1::ProbeResults::Result& result = *results.add_results();
    result.set_address(target.address());
    result.set_took_us(100);
    const bool lost = is_dead && (node_ == dead_nic_.node || target.address() == dead);
    result.set_outcome(lost ? v1::ProbeResults::Result::TIMED_OUT
                            : v1::ProbeResults::Result::REACHED);
  }
}

// Welcome follows once what Hello said is durable. What has come up since is said by a report.
void SimNode::TakeWelcome(const v1::Welcome& welcome, int64_t now, Outcome& out) {
  if (welcomed_) Complain("welcome_again", "a second Welcome on one stream");
  if (welcome.session_epoch() <= session_epoch_) {
    Complain("stale_epoch",
             fmt::format("session epoch {} after {}", welcome.session_epoch(), session_epoch_));
  }
  session_epoch_ = welcome.session_epoch();
  welcomed_ = true;
  out.written = greeted_at_;
  for (const Operation& operation : std::exchange(greeted_, {})) {
    NoteWaited(operation, out);
    Settle(operation, now);
  }
}

void SimNode::TakeDesired(const v1::DesiredState& desired, int64_t now, Outcome& out) {
  if (!told_ && !desired.full()) Complain("delta_first", "the first state of a stream is not full");
  if (desired.version() <= desired_version_) {
    Complain("version_back",
             fmt::format("version {} after {}", desired.version(), desired_version_));
  }
  desired_version_ = desired.version();
  // A list that begins a session forgets what we agreed to before; a later one does not: our
  // agreement may be on its way. What comes with a change has been away.
  const bool anew = !desired.full() || !told_;
  told_ = told_ || desired.full();
  for (Held& held : held_) held.listed = false;
  for (const v1::IpConfiguration& removed : desired.removed()) TakeRemoved(removed, now);
  for (const v1::IpConfiguration& added : desired.added()) TakeAdded(added, anew, now);
  if (desired.full()) DropUnlisted(now);
  out.answers.emplace_back().mutable_ack()->set_version(desired.version());
}

void SimNode::TakeAdded(const v1::IpConfiguration& added, bool anew, int64_t now) {
  const bool valid = ForEachAddress(added, [&](const ip::Address& address) {
    Held* held = Find(address);
    if (held != nullptr) {
      if (held->listed) Complain("listed_twice", address.ToString());
      held->listed = true;
      if (held->use != Use::kWithdrawn || !anew) return;
    }
    if (const auto other = ledger_.Claim(address, node_, now)) {
      Complain("twice", fmt::format("{} was given to {}, which has not given it up",
                                    address.ToString(), NamesOf(*other).name));
      return;
    }
    if (held != nullptr) held->use = Use::kAvailable;
    if (held != nullptr) return;
    Held& slot = NewSlot();
    // What is in cooldown for the server is never assigned here: the runs are short.
    slot = {.address = address,
            .use = added.cooldown_ms() > 0 ? Use::kCooldown : Use::kAvailable,
            .listed = true};
  });
  if (!valid) {
    Complain("bad_configuration",
             fmt::format("{} bytes, /{}", added.base().size(), added.prefix_length()));
  }
}

void SimNode::TakeRemoved(const v1::IpConfiguration& removed, int64_t now) {
  ForEachAddress(removed, [&](const ip::Address& address) {
    Held* held = Find(address);
    if (held == nullptr) return;
    if (held->use != Use::kWithdrawn) {
      Complain("taken",
               fmt::format("{} was taken without this node's agreement{}", address.ToString(),
                           held->use == Use::kInUse ? ", assigned" : ""));
      NoteMissing(address, now);
    }
    held->use = Use::kGone;
  });
}

// The full state names everything that was ever acknowledged and not given up.
void SimNode::DropUnlisted(int64_t now) {
  for (Held& held : held_) {
    if (held.use == Use::kGone || held.listed) continue;
    if (held.use != Use::kWithdrawn) {
      // It stays in the ledger, so that giving it to another is found as well.
      Complain("lost", fmt::format("{} is forgotten{}", held.address.ToString(),
                                   held.use == Use::kInUse ? ", assigned" : ""));
      NoteMissing(held.address, now);
    }
    held.use = Use::kGone;
  }
}

void SimNode::TakeReportAck(uint64_t sequence, int64_t now, Outcome& out) {
  if (sequence > last_sequence_ || sequence <= acknowledged_) {
    Complain("bad_ack", fmt::format("report {} acknowledged; sent up to {}, acknowledged up to {}",
                                    sequence, last_sequence_, acknowledged_));
    return;
  }
  acknowledged_ = sequence;
  while (!unacknowledged_.empty() && unacknowledged_.front().sequence <= sequence) {
    const Report report = std::move(unacknowledged_.front());
    unacknowledged_.pop_front();
    out.written = report.sent_at;
    for (const Operation& operation : report.operations) {
      out.latencies.push_back(now - report.sent_at);
      NoteWaited(operation, out);
      Settle(operation, now);
    }
  }
}

void SimNode::TakeReclaim(const v1::ReclaimRequest& request, int64_t now, Outcome& out) {
  v1::ReclaimAnswer& answer = *out.answers.emplace_back().mutable_reclaim_answer();
  answer.set_id(request.id());
  for (const v1::IpConfiguration& configuration : request.configurations()) {
    *(GiveUp(configuration, now) ? answer.add_agreed() : answer.add_denied()) = configuration;
  }
}

// The ledger hears of it before the server can, so that no order of delivery looks like a fault.
bool SimNode::GiveUp(const v1::IpConfiguration& configuration, int64_t now) {
  bool available = true;
  ForEachAddress(configuration, [&](const ip::Address& address) {
    const Held* held = Find(address);
    if (held != nullptr && (held->use == Use::kInUse || held->use == Use::kCooldown))
      available = false;
  });
  if (!available) return false;
  ForEachAddress(configuration, [&](const ip::Address& address) {
    Held* held = Find(address);
    if (held == nullptr || held->use == Use::kWithdrawn) return;
    held->use = Use::kWithdrawn;
    ++given_up_;
    ledger_.GiveUp(address, node_, now);
  });
  return true;
}

void SimNode::TakePolicy(const v1::PolicyBundle& policy, Outcome& out) {
  v1::PolicyAck& ack = *out.answers.emplace_back().mutable_policy_ack();
  ack.set_version(policy.version());
  if (!policy.full() && policy.base_version() != policy_version_) {
    ack.set_error(
        fmt::format("relative to version {}, have {}", policy.base_version(), policy_version_));
    Complain("policy_base", ack.error());
    return;
  }
  if (policy.version() < policy_version_) {
    Complain("policy_back", fmt::format("version {} after {}", policy.version(), policy_version_));
  }
  policy_version_ = policy.version();
  budgets_.TakePolicy(policy);
}

void SimNode::TakeInventory(uint64_t id, Outcome& out) const {
  v1::Inventory& inventory = *out.answers.emplace_back().mutable_inventory();
  inventory.set_id(id);
  for (const Held& held : held_) {
    if (held.use == Use::kGone) continue;
    inventory.add_held(held.address.ToBytes());
    if (held.use == Use::kInUse) FillAssignment(held, *inventory.add_in_use());
  }
}

bool SimNode::Assign() { return AssignNext() != nullptr; }

bool SimNode::RunPod(int64_t now) {
  now_ = now;
  Held* held = AssignNext();
  if (held != nullptr) held->brief = true;
  return held != nullptr;
}

SimNode::Held* SimNode::AssignNext() {
  for (size_t tried = 0; tried < held_.size(); ++tried) {
    const size_t slot = cursor_;
    cursor_ = (cursor_ + 1) % held_.size();
    Held& held = held_[slot];
    if (held.use != Use::kAvailable) continue;
    held.use = Use::kInUse;
    held.generation = ++last_generation_;
    Queue(Kind::kAssign, static_cast<uint32_t>(slot));
    return &held;
  }
  return nullptr;
}

size_t SimNode::StartPods(size_t pods, Patience patience) {
  working_ = true;
  patience_ = patience;
  size_t started = 0;
  while (started < pods && Assign()) ++started;
  if (patience == Patience::kWaits) waiting_pods_ += pods - started;
  return started;
}

void SimNode::StartWaiting() {
  while (waiting_pods_ > 0 && Assign()) --waiting_pods_;
}

void SimNode::NoteWaited(const Operation& operation, Outcome& out) {
  out.wanted = out.wanted < 0 ? operation.wanted : std::min(out.wanted, operation.wanted);
}

int64_t SimNode::waits_since() const {
  if (!welcomed_) return greeted_at_;
  return unacknowledged_.empty() ? -1 : unacknowledged_.front().sent_at;
}

void SimNode::Queue(Kind kind, uint32_t slot) {
  held_[slot].settled = false;
  queued_.push_back({kind, slot, now_});
}

void SimNode::Settle(const Operation& operation, int64_t now) {
  NoteOperation(operation, Step::kStored, now);
  Held& held = held_[operation.slot];
  held.settled = true;
  if (operation.kind == Kind::kAssign) {
    if (!working_ && !held.brief) return;
    held.use = Use::kCooldown;
    return Queue(Kind::kRelease, operation.slot);
  }
  released_.push_back(operation.slot);
  held.brief = false;
  if (!working_ || Assign()) return;
  if (patience_ == Patience::kWaits) {
    ++waiting_pods_;
  } else {
    Complain("starved", "no available address for the next pod: fewer pods, or more addresses");
  }
}

void SimNode::NoteOperation(const Operation& operation, Step step, int64_t now) const {
  using Seen = ha::Event::Kind;
  const Held& held = held_[operation.slot];
  const bool begun = step == Step::kBegun;
  ledger_.Note({.address = held.address,
                .kind = operation.kind == Kind::kAssign ? begun ? Seen::kUseBegun : Seen::kUseStored
                        : begun                         ? Seen::kEndBegun
                                                        : Seen::kEndStored,
                .node = node_,
                .generation = held.generation,
                .at = now});
}

void SimNode::NoteMissing(const ip::Address& address, int64_t now) const {
  ledger_.Note({.address = address, .kind = ha::Event::Kind::kMissing, .node = node_, .at = now});
}

void SimNode::FillReport(v1::AssignmentReport& out, int64_t now, int64_t unix_ms) {
  now_ = now;
  out.Clear();
  out.set_sequence(++last_sequence_);
  Report& report = unacknowledged_.emplace_back();
  report.sequence = last_sequence_;
  report.sent_at = now;
  while (!queued_.empty() && report.operations.size() < reporting_.operations) {
    const Operation operation = queued_.front();
    queued_.pop_front();
    report.operations.push_back(operation);
    NoteOperation(operation, Step::kBegun, now);
    const Held& held = held_[operation.slot];
    if (operation.kind == Kind::kAssign) {
      v1::Assignment& assignment = *out.add_in_use();
      FillAssignment(held, assignment);
      assignment.set_since_unix_ms(unix_ms);
    } else {
      v1::Release& release = *out.add_released();
      release.set_address(held.address.ToBytes());
      release.set_generation(held.generation);
    }
  }
  for (; !released_.empty(); released_.pop_front()) {
    Held& held = held_[released_.front()];
    if (held.use != Use::kCooldown || !held.settled) continue;
    held.use = Use::kAvailable;
    out.add_cooled(held.address.ToBytes());
  }
  StartWaiting();
}

void SimNode::FillAssignment(const Held& held, v1::Assignment& out) const {
  out.set_address(held.address.ToBytes());
  out.set_container_id(ContainerOf(node_, held.generation));
  out.set_ifname("eth0");
  out.set_pod_namespace(fmt::format("team-{}", node_ % 100));
  out.set_pod_name(fmt::format("trainer-{:05}-worker-{}", node_, held.generation));
  out.set_pod_uid(fmt::format("{:08x}-90d0-4000-8000-{:012x}", node_, held.generation));
  out.set_generation(held.generation);
}

size_t SimNode::usable() const {
  return Count(Use::kAvailable) + Count(Use::kInUse) + Count(Use::kCooldown);
}

size_t SimNode::Count(Use use) const {
  return static_cast<size_t>(
      std::count_if(held_.begin(), held_.end(), [&](const Held& held) { return held.use == use; }));
}

SimNode::Held* SimNode::Find(const ip::Address& address) {
  for (Held& held : held_) {
    if (held.use != Use::kGone && held.address == address) return &held;
  }
  return nullptr;
}

SimNode::Held& SimNode::NewSlot() {
  const auto gone = std::find_if(held_.begin(), held_.end(),
                                 [](const Held& held) { return held.use == Use::kGone; });
  return gone != held_.end() ? *gone : held_.emplace_back();
}

void SimNode::Complain(std::string_view kind, const std::string& text) const {
  ledger_.Complain(kind, fmt::format("{}: {}", NamesOf(node_).name, text));
}

}  // namespace spoke::swarm
