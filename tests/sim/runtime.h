// The container runtime and kubelet of one machine: pods that come and go, through the verbs of
// CNI. DELs come late, twice, or never; plugins lose their agent and ask again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/os/unique_fd.h"
#include "tests/sim/agent.h"
#include "tests/sim/laws.h"
#include "tests/sim/machine.h"

namespace spoke::sim {

// The namespace of every third pod; the others are in another.
inline constexpr std::string_view kTeam = "team";

struct RuntimeFaults {
  double del_lost = 0;       // The share of pods whose sandbox goes without a DEL.
  double del_doubled = 0;    // The share whose DEL comes again, up to some minutes later.
  double plugin_killed = 0;  // The share of ADDs whose plugin is killed while it waits.
  double late_hang_up = 0;   // The share of those of which the agent hears after the DEL.
};

// Not thread-safe.
class Runtime {
 public:
  struct Edges {
    Machine& machine;
    Schedule& schedule;
    Random& random;
    Trace& trace;
    Laws& laws;
    const RuntimeFaults& faults;
    // The agent that listens on the socket now; nullptr: none does.
    std::function<Agent*()> agent;
    // Called after each call of the agent: it may have died, and has another time to wake.
    std::function<void()> after_call;
  };
  explicit Runtime(Edges edges) : edges_(std::move(edges)) {}

  // So many pods a machine takes, as kubelet's --max-pods has it: fewer than addresses that it can
  // have.
  static constexpr uint64_t kMostPods = 55;
  // Pods are wanted on this machine, or not any more.
  void Start(uint64_t pods);
  void Stop(uint64_t pods);
  // A container dies, and its pod is given another.
  void Restart(uint64_t pods);
  // Tells the agent which attachments there are: what it has beside them goes (the verb GC).
  // It is asked until it has done so.
  void CollectGarbage();

  // The agent has died: all plugins that wait for it lose their connections.
  void OnAgentGone();
  // The machine boots: its pods are started again, and the DELs of those before may still come,
  // unless the disk with all that the runtime knew has gone.
  void OnBoot(bool disk_is_new = false);
  void OnAnswer(uint64_t client, const cni::Response& response);

  uint64_t wanted() const { return wanted_; }
  uint64_t running() const;
  // Whether a container is there, as far as the runtime knows.
  bool Has(std::string_view container) const;
  uint64_t under_way() const { return sandboxes_.size() - running(); }

 private:
  enum class Phase { kAdding, kRunning, kDeleting };
  struct Sandbox {
    std::string container;
    Phase phase = Phase::kAdding;
    os::UniqueFd
        netns;  // Open while its ADD is under way: there are 200,000 pods in a large fleet.
    netagent::FakeKernel::NetnsId netns_id = {};
    uint64_t attempt = 0;
    absl::Time deadline;  // By the machine's clock.
    uint64_t client = 0;  // The plugin that waits; 0: none does.
    std::string host_link = {};
    bool wanted = true;    // Its pod is to run; else it goes once its ADD is over.
    bool lingers = false;  // The plugin of its ADD has the namespace open for a while yet.
  };
  using Sandboxes = std::map<uint64_t, Sandbox>;

  void Launch();
  void Add(uint64_t id);
  void AddLater(uint64_t id, absl::Duration wait);
  void Remove(Sandbox& sandbox, uint64_t id);
  void KillPlugin(Sandbox& sandbox);
  void EndNetns(const netagent::FakeKernel::NetnsId& netns);
  void Del(uint64_t id);
  void DelAgain(const std::string& container);
  bool CallDel(const std::string& container);
  void Finish(uint64_t id);
  bool DoCollectGarbage();
  void OnAdded(uint64_t id, const cni::Response& response);
  uint64_t AnyRunning();
  void After(absl::Duration wait, const std::function<void()>& act);
  cni::Request RequestOf(cni::Verb verb, const std::string& container) const;

  const Edges edges_;
  uint64_t wanted_ = 0;
  uint64_t last_ = 0;
  uint64_t boot_ = 0;  // What was planned before is not done after it.
  Sandboxes sandboxes_;
  std::map<uint64_t, uint64_t> adds_;  // The sandbox by the plugin that waits for its ADD.
  std::map<uint64_t, bool> dels_;      // Whether the DEL of that plugin was carried out.
};

}  // namespace spoke::sim
