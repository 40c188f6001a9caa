#include "tests/sim/machine.h"

#include <utility>

#include "lib/base/status.h"
#include "tests/sim/mutant.h"

namespace spoke::sim {

using netagent::AttachSpec;
using netagent::Event;

absl::Status AgentLinks::Act() {
  if (!life_.Acts()) return absl::UnavailableError("the agent is dead");
  if (random_.Chance(faults_.kernel_refuses)) return absl::UnavailableError("the kernel refuses");
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, netagent::HostSide>> AgentLinks::Read() {
  RETURN_IF_ERROR(Act());
  return machine_.kernel->Read();
}

netagent::PodChanges AgentLinks::TakePodChanges() { return machine_.kernel->TakePodChanges(); }

absl::StatusOr<netagent::PodSide> AgentLinks::ReadPod(const AttachSpec& spec, int netns) {
  RETURN_IF_ERROR(Act());
  return machine_.kernel->ReadPod(spec, netns);
}

uint32_t AgentLinks::IndexOf(const std::string& host_link) const {
  return machine_.kernel->IndexOf(host_link);
}

netagent::HostSide AgentLinks::Recall(const std::string& host_link) const {
  return machine_.kernel->Recall(host_link);
}

absl::Status AgentLinks::Apply(const AttachSpec& spec, const netagent::LinkOperations& plan,
                               std::optional<int> pod_netns) {
  RETURN_IF_ERROR(Act());
  const bool there = machine_.kernel->Attached(spec.host_link).has_value();
  const absl::Status applied = machine_.kernel->Apply(spec, plan, pod_netns);
  if (!applied.ok()) return applied;
  if (spec.addresses.empty()) {
    if (there) watcher_.OnUnlink(machine_, spec.host_link);
  } else if (!there) {
    watcher_.OnLink(machine_, spec.host_link, spec.addresses);
  }
  return applied;
}

absl::Status AgentLinks::SetUnreachable(const std::vector<ip::Address>& addresses) {
  RETURN_IF_ERROR(Act());
  return machine_.kernel->SetUnreachable(addresses);
}

absl::StatusOr<uint32_t> AgentLinks::SetNicTable(const ip::MacAddress& nic) {
  RETURN_IF_ERROR(Act());
  return machine_.kernel->SetNicTable(nic);
}

absl::StatusOr<netagent::Nic> AgentLinks::ReadNic(const std::string& name) {
  if (life_.dead()) return absl::UnavailableError("the agent is dead");
  return machine_.kernel->ReadNic(name);
}

absl::Status AgentJournal::Act() {
  if (!life_.Acts()) return absl::UnavailableError("the agent is dead");
  if (random_.Chance(faults_.journal_full)) return absl::ResourceExhaustedError("tmpfs is full");
  return absl::OkStatus();
}

absl::Status AgentJournal::Append(const Event& event) {
  const bool lived = !life_.dead();
  const std::string frame = netagent::EncodeFrame(event);
  if (const absl::Status acts = Act(); !acts.ok()) {
    // What dies in the middle of a write may leave a part of it.
    if (lived && life_.dead() && random_.Chance(0.3)) {
      machine_.journal += frame.substr(0, random_.Below(frame.size()));
    }
    return acts;
  }
  if (Mutant(37) && std::holds_alternative<netagent::WithdrawnSet>(event)) return absl::OkStatus();
  machine_.journal += frame;
  watcher_.OnJournal(machine_, event);
  return absl::OkStatus();
}

absl::Status AgentJournal::Compact(const std::vector<Event>& events) {
  RETURN_IF_ERROR(Act());
  machine_.journal.clear();
  watcher_.OnJournalBegun(machine_);
  for (const Event& event : events) {
    machine_.journal += netagent::EncodeFrame(event);
    watcher_.OnJournal(machine_, event);
  }
  return absl::OkStatus();
}

}  // namespace spoke::sim
