// One machine with pods: its kernel, its tmpfs and its boot, which outlive the agent. Values that
// the agent, the runtime and the laws share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/units/quantity.h"
#include "netagent/journal/journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "tests/sim/process.h"
#include "tests/sim/schedule.h"

namespace spoke::sim {

struct Machine {
  size_t index = 0;
  std::string name;   // The node's.
  std::string vm_id;  // Another one where the machine was replaced.
  ip::MacAddress mac;
  std::string instance;             // What the metadata service says: the VM's name in the cloud,
  std::vector<ip::Prefix> subnets;  // and its NIC's; empty where there is none.
  int boots = 0;
  std::string boot_id;
  bool exists = true;
  bool is_ending = false;                // The cloud has announced that it deletes it.
  std::optional<ip::Prefix> lies_about;  // Somebody has taken over the agent, and speaks of these.

  // --- What ends with the boot. ---
  std::unique_ptr<netagent::FakeKernel> kernel;
  std::unique_ptr<MachineClock> clock;  // The agent's: it goes on evenly for as long as the boot.
  absl::Time booted;                    // By that clock.
  std::string journal;                  // The bytes of its file.
  std::map<netagent::AttachmentKey, absl::Time> tombstones;  // The DELs that no agent has heard.
  std::string policy_file;  // The path of what the agent keeps of its policy.

  // --- What outlives it. ---
  bool shares_budget = false;  // Its pods use a budget that all machines share.
  std::string token;           // What the server told of its store.
};

// What may go wrong on machines at present.
struct MachineFaults {
  double journal_full = 0;  // The share of writes that fail.
  double kernel_refuses = 0;
};

// What an agent does to its machine is watched here, as it happens.
class MachineWatcher {
 public:
  virtual ~MachineWatcher() = default;
  // A pod's link was made, or taken down: from then, and until then, the pod has the addresses.
  virtual void OnLink(const Machine& machine, const std::string& host_link,
                      const std::vector<ip::Address>& addresses) = 0;
  virtual void OnUnlink(const Machine& machine, const std::string& host_link) = 0;
  // The journal has one event more, or begins anew with these.
  virtual void OnJournal(const Machine& machine, const netagent::Event& event) = 0;
  virtual void OnJournalBegun(const Machine& machine) = 0;
  // The kernel lets all pods have so much of the budget that all share, until it is told otherwise.
  virtual void OnRate(const Machine& machine, units::BitRate rate) = 0;
};

// The kernel of a machine as one agent reaches it. Borrows all of it.
class AgentLinks final : public netagent::Links {
 public:
  AgentLinks(Machine& machine, Life& life, MachineWatcher& watcher, const MachineFaults& faults,
             Random& random)
      : machine_(machine), life_(life), watcher_(watcher), faults_(faults), random_(random) {}

  absl::StatusOr<std::map<std::string, netagent::HostSide>> Read() override;
  netagent::PodChanges TakePodChanges() override;
  absl::StatusOr<netagent::PodSide> ReadPod(const netagent::AttachSpec& spec, int netns) override;
  uint32_t IndexOf(const std::string& host_link) const override;
  netagent::HostSide Recall(const std::string& host_link) const override;
  absl::Status Apply(const netagent::AttachSpec& spec, const netagent::LinkOperations& plan,
                     std::optional<int> pod_netns) override;
  absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) override;
  absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& nic) override;
  absl::StatusOr<netagent::Nic> ReadNic(const std::string& name) override;

 private:
  absl::Status Act();

  Machine& machine_;
  Life& life_;
  MachineWatcher& watcher_;
  const MachineFaults& faults_;
  Random& random_;
};

// The journal of a machine as one agent writes it: real frames, in a file on tmpfs. Borrows all.
class AgentJournal final : public netagent::Journal {
 public:
  AgentJournal(Machine& machine, Life& life, MachineWatcher& watcher, const MachineFaults& faults,
               Random& random)
      : machine_(machine), life_(life), watcher_(watcher), faults_(faults), random_(random) {}

  absl::Status Append(const netagent::Event& event) override;
  absl::Status Compact(const std::vector<netagent::Event>& events) override;
  size_t size() const override { return machine_.journal.size(); }

 private:
  absl::Status Act();

  Machine& machine_;
  Life& life_;
  MachineWatcher& watcher_;
  const MachineFaults& faults_;
  Random& random_;
};

}  // namespace spoke::sim
