#include "tests/sim/runtime.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/fnv1a.h"
#include "lib/base/version.h"
#include "netagent/links/attach_plan.h"

namespace spoke::sim {
namespace {

constexpr absl::Duration kPluginPatience = absl::Seconds(60);
constexpr absl::Duration kLateDel = absl::Minutes(3);
constexpr const char* kNetwork = "spoke";

std::string NamespaceOf(const std::string& container) {
  return base::Fnv1a(container) % 3 == 0 ? std::string(kTeam) : "default";
}

std::string TextOf(const std::vector<cni::PodAddress>& addresses) {
  std::string text;
  for (const cni::PodAddress& address : addresses) {
    if (!text.empty()) text += ' ';
    text += address.address;
  }
  return text;
}

}  // namespace

void Runtime::After(absl::Duration wait, const std::function<void()>& act) {
  edges_.schedule.After(wait, [this, act, boot = boot_] {
    if (boot == boot_ && edges_.machine.exists) act();
  });
}

cni::Request Runtime::RequestOf(cni::Verb verb, const std::string& container) const {
  cni::Request request;
  request.verb = verb;
  request.container_id = container;
  request.ifname = "eth0";
  request.network_name = kNetwork;
  request.pod.name = container;
  request.pod.pod_namespace = NamespaceOf(container);
  request.plugin_version = base::kVersion;
  return request;
}

uint64_t Runtime::running() const {
  return static_cast<uint64_t>(
      std::count_if(sandboxes_.begin(), sandboxes_.end(),
                    [](const auto& entry) { return entry.second.phase == Phase::kRunning; }));
}

bool Runtime::Has(std::string_view container) const {
  return std::any_of(sandboxes_.begin(), sandboxes_.end(),
                     [&](const auto& entry) { return entry.second.container == container; });
}

void Runtime::Start(uint64_t pods) {
  pods = std::min(pods, kMostPods - std::min(wanted_, kMostPods));
  wanted_ += pods;
  for (uint64_t i = 0; i < pods; ++i) Launch();
}

void Runtime::Launch() {
  const uint64_t id = ++last_;
  Sandbox& sandbox = sandboxes_[id];
  sandbox.container = fmt::format("{}-{}-{}", edges_.machine.vm_id, boot_, id);
  sandbox.netns = edges_.machine.kernel->NewPodNetns();
  sandbox.netns_id = netagent::FakeKernel::IdOf(sandbox.netns.get());
  sandbox.attempt = id;
  sandbox.deadline = edges_.machine.clock->Now() + kPluginPatience;
  AddLater(id, edges_.random.Between(absl::ZeroDuration(), absl::Milliseconds(50)));
}

void Runtime::AddLater(uint64_t id, absl::Duration wait) {
  After(wait, [this, id] { Add(id); });
}

void Runtime::Add(uint64_t id) {
  const auto it = sandboxes_.find(id);
  if (it == sandboxes_.end() || it->second.phase != Phase::kAdding || it->second.client != 0)
    return;
  Sandbox& sandbox = it->second;
  if (edges_.machine.clock->Now() >= sandbox.deadline) return Remove(sandbox, id);
  Agent* agent = edges_.agent();
  if (agent == nullptr) {
    edges_.trace.Count("ADD without an agent");
    return AddLater(id, edges_.random.Between(absl::Milliseconds(200), absl::Seconds(1)));
  }
  cni::Request request = RequestOf(cni::Verb::kAdd, sandbox.container);
  request.attempt = sandbox.attempt;
  request.deadline_monotonic_ms = absl::ToUnixMillis(sandbox.deadline);
  sandbox.client = ++last_;
  adds_[sandbox.client] = id;
  const uint64_t client = sandbox.client;
  os::UniqueFd netns = netagent::FakeKernel::Copy(sandbox.netns.get());
  if (edges_.random.Chance(edges_.faults.plugin_killed)) {
    After(edges_.random.Between(absl::ZeroDuration(), absl::Seconds(20)), [this, id, client] {
      if (!adds_.contains(client)) return;
      edges_.trace.Count("plugin killed");
      Remove(sandboxes_.at(id), id);
    });
  }
  agent->Request(request, std::move(netns), client);
  edges_.after_call();
}

void Runtime::OnAnswer(uint64_t client, const cni::Response& response) {
  if (const auto del = dels_.find(client); del != dels_.end()) {
    del->second = response.outcome == cni::Response::Outcome::kDone;
    return;
  }
  const auto add = adds_.extract(client);
  if (!add.empty()) OnAdded(add.mapped(), response);
}

void Runtime::OnAdded(uint64_t id, const cni::Response& response) {
  Sandbox& sandbox = sandboxes_.at(id);
  sandbox.client = 0;
  switch (response.outcome) {
    case cni::Response::Outcome::kAttachment:
      sandbox.phase = Phase::kRunning;
      sandbox.netns = os::UniqueFd();
      sandbox.host_link = response.attachment.host_link;
      edges_.laws.OnServed(edges_.machine, response.attachment.host_link,
                           NamespaceOf(sandbox.container));
      edges_.trace.Say("{} pod {} has {}", edges_.machine.name, sandbox.container,
                       TextOf(response.attachment.addresses));
      edges_.trace.Count("pod started");
      if (response.attachment.addresses.size() > 1) edges_.trace.Count("pod of two families");
      if (!sandbox.wanted) Remove(sandbox, id);
      return;
    case cni::Response::Outcome::kNone:  // The next agent is asked, as the same ADD.
      edges_.trace.Count("plugin lost its agent");
      return AddLater(id, edges_.random.Between(absl::Milliseconds(100), absl::Seconds(1)));
    case cni::Response::Outcome::kError:
    case cni::Response::Outcome::kDone:
      edges_.trace.Say("{} pod {} fails: {}", edges_.machine.name, sandbox.container,
                       response.error.message);
      edges_.trace.Count("ADD failed");
      return Remove(sandbox, id);
  }
}

// The sandbox goes. Its DEL comes first, unless it is lost.
void Runtime::Remove(Sandbox& sandbox, uint64_t id) {
  if (sandbox.client != 0) KillPlugin(sandbox);
  sandbox.phase = Phase::kDeleting;
  sandbox.netns = os::UniqueFd();
  edges_.laws.OnEnding(edges_.machine, sandbox.host_link);
  After(absl::ZeroDuration(), [this, id] { Del(id); });
}

// The agent hears that the plugin of an ADD hangs up, now and then only after the DEL that follows:
// a plugin that does not die at once has the pod's namespace open until then.
void Runtime::KillPlugin(Sandbox& sandbox) {
  const uint64_t client = std::exchange(sandbox.client, 0);
  adds_.erase(client);
  const auto hang_up = [this, client] {
    if (Agent* agent = edges_.agent(); agent != nullptr) agent->HangUp(client);
  };
  const double late = edges_.faults.late_hang_up;
  if (late == 0 || !edges_.random.Chance(late)) return hang_up();
  edges_.trace.Count("late hang-up");
  sandbox.lingers = true;
  After(edges_.random.Between(absl::Seconds(1), absl::Seconds(30)),
        [this, hang_up, netns = sandbox.netns_id] {
          hang_up();
          EndNetns(netns);
        });
}

void Runtime::Del(uint64_t id) {
  const auto it = sandboxes_.find(id);
  if (it == sandboxes_.end()) return;
  if (edges_.random.Chance(edges_.faults.del_lost)) {
    edges_.trace.Count("DEL lost");
    Finish(id);
    After(edges_.random.Between(absl::Minutes(2), absl::Minutes(6)), [this] { CollectGarbage(); });
    return;
  }
  const std::string container = it->second.container;
  if (!CallDel(container)) {
    edges_.trace.Count("DEL failed");
    After(edges_.random.Between(absl::Milliseconds(300), absl::Seconds(2)),
          [this, id] { Del(id); });
    return;
  }
  if (it->second.lingers) {
    edges_.laws.OnDeleted(edges_.machine, netagent::HostLinkName({container, "eth0"}));
  }
  if (edges_.random.Chance(edges_.faults.del_doubled)) DelAgain(container);
  Finish(id);
}

void Runtime::DelAgain(const std::string& container) {
  After(edges_.random.Between(absl::ZeroDuration(), kLateDel), [this, container] {
    edges_.trace.Count("late DEL");
    CallDel(container);
  });
}

// Returns whether the runtime hears that it is done.
bool Runtime::CallDel(const std::string& container) {
  Agent* agent = edges_.agent();
  if (agent == nullptr) {
    edges_.machine.tombstones[{container, "eth0"}] = edges_.machine.clock->Now();
    edges_.trace.Count("tombstone");
    return true;
  }
  const uint64_t client = ++last_;
  dels_[client] = false;
  agent->Request(RequestOf(cni::Verb::kDel, container), os::UniqueFd(), client);
  const bool done = dels_.extract(client).mapped();
  edges_.after_call();
  return done;
}

void Runtime::EndNetns(const netagent::FakeKernel::NetnsId& netns) {
  const std::string host_link = edges_.machine.kernel->HostLinkIn(netns);
  edges_.machine.kernel->DestroyPodNetns(netns);
  if (!host_link.empty()) edges_.laws.OnUnlink(edges_.machine, host_link);
}

// The namespace goes with the sandbox, unless a plugin has it open; a pod that is still wanted gets
// another one.
void Runtime::Finish(uint64_t id) {
  const auto found = sandboxes_.extract(id);
  const Sandbox& sandbox = found.mapped();
  if (!sandbox.lingers) EndNetns(sandbox.netns_id);
  if (!sandbox.wanted) return;
  After(edges_.random.Between(absl::Milliseconds(500), absl::Seconds(5)), [this] { Launch(); });
}

uint64_t Runtime::AnyRunning() {
  std::vector<uint64_t> running;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.phase == Phase::kRunning) running.push_back(id);
  }
  return running.empty() ? 0 : running[edges_.random.Below(running.size())];
}

void Runtime::Stop(uint64_t pods) {
  for (uint64_t i = 0; i < std::min(pods, wanted_); ++i) {
    const uint64_t id = AnyRunning();
    if (id == 0) return;
    --wanted_;
    sandboxes_.at(id).wanted = false;
    Remove(sandboxes_.at(id), id);
  }
}

void Runtime::Restart(uint64_t pods) {
  for (uint64_t i = 0; i < pods; ++i) {
    const uint64_t id = AnyRunning();
    if (id != 0) Remove(sandboxes_.at(id), id);
  }
}

void Runtime::CollectGarbage() {
  if (DoCollectGarbage()) return;
  After(edges_.random.Between(absl::Seconds(1), absl::Seconds(10)), [this] { CollectGarbage(); });
}

// Returns whether the runtime hears that it is done.
bool Runtime::DoCollectGarbage() {
  Agent* agent = edges_.agent();
  if (agent == nullptr) return false;
  cni::Request request = RequestOf(cni::Verb::kGc, "");
  request.valid.emplace();
  for (const auto& [id, sandbox] : sandboxes_) {
    request.valid->push_back({sandbox.container, "eth0"});
  }
  const uint64_t client = ++last_;
  dels_[client] = false;
  agent->Request(request, os::UniqueFd(), client);
  const bool done = dels_.extract(client).mapped();
  edges_.trace.Count(done ? "GC" : "GC failed");
  edges_.after_call();
  return done;
}

void Runtime::OnAgentGone() {
  const std::map<uint64_t, uint64_t> waiting = std::exchange(adds_, {});
  for (const auto& [client, id] : waiting) OnAdded(id, cni::Response{});
}

void Runtime::OnBoot(bool disk_is_new) {
  ++boot_;
  adds_.clear();
  const Sandboxes former = std::exchange(sandboxes_, {});
  for (const auto& [id, sandbox] : former) {
    // The runtime still has the sandboxes of before, and takes them down.
    if (!disk_is_new && edges_.random.Chance(0.5)) DelAgain(sandbox.container);
  }
  for (uint64_t i = 0; i < wanted_; ++i) {
    After(edges_.random.Between(absl::Seconds(1), absl::Seconds(20)), [this] { Launch(); });
  }
}

}  // namespace spoke::sim
