// Worlds and actions in words.
#include <array>
#include <string>

#include "fmt/core.h"
#include "ipam-server/ledger/address_state.h"
#include "ipam-server/ledger/node_record.h"
#include "tests/search/actions.h"

namespace spoke::search {
namespace {

std::string Text(Mask mask) {
  std::string text;
  for (size_t i = 0; i < kAddresses; ++i) {
    if (Has(mask, i)) text += fmt::format("{}.{}", text.empty() ? "" : " ", i + 1);
  }
  return text.empty() ? "none" : text;
}

std::string Text(const Message& message) {
  std::string text;
  switch (message.kind) {
    case MessageKind::kHello:
      text = fmt::format("hello of VM {} boot {}, cooling {}, mark {}", message.vm, message.boot,
                         Text(message.a), message.epoch);
      break;
    case MessageKind::kReport:
      text = fmt::format("report, cooled {}", Text(message.a));
      break;
    case MessageKind::kReclaimAnswer:
      text = fmt::format("agreed {}, denied {}", Text(message.a), Text(message.b));
      break;
    case MessageKind::kInventory:
      text = fmt::format("inventory, holds {}", Text(message.a));
      break;
    case MessageKind::kDesired:
      text = fmt::format("{}, added {}, removed {}, cooling {}, mark {}",
                         message.flag ? "the whole list" : "the list's change", Text(message.a),
                         Text(message.b), Text(static_cast<Mask>(message.c | message.d)),
                         message.epoch);
      break;
    case MessageKind::kReclaimRequest:
      text = fmt::format("is asked for {}", Text(message.a));
      break;
    case MessageKind::kInventoryRequest:
      text = "is asked what it holds";
      break;
  }
  for (size_t i = 0; i < kAddresses; ++i) {
    if (message.in_use[i].pod != 0) {
      text += fmt::format(", .{} in use (generation {})", i + 1, message.in_use[i].generation);
    }
    if (message.released[i] != 0) {
      text += fmt::format(", .{} released (generation {})", i + 1, message.released[i]);
    }
  }
  return text;
}

std::string First(const Queue& queue) { return queue.size == 0 ? "" : Text(queue.messages[0]); }

std::string_view NameOf(Stream stream) {
  switch (stream) {
    case Stream::kNone:
      return "none";
    case Stream::kOpen:
      return "open";
    case Stream::kDead:
      return "dead";
  }
  return "";
}

std::string_view NameOf(Phase phase) {
  switch (phase) {
    case Phase::kOpen:
      return "open";
    case Phase::kProving:
      return "proving";
    case Phase::kRecovering:
      return "recovering";
  }
  return "";
}

std::string Text(const Record& record) {
  std::string text{ipam::NameOf(static_cast<ipam::NodeMode>(record.mode))};
  for (size_t i = 0; i < kAddresses; ++i) {
    const Held& held = record.held[i];
    if (held.state != 0) {
      text += fmt::format(", .{} {} {} (generation {})", i + 1,
                          ipam::NameOf(static_cast<ipam::AddressState>(held.state),
                                       static_cast<node_api::Use>(held.use)),
                          held.denied ? "denied" : "", held.generation);
    }
    if (record.released[i] == Cooling::kRecent) text += fmt::format(", .{} released", i + 1);
  }
  return text;
}

std::string Text(const Agent& agent) {
  constexpr std::array<std::string_view, 5> kUses = {"", "available", "in use", "cooling",
                                                     "cooled"};
  std::string text =
      fmt::format("VM {} boot {}, stream {}", agent.vm, agent.boot, NameOf(agent.stream));
  for (size_t i = 0; i < kAddresses; ++i) {
    const Journalled& entry = agent.journal[i];
    if (entry.use == AgentUse::kAbsent) continue;
    text += fmt::format(", .{} {}{}{}", i + 1, kUses[static_cast<size_t>(entry.use)],
                        entry.listed ? "" : " not listed", entry.withdrawn ? " withdrawn" : "");
  }
  for (size_t i = 0; i < kPods; ++i) {
    if (agent.pods[i] != 0) text += fmt::format(", pod {} has .{}", i + 1, agent.pods[i]);
  }
  return text;
}

}  // namespace

std::string Describe(const World& before, const Action& action, std::string_view names) {
  const Node& node = before.nodes[action.node];
  const char name = names[action.node];
  switch (action.act) {
    case Act::kListen:
      return fmt::format("the leader hears of {}: {}", name, First(node.up));
    case Act::kListenAndDie:
      return fmt::format("the leader hears of {}: {}; it stores that and dies, another one leads",
                         name, First(node.up));
    case Act::kHear:
      return fmt::format("{} hears: {}", name, First(node.down));
    case Act::kCarryOut:
      return fmt::format("the cloud makes the NIC of {} hold {}", name, Text(node.asked.on_nic));
    case Act::kHearCloud:
      return fmt::format("the leader hears that the NIC of {} holds {}", name,
                         Text(node.answer.on_nic));
    case Act::kHearCloudAndDie:
      return fmt::format("the leader hears that the NIC of {} holds {}; it stores that and dies",
                         name, Text(node.answer.on_nic));
    case Act::kReview:
      return fmt::format("the leader reviews {}", name);
    case Act::kReviewAndDie:
      return fmt::format("the leader reviews {}, stores that and dies", name);
    case Act::kConnect:
      return fmt::format("{} connects", name);
    case Act::kLook:
      return fmt::format("{} ends cooldowns", name);
    case Act::kAddPod:
      return fmt::format("pod {} comes to {}", action.pod, name);
    case Act::kDeletePod:
      return fmt::format("pod {} of {} ends", action.pod, name);
    case Act::kDeletePodLate:
      return fmt::format("a late DEL of a former pod {} comes to {}", action.pod, name);
    case Act::kDisconnect:
      return fmt::format("{} loses its stream", name);
    case Act::kNotice:
      return fmt::format("the leader notices that {} has left", name);
    case Act::kChangeMode:
      return fmt::format("an operator drains {}, or ends that", name);
    case Act::kTick:
      return "time passes";
    case Act::kList:
      return "the cloud lists the machines";
    case Act::kRestartAgent:
      return fmt::format("the agent of {} begins anew", name);
    case Act::kReboot:
      return fmt::format("{} boots", name);
    case Act::kReplace:
      return fmt::format("another machine takes the place of {}", name);
    case Act::kRestartLeader:
      return "the leader begins anew";
    case Act::kChangeLeader:
      return "another server leads";
    case Act::kBackUp:
      return "a backup is made";
    case Act::kRestore:
      return "the backup is restored beside the leader's own newer mark";
    case Act::kRestoreElsewhere:
      return "the backup is restored where there is no mark";
  }
  return "";
}

std::string Describe(const World& world, std::string_view names) {
  std::string text =
      fmt::format("  leader {}, doubtful {}\n", NameOf(world.phase), Text(world.doubtful));
  for (size_t i = 0; i < kNodes; ++i) {
    const Node& node = world.nodes[i];
    text += fmt::format("  {} NIC {}; agent {}\n", names[i], Text(node.nic), Text(node.agent));
    for (size_t vm = 0; vm < kVms; ++vm) {
      if (!node.stored[vm].present) continue;
      text += fmt::format("  {} record of VM {}: {}; claims {}\n", names[i], vm,
                          Text(node.stored[vm]), Text(node.memory[vm].claims));
    }
  }
  return text;
}

}  // namespace spoke::search
