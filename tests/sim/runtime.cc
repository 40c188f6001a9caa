#include "tests/sim/runtime.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/version.h"
#include "netagent/cni/tombstones.h"
#include "netagent/links/attach_plan.h"

namespace spoke::sim {
namespace {

constexpr absl::Duration kPluginPatience = absl::Seconds(60);
// How soon the plugin asks the next agent.
constexpr absl::Duration kAskAgain = absl::Milliseconds(250);

}  // namespace

void Runtime::After(absl::Duration wait, std::function<void()> work) {
  basis_.schedule.After(wait, [this, life = life_, work = std::move(work)] {
    if (life == life_ && !over_) work();
  });
}

// --- Pods. ---

void Runtime::StartPod() {
  const uint64_t number = ++last_pod_;
  pods_[number] = {.sandbox = nullptr, .number = number};
  After(absl::ZeroDuration(), [this, number] { MakeSandbox(number); });
}

void Runtime::StopPod() {
  if (pods_.empty()) return;
  auto pod = pods_.begin();
  std::advance(pod, static_cast<int64_t>(basis_.random.Below(pods_.size())));
  const SandboxPtr sandbox = pod->second.sandbox;
  pods_.erase(pod);
  if (sandbox != nullptr) End(sandbox, DrawEnding());
}

Runtime::Ending Runtime::DrawEnding() {
  if (basis_.random.Chance(0.04 * basis_.faults)) return Ending::kLost;
  if (basis_.random.Chance(0.10 * basis_.faults)) return Ending::kLate;
  if (basis_.random.Chance(0.10 * basis_.faults)) return Ending::kDoubled;
  return Ending::kPlain;
}

bool Runtime::GiveUpOne() {
  for (const auto& [number, pod] : pods_) {
    if (pod.sandbox == nullptr || pod.sandbox->running) continue;
    const SandboxPtr sandbox = pod.sandbox;
    pods_.erase(number);
    basis_.Happened(Fault::kAddGivenUp, edges_.node.key.vm_id);
    // The plugin is killed, and its DEL follows.
    HangUp(sandbox->container);
    sandbox->deadline = absl::InfinitePast();
    End(sandbox, Ending::kPlain);
    return true;
  }
  return false;
}

bool Runtime::TakeLinkAway() {
  for (const auto& [number, pod] : pods_) {
    if (pod.sandbox == nullptr || !pod.sandbox->running) continue;
    const std::string link = edges_.node.kernel->HostLinkIn(pod.sandbox->netns->get());
    if (link.empty()) continue;
    basis_.Happened(Fault::kLinkTakenAway, edges_.node.key.vm_id);
    for (const ip::Address& address : pod.sandbox->addresses) {
      basis_.judge.PodLoses(edges_.node.key, link, address);
    }
    edges_.node.kernel->Remove(link);
    return true;
  }
  return false;
}

bool Runtime::Settled() const {
  return ending_.empty() && std::all_of(pods_.begin(), pods_.end(), [](const auto& entry) {
           return entry.second.sandbox != nullptr && entry.second.sandbox->running;
         });
}

std::string Runtime::Explain() const {
  size_t running = 0;
  for (const auto& [number, pod] : pods_) {
    if (pod.sandbox != nullptr && pod.sandbox->running) ++running;
  }
  return fmt::format("{} of {} pods run, {} wait for their end", running, pods_.size(),
                     ending_.size());
}

// --- Sandboxes. ---

void Runtime::MakeSandbox(uint64_t pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  auto sandbox = std::make_shared<Sandbox>();
  const uint64_t number = ++last_sandbox_;
  sandbox->container = fmt::format("{}-c{}", edges_.node.key.vm_id, number);
  sandbox->path = fmt::format("/run/netns/{}", sandbox->container);
  sandbox->netns = std::make_shared<os::UniqueFd>(edges_.node.kernel->NewPodNetns());
  sandbox->attempt = number;
  sandbox->deadline = basis_.schedule.now() + kPluginPatience;
  // The kernel gives the number of a namespace that is gone to another; its cookie never.
  edges_.node.namespaces[sandbox->path] = {
      sandbox->netns,
      {.inode = 100 + number % 3, .cookie = number, .directory_device = 1, .directory_inode = 1}};
  found->second.sandbox = sandbox;
  Add(pod, sandbox);
}

void Runtime::Add(uint64_t pod, const SandboxPtr& sandbox) {
  if (basis_.schedule.now() >= sandbox->deadline) return TryAgain(pod, sandbox);
  if (edges_.agent() == nullptr) {
    // The plugin says 11 at once, and the kubelet begins again with a new sandbox.
    return TryAgain(pod, sandbox);
  }
  cni::Request request = RequestOf(*sandbox, cni::Verb::kAdd);
  const absl::Duration left = sandbox->deadline - basis_.schedule.now();
  request.deadline_monotonic_ms = absl::ToUnixMillis(edges_.node.machine.uptime().Now() + left);
  Call(request, CopyOf(*sandbox->netns),
       {.container = sandbox->container,
        .on_answer = [this, pod,
                      sandbox](const cni::Response& response) { OnAdded(pod, sandbox, response); },
        .on_close =
            [this, pod, sandbox] {
              basis_.Happened(Fault::kAddRepeated, edges_.node.key.vm_id);
              After(kAskAgain, [this, pod, sandbox] { Add(pod, sandbox); });
            }});
}

void Runtime::OnAdded(uint64_t pod, const SandboxPtr& sandbox, const cni::Response& response) {
  if (sandbox->netns_gone || sandbox->deadline == absl::InfinitePast()) return;
  if (response.outcome != cni::Response::Outcome::kAttachment) return TryAgain(pod, sandbox);
  const auto found = pods_.find(pod);
  if (found == pods_.end() || found->second.sandbox != sandbox) return;
  sandbox->running = true;
  sandbox->addresses.clear();
  for (const auto& entry : response.attachment.addresses) {
    const std::string text = entry.address.substr(0, entry.address.find('/'));
    sandbox->addresses.push_back(ip::Address::Parse(text).value());
    basis_.judge.PodUses(sandbox->addresses.back());
  }
}

// Takes a copy: the pod forgets its own.
void Runtime::TryAgain(uint64_t pod, SandboxPtr sandbox) {
  const auto found = pods_.find(pod);
  if (found != pods_.end() && found->second.sandbox == sandbox) {
    found->second.sandbox = nullptr;
    After(basis_.random.Between(absl::Seconds(1), absl::Seconds(10)),
          [this, pod] { MakeSandbox(pod); });
  }
  End(sandbox, DrawEnding());
}

void Runtime::End(const SandboxPtr& sandbox, Ending ending) {
  sandbox->running = false;
  switch (ending) {
    case Ending::kLost:
      basis_.Happened(Fault::kDelLost, edges_.node.key.vm_id);
      return DestroyNetns(sandbox);
    case Ending::kLate:
      basis_.Happened(Fault::kDelLate, edges_.node.key.vm_id);
      DestroyNetns(sandbox);
      ending_[sandbox->container] = sandbox;
      return After(basis_.random.Between(absl::Seconds(1), absl::Seconds(60)),
                   [this, sandbox] { Delete(sandbox, false); });
    case Ending::kDoubled:
      basis_.Happened(Fault::kDelDoubled, edges_.node.key.vm_id);
      After(basis_.random.Between(absl::ZeroDuration(), absl::Seconds(40)),
            [this, sandbox] { Delete(sandbox, false); });
      break;
    case Ending::kPlain:
      break;
  }
  ending_[sandbox->container] = sandbox;
  Delete(sandbox, true);
}

void Runtime::Delete(const SandboxPtr& sandbox, bool netns_follows) {
  const auto done = [this, sandbox, netns_follows] {
    ending_.erase(sandbox->container);
    if (netns_follows) DestroyNetns(sandbox);
  };
  const cni::Request request = RequestOf(*sandbox, cni::Verb::kDel);
  if (edges_.agent() == nullptr) {
    basis_.Happened(Fault::kDelTombstone, edges_.node.key.vm_id);
    edges_.node.tombstones[netagent::TombstoneName({sandbox->container, "eth0"})] = {
        cni::EncodeRequest(request), edges_.node.machine.time_of_day().Now()};
    return done();
  }
  const auto again = [this, sandbox, netns_follows] {
    After(basis_.random.Between(absl::Milliseconds(250), absl::Seconds(5)),
          [this, sandbox, netns_follows] { Delete(sandbox, netns_follows); });
  };
  Call(request, os::UniqueFd(),
       {.container = sandbox->container,
        .on_answer =
            [done, again](const cni::Response& response) {
              response.outcome == cni::Response::Outcome::kDone ? done() : again();
            },
        .on_close = again});
}

void Runtime::DestroyNetns(const SandboxPtr& sandbox) {
  if (std::exchange(sandbox->netns_gone, true)) return;
  NodeState& node = edges_.node;
  const std::string link = node.kernel->HostLinkIn(sandbox->netns->get());
  if (const auto attached = node.kernel->Attached(link)) {
    for (const ip::Address& address : attached->addresses) {
      basis_.judge.PodLoses(node.key, link, address);
    }
  }
  node.kernel->DestroyPodNetns(sandbox->netns->get());
  node.kernel->FinishDetaching().IgnoreError();
  node.namespaces.erase(sandbox->path);
  sandbox->netns->Reset();
}

// --- Its own ends. ---

void Runtime::Kill() {
  basis_.Happened(Fault::kRuntimeKilled, edges_.node.key.vm_id);
  HangUp("");
  ++life_;
  basis_.schedule.After(
      basis_.random.Between(absl::Milliseconds(500), absl::Seconds(10)), [this, life = life_] {
        if (life != life_ || over_) return;
        // What was being added is begun anew, and forgotten at times.
        for (auto& [number, pod] : pods_) {
          if (pod.sandbox != nullptr && pod.sandbox->running) continue;
          if (pod.sandbox != nullptr) {
            TryAgain(number, pod.sandbox);
          } else {
            After(absl::Seconds(1), [this, number = number] { MakeSandbox(number); });
          }
        }
        const auto ending = std::exchange(ending_, {});
        for (const auto& [container, sandbox] : ending) {
          End(sandbox, DrawEnding());
        }
      });
}

void Runtime::Reboot() {
  ++life_;
  clients_.clear();
  ending_.clear();
  for (auto& [number, pod] : pods_) {
    pod.sandbox = nullptr;
    After(basis_.random.Between(absl::Seconds(5), absl::Seconds(30)),
          [this, number = number] { MakeSandbox(number); });
  }
}

void Runtime::End() {
  over_ = true;
  ++life_;
  clients_.clear();
  ending_.clear();
  pods_.clear();
}

// --- The plugin. ---

void Runtime::HangUp(const std::string& container) {
  std::vector<std::function<void()>> hang_ups;
  for (auto it = clients_.begin(); it != clients_.end();) {
    if (!container.empty() && it->second.container != container) {
      ++it;
      continue;
    }
    if (it->second.on_hang_up) hang_ups.push_back(std::move(it->second.on_hang_up));
    it = clients_.erase(it);
  }
  for (const auto& hang_up : hang_ups) {
    if (AgentProcess* agent = edges_.agent(); agent != nullptr) agent->Enter(hang_up);
  }
}

cni::Request Runtime::RequestOf(const Sandbox& sandbox, cni::Verb verb) const {
  cni::Request request;
  request.verb = verb;
  request.container_id = sandbox.container;
  request.ifname = "eth0";
  request.network_name = "spoke";
  request.pod = {.pod_namespace = "team", .name = "pod-of-" + sandbox.container};
  request.plugin_version = base::kVersion;
  if (verb == cni::Verb::kAdd) {
    request.attempt = sandbox.attempt;
    request.netns = sandbox.path;
  }
  return request;
}

void Runtime::Call(const cni::Request& request, os::UniqueFd netns, Client client) {
  const uint64_t id = ++last_client_;
  clients_.emplace(id, std::move(client));
  auto descriptor = std::make_shared<os::UniqueFd>(std::move(netns));
  basis_.schedule.After(basis_.random.Between(absl::Microseconds(100), absl::Milliseconds(5)),
                        [this, id, request, descriptor] {
                          if (!clients_.contains(id)) return;
                          AgentProcess* agent = edges_.agent();
                          if (agent == nullptr) return Close(id);
                          auto responder = std::make_shared<netagent::Responder>(*this, id);
                          agent->Enter([agent, request, descriptor, responder] {
                            agent->Request(request, std::move(*descriptor), std::move(*responder));
                          });
                        });
}

absl::Status Runtime::Send(uint64_t client, const cni::Response& response) {
  const auto found = clients_.extract(client);
  if (found.empty()) return absl::UnavailableError("the plugin has gone");
  After(basis_.random.Between(absl::Microseconds(50), absl::Milliseconds(2)),
        [on_answer = found.mapped().on_answer, response] { on_answer(response); });
  return absl::OkStatus();
}

void Runtime::Close(uint64_t client) {
  const auto found = clients_.extract(client);
  if (found.empty()) return;
  After(absl::Milliseconds(1), found.mapped().on_close);
}

void Runtime::OnHangUp(uint64_t client, std::function<void()> gone) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) found->second.on_hang_up = std::move(gone);
}

}  // namespace spoke::sim
