#include "ipam-server/loop/loop_call.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// The work of one query, which then takes a few milliseconds at most, in addresses; a node counts
// as some.
constexpr size_t kWorkPerQuery = 1024;
constexpr size_t kWorkOfNode = 4;

size_t WorkOf(const NodeRecord& record) {
  size_t work = kWorkOfNode + record.wanted.size();
  for (const auto& [base, configuration] : record.configurations) {
    work += configuration.slots.size();
  }
  for (const auto& [range, at] : record.released) work += range.size();
  return work;
}

}  // namespace

absl::Status AskLoop(FleetLoop& loop, absl::Duration patience, LoopQuery query) {
  // The state is shared, since a query that comes too late still has to find them.
  struct Call {
    absl::Mutex mutex;
    bool wanted = true;
    absl::Notification done;
  };
  auto call = std::make_shared<Call>();
  loop.PostQuery([call, query = std::move(query)](const FleetView& view) {
    absl::MutexLock lock(&call->mutex);
    if (call->wanted) query(view);
    call->done.Notify();
  });
  if (call->done.WaitForNotificationWithTimeout(patience)) return absl::OkStatus();
  absl::MutexLock lock(&call->mutex);
  if (call->done.HasBeenNotified()) return absl::OkStatus();
  call->wanted = false;
  return absl::DeadlineExceededError("the server is too busy to answer; try again");
}

absl::Status ChangeInLoop(FleetLoop& loop, absl::Duration patience, LoopChange change) {
  struct Call {
    absl::Mutex mutex;
    bool wanted = true;
    bool begun = false;
    absl::Status status;
    absl::Notification done;
  };
  auto call = std::make_shared<Call>();
  loop.PostChange(
      [call, change = std::move(change)](ServerState& state,
                                         RawRecords& raw) -> absl::StatusOr<Effects> {
        absl::MutexLock lock(&call->mutex);
        if (!call->wanted) return absl::DeadlineExceededError("the caller has gone");
        call->begun = true;
        return change(state, raw);
      },
      [call](const absl::Status& status) {
        call->status = status;
        call->done.Notify();
      });
  if (call->done.WaitForNotificationWithTimeout(patience)) return call->status;
  absl::MutexLock lock(&call->mutex);
  if (call->done.HasBeenNotified()) return call->status;
  call->wanted = false;
  return absl::DeadlineExceededError(
      call->begun ? "the server took too long to store it: it may have happened, look before you "
                    "try again"
                  : "the server is too busy; nothing was changed, try again");
}

absl::Status VisitNodes(FleetLoop& loop, absl::Duration patience,
                        const std::function<void(const FleetView&, const NodeRecord&)>& visit,
                        const Progress& progress) {
  std::optional<NodeKey> last;
  bool more = true;
  uint64_t done = 0;
  while (more) {
    uint64_t total = 0;
    RETURN_IF_ERROR(AskLoop(loop, patience, [&](const FleetView& view) {
      const auto& nodes = view.fleet.ledger.nodes();
      auto it = last ? nodes.upper_bound(*last) : nodes.begin();
      for (size_t work = 0; work < kWorkPerQuery && it != nodes.end(); ++it) {
        work += WorkOf(it->second);
        visit(view, it->second);
        last = it->first;
        ++done;
      }
      more = it != nodes.end();
      total = nodes.size();
    }));
    progress(done, total);
  }
  return absl::OkStatus();
}

std::map<std::string, absl::StatusOr<node_api::AttachTracesAnswer>> AskTraces(
    FleetLoop& loop, absl::Duration patience, const std::set<std::string>& nodes,
    const std::string& pod_namespace, const std::string& pod_name) {
  // The state is shared, since an answer that comes too late still has to find it.
  struct Call {
    absl::Mutex mutex;
    std::map<std::string, absl::StatusOr<node_api::AttachTracesAnswer>> answers
        ABSL_GUARDED_BY(mutex);
  };
  auto call = std::make_shared<Call>();
  for (const std::string& node : nodes) {
    loop.PostAskTraces(node, pod_namespace, pod_name,
                       [call, node](absl::StatusOr<node_api::AttachTracesAnswer> answer) {
                         absl::MutexLock lock(&call->mutex);
                         call->answers.emplace(node, std::move(answer));
                       });
  }
  absl::MutexLock lock(&call->mutex);
  const auto all = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call->mutex) {
    return call->answers.size() == nodes.size();
  };
  call->mutex.AwaitWithTimeout(absl::Condition(&all), std::min(patience, kTracePatience));
  std::map<std::string, absl::StatusOr<node_api::AttachTracesAnswer>> answers = call->answers;
  for (const std::string& node : nodes) answers.try_emplace(node, NoAnswerFrom(node, kLacksTraces));
  return answers;
}

namespace {

template <typename Reply>
using TakeReply = std::function<void(const std::string& node, const absl::StatusOr<Reply>&)>;

// `post` asks the agent of a node; `patience`: as long as the loop gives the agents.
template <typename Reply, typename Post>
void AskEach(std::set<std::string> nodes, const Post& post, absl::Duration patience,
             std::string_view lacks, const TakeReply<Reply>& take) {
  using Answer = std::pair<std::string, absl::StatusOr<Reply>>;
  // The state is shared, since an answer that comes too late still has to find it.
  struct Call {
    absl::Mutex mutex;
    std::vector<Answer> come ABSL_GUARDED_BY(mutex);
  };
  auto call = std::make_shared<Call>();
  for (const std::string& node : nodes) {
    post(node, [call, node](absl::StatusOr<Reply> answer) {
      absl::MutexLock lock(&call->mutex);
      call->come.emplace_back(node, std::move(answer));
    });
  }
  // The loop itself has a while as well.
  const absl::Time until = absl::Now() + patience + kTracePatience;
  while (!nodes.empty()) {
    std::vector<Answer> come;
    {
      absl::MutexLock lock(&call->mutex);
      const auto any = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call->mutex) {
        return !call->come.empty();
      };
      if (!call->mutex.AwaitWithDeadline(absl::Condition(&any), until)) break;
      come.swap(call->come);
    }
    for (const auto& [node, answer] : come) {
      nodes.erase(node);
      take(node, answer);
    }
  }
  for (const std::string& node : nodes) take(node, NoAnswerFrom(node, lacks));
}

}  // namespace

void AskProbes(FleetLoop& loop, const std::map<std::string, node_api::ProbeRequest>& requests,
               const std::function<void(const std::string& node,
                                        const absl::StatusOr<node_api::ProbeAnswer>&)>& take) {
  std::set<std::string> nodes;
  absl::Duration longest;
  for (const auto& [node, request] : requests) {
    nodes.insert(node);
    longest = std::max(longest, request.timeout);
  }
  AskEach<node_api::ProbeAnswer>(
      nodes,
      [&](const std::string& node, ProbeDone done) {
        loop.PostAskProbe(node, requests.at(node), std::move(done));
      },
      2 * longest + kTracePatience, kLacksProbes, take);
}

void AskTrials(
    FleetLoop& loop, const std::map<std::string, std::shared_ptr<const Bundle>>& policies,
    const std::function<void(const std::string& node,
                             const absl::StatusOr<node_api::PolicyTrialAnswer>&)>& take) {
  std::set<std::string> nodes;
  for (const auto& [node, policy] : policies) nodes.insert(node);
  AskEach<node_api::PolicyTrialAnswer>(
      nodes,
      [&](const std::string& node, TrialDone done) {
        loop.PostAskTrial(node, policies.at(node), std::move(done));
      },
      kTrialPatience, kLacksTrials, take);
}

absl::StatusOr<node_api::NodeDataAnswer> AskNodeData(FleetLoop& loop, const std::string& node,
                                                     const std::vector<std::string>& parts) {
  absl::StatusOr<node_api::NodeDataAnswer> data;
  AskEach<node_api::NodeDataAnswer>(
      {node},
      [&](const std::string& name, NodeDataDone done) {
        loop.PostAskNodeData(name, parts, std::move(done));
      },
      kTracePatience, kLacksData,
      [&](const std::string& /*node*/, const auto& answer) { data = answer; });
  return data;
}

absl::StatusOr<std::vector<std::string>> StartMaintenance(FleetLoop& loop, const std::string& node,
                                                          const std::vector<std::string>& events) {
  absl::StatusOr<std::vector<std::string>> told;
  AskEach<std::vector<std::string>>(
      {node},
      [&](const std::string& name, StartMaintenanceDone done) {
        loop.PostStartMaintenance(name, events, std::move(done));
      },
      kTracePatience, kLacksMaintenance,
      [&](const std::string& /*node*/, const auto& answer) { told = answer; });
  return told;
}

}  // namespace spoke::ipam
