#include "netagent/links/deferred_deletion.h"

#include <pthread.h>

#include <csignal>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {
namespace {

// Starts a thread that no signal is delivered to: which thread handles those is the program's to
// choose, and this one may start before it has.
template <typename Function>
std::thread StartWithoutSignals(Function function) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(function));  // Inherits the mask.
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

bool IsOurs(const netlink::Link& link) { return link.kind == "veth" && IsHostLinkName(link.name); }

}  // namespace

DeferredDeletion::DeferredDeletion(Settings settings, netlink::Socket socket)
    : settings_(std::move(settings)), socket_(std::move(socket)) {}

absl::StatusOr<std::unique_ptr<DeferredDeletion>> DeferredDeletion::Create(Settings settings) {
  auto socket = netlink::Socket::Open();
  if (!socket.ok()) return socket.status();
  auto deferred_deletion = std::unique_ptr<DeferredDeletion>(
      new DeferredDeletion(std::move(settings), *std::move(socket)));
  RETURN_IF_ERROR(
      base::Annotate(deferred_deletion->Sweep(), "unregister what was detached before"));
  deferred_deletion->thread_ =
      StartWithoutSignals([raw = deferred_deletion.get()] { raw->Work(); });
  return deferred_deletion;
}

DeferredDeletion::~DeferredDeletion() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status DeferredDeletion::DeleteLater(DeferredLink link,
                                           absl::FunctionRef<absl::Status(uint32_t group)> retire) {
  absl::MutexLock lock(&mutex_);
  if (!plan_.Has(link.host_link)) {
    // The call is under the lock: the group must not go between the request and its entry here.
    RETURN_IF_ERROR(retire(plan_.NextGroup()));
    plan_.Add(std::move(link), absl::Now());
    changed_.SignalAll();
  }
  if (!plan_.full()) return absl::OkStatus();
  return Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !plan_.full(); });
}

absl::Status DeferredDeletion::FinishWhatClashes(const AttachSpec& spec) {
  absl::MutexLock lock(&mutex_);
  if (plan_.size() == 0 || !plan_.Clashes(spec)) return absl::OkStatus();
  return Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !plan_.Clashes(spec); });
}

absl::Status DeferredDeletion::FinishAll() {
  absl::MutexLock lock(&mutex_);
  return Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return plan_.size() == 0; });
}

bool DeferredDeletion::empty() const {
  absl::MutexLock lock(&mutex_);
  return plan_.size() == 0;
}

absl::Status DeferredDeletion::Await(absl::FunctionRef<bool()> done) {
  const absl::Time deadline = absl::Now() + kPatience;
  const uint64_t refusals = refusals_;
  plan_.Hurry();
  changed_.SignalAll();
  while (!done()) {
    if (refusals_ != refusals) return absl::UnavailableError(last_refusal_.message());
    if (changed_.WaitWithDeadline(&mutex_, deadline) && !done()) {
      return absl::UnavailableError("detached links are not unregistered in time");
    }
  }
  return absl::OkStatus();
}

void DeferredDeletion::Work() {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    const auto batch = plan_.TakeDue(absl::Now());
    if (!batch) {
      changed_.WaitWithDeadline(&mutex_, plan_.NextDue().value_or(absl::InfiniteFuture()));
      continue;
    }
    mutex_.Unlock();
    const absl::Status status = Unregister(batch->group);
    mutex_.Lock();
    plan_.Finish(status.ok(), absl::Now());
    if (!status.ok()) {
      ++refusals_;
      last_refusal_ = status;
      if (settings_.log != nullptr) {
        settings_.log->Warn("unregister_failed",
                            {{"links", batch->links.size()}, {"error", status}});
      }
    }
    changed_.SignalAll();
  }
}

absl::Status DeferredDeletion::Unregister(uint32_t group) {
  RETURN_IF_ERROR(Reach(settings_.fault_point, "deferred_deletion.list"));
  const auto links = netlink::DumpLinks(socket_, "");
  if (!links.ok()) return links.status();
  std::vector<int32_t> ours;
  std::string other;
  for (const netlink::Link& link : *links) {
    if (link.group != group) continue;
    if (IsOurs(link)) {
      ours.push_back(link.index);
    } else {
      other = link.name;
    }
  }
  // The links have gone with their pods' namespaces.
  if (ours.empty()) return absl::OkStatus();
  if (!other.empty()) {
    if (!std::exchange(warned_of_others_, true) && settings_.log != nullptr) {
      settings_.log->Warn("foreign_link_in_group", {{"link", other}, {"group", group}});
    }
    return UnregisterEach(ours);
  }
  RETURN_IF_ERROR(Reach(settings_.fault_point, "deferred_deletion.unregister"));
  const std::vector<netlink::Request> batch = {netlink::DeleteLinkGroup(group)};
  const absl::Status status = netlink::SendBatch(socket_, batch).status;
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status DeferredDeletion::UnregisterEach(const std::vector<int32_t>& indexes) {
  absl::Status first_error;
  for (const int32_t index : indexes) {
    RETURN_IF_ERROR(Reach(settings_.fault_point, "deferred_deletion.unregister"));
    const std::vector<netlink::Request> batch = {netlink::DeleteLink(index)};
    first_error.Update(netlink::SendBatch(socket_, batch).status);
  }
  return first_error;
}

absl::Status DeferredDeletion::Sweep() {
  RETURN_IF_ERROR(Reach(settings_.fault_point, "deferred_deletion.list"));
  const auto links = netlink::DumpLinks(socket_, claims::kLinkPrefix);
  if (!links.ok()) return links.status();
  std::set<uint32_t> groups;
  for (const netlink::Link& link : *links) {
    if (claims::IsDeletionGroup(link.group) && IsOurs(link)) groups.insert(link.group);
  }
  for (const uint32_t group : groups) RETURN_IF_ERROR(Unregister(group));
  return absl::OkStatus();
}

}  // namespace spoke::netagent
