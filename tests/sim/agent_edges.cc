#include "tests/sim/agent_edges.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace spoke::sim {
namespace {

constexpr double kChanceOfFullJournal = 0.002;
constexpr double kChanceOfRefusal = 0.01;

}  // namespace

bool SimJournal::IsLost(const netagent::Event& event) const {
  return (basis_.Has(Mutant::kJournalBegunLost) &&
          std::holds_alternative<netagent::AssignmentBegun>(event)) ||
         (basis_.Has(Mutant::kJournalBuiltLost) &&
          std::holds_alternative<netagent::AssignmentBuilt>(event)) ||
         (basis_.Has(Mutant::kJournalReleasedLost) &&
          std::holds_alternative<netagent::AssignmentReleased>(event)) ||
         (basis_.Has(Mutant::kJournalWithdrawnLost) &&
          std::holds_alternative<netagent::WithdrawnSet>(event));
}

absl::Status SimJournal::Append(const netagent::Event& event) {
  const std::string frame = netagent::EncodeFrame(event);
  if (process_.dies_next()) {
    basis_.Happened(Fault::kJournalTorn, process_.who());
    node_.journal += frame.substr(0, basis_.random.Below(frame.size()));
  }
  process_.Step("journal");
  if (basis_.random.Chance(kChanceOfFullJournal * basis_.faults)) {
    basis_.Happened(Fault::kJournalFull, process_.who());
    return absl::ResourceExhaustedError("tmpfs is full");
  }
  if (!IsLost(event)) node_.journal += frame;
  process_.Step("journal written");
  return absl::OkStatus();
}

absl::Status SimJournal::Compact(const std::vector<netagent::Event>& events) {
  std::string next;
  for (const netagent::Event& event : events) next += netagent::EncodeFrame(event);
  process_.Step("compaction");
  node_.journal = std::move(next);
  process_.Step("compacted");
  return absl::OkStatus();
}

std::vector<netagent::Event> SimJournal::Replay(Basis& basis, NodeState& node) {
  netagent::ParsedJournal parsed = netagent::ParseJournal(node.journal);
  if (parsed.valid_bytes < node.journal.size() && basis.Has(Mutant::kTornFrameEndsTheJournal)) {
    parsed = {};
  }
  node.journal.resize(parsed.valid_bytes);
  if (basis.Has(Mutant::kJournalReplayedInReverse)) {
    std::reverse(parsed.events.begin(), parsed.events.end());
  }
  if (basis.Has(Mutant::kCooldownForgottenAtRestart)) {
    std::erase_if(parsed.events, [](const netagent::Event& event) {
      return std::holds_alternative<netagent::CooldownSet>(event);
    });
    for (netagent::Event& event : parsed.events) {
      auto* released = std::get_if<netagent::AssignmentReleased>(&event);
      if (released != nullptr) released->unused = true;
    }
  }
  return std::move(parsed.events);
}

absl::Status SimLinks::Apply(const netagent::AttachSpec& spec, const netagent::LinkOperations& plan,
                             std::optional<int> pod_netns) {
  process_.Step("kernel");
  if (basis_.random.Chance(kChanceOfRefusal * basis_.faults)) {
    basis_.Happened(Fault::kKernelRefuses, process_.who());
    return absl::InternalError("the kernel refuses");
  }
  const auto before = node_.kernel->Attached(spec.host_link);
  if (before && spec.addresses.empty() && basis_.Has(Mutant::kDelFreesWithoutTheLink) &&
      basis_.random.Chance(0.2)) {
    return absl::OkStatus();
  }
  const absl::Status status = node_.kernel->Apply(spec, plan, pod_netns);
  const auto after = node_.kernel->Attached(spec.host_link);
  if (before && !after) {
    for (const ip::Address& address : before->addresses) {
      basis_.judge.PodLoses(node_.key, spec.host_link, address);
    }
  } else if (!before && after) {
    for (const ip::Address& address : after->addresses) {
      basis_.judge.PodGets(node_.key, spec.host_link, address);
    }
  }
  node_.kernel->FinishDetaching().IgnoreError();
  process_.Step("kernel done");
  return status;
}

}  // namespace spoke::sim
