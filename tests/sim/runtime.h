// The kubelet and the container runtime of a node, as far as a CNI plugin can tell: pods come and
// go, each sandbox with a container id of its own, and the plugin is called as often, as late and
// in such an order as runtimes do it.
//
// The plugin itself is played: it asks the agent, asks the next one under the same attempt when
// that one ends before it has answered, and leaves a tombstone when no agent is there for a DEL.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/cni_api/wire.h"
#include "netagent/cni/cni_server.h"
#include "tests/sim/agent.h"
#include "tests/sim/basis.h"
#include "tests/sim/node_state.h"

namespace spoke::sim {

class Runtime final : public netagent::ResponseChannel {
 public:
  struct Edges {
    Basis& basis;
    NodeState& node;
    std::function<AgentProcess*()> agent;  // nullptr: none listens.
  };
  explicit Runtime(Edges edges) : edges_(std::move(edges)), basis_(edges_.basis) {}

  // Wants one pod more, or one less.
  void StartPod();
  void StopPod();
  // It is killed, and back in a while: it does not know how what was under way has ended.
  void Kill();
  // The machine boots: all pods are gone, and those that are wanted begin anew in a while.
  void Reboot();
  // The machine is no more.
  void End();
  // A pod that waits for its ADD is deleted. False: there is none.
  bool GiveUpOne();
  // Somebody deletes a pod's link. False: there is none.
  bool TakeLinkAway();

  size_t wanted() const { return pods_.size(); }
  // Whether every pod that is wanted runs, and no other has anything.
  bool Settled() const;
  std::string Explain() const;

  // --- netagent::ResponseChannel. ---
  absl::Status Send(uint64_t client, const cni::Response& response) override;
  void Close(uint64_t client) override;
  void OnHangUp(uint64_t client, std::function<void()> gone) override;

 private:
  // A sandbox of a pod, from the making of its namespace to the end of it.
  struct Sandbox {
    std::string container;
    std::string path;
    std::shared_ptr<os::UniqueFd> netns;
    uint64_t attempt = 0;
    absl::Time deadline;  // By true time.
    std::vector<ip::Address> addresses;
    bool running = false;
    bool netns_gone = false;
  };
  using SandboxPtr = std::shared_ptr<Sandbox>;
  struct Pod {
    SandboxPtr sandbox;  // nullptr: the next one is to be made.
    uint64_t number = 0;
  };
  // A plugin that waits for its answer.
  struct Client {
    std::string container;
    std::function<void(const cni::Response&)> on_answer;
    std::function<void()> on_close;
    std::function<void()> on_hang_up;  // The agent's.
  };
  enum class Ending { kPlain, kDoubled, kLost, kLate };

  // Runs `work` after a while unless the runtime has been killed, or the machine has gone, by then.
  void After(absl::Duration wait, std::function<void()> work);
  void MakeSandbox(uint64_t pod);
  void Add(uint64_t pod, const SandboxPtr& sandbox);
  void OnAdded(uint64_t pod, const SandboxPtr& sandbox, const cni::Response& response);
  void TryAgain(uint64_t pod, SandboxPtr sandbox);
  void Delete(const SandboxPtr& sandbox, bool netns_follows);
  void End(const SandboxPtr& sandbox, Ending ending);
  void DestroyNetns(const SandboxPtr& sandbox);
  Ending DrawEnding();
  cni::Request RequestOf(const Sandbox& sandbox, cni::Verb verb) const;
  // The plugins of a container, or all (empty), are killed.
  void HangUp(const std::string& container);
  void Call(const cni::Request& request, os::UniqueFd netns, Client client);

  const Edges edges_;
  Basis& basis_;
  std::map<uint64_t, Pod> pods_;              // Those that are wanted.
  std::map<std::string, SandboxPtr> ending_;  // By container; their DEL is still to succeed.
  std::map<uint64_t, Client> clients_;
  uint64_t last_pod_ = 0;
  uint64_t last_sandbox_ = 0;
  uint64_t last_client_ = 0;
  uint64_t life_ = 0;  // Rises with each of its deaths.
  bool over_ = false;
};

}  // namespace spoke::sim
