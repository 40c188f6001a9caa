#include "netagent/links/deferred_deletion.h"

#include <pthread.h>

#include <csignal>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"
#include "lib/os/file.h"
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

// The devices of the calling thread's network namespace (proc_pid_net(5)). To list them by
// rtnetlink would hold the network lock, under which pods are attached, for a time that grows with
// the square of their number: the kernel looks through all namespaces for each veth's peer.
constexpr char kDevices[] = "/proc/thread-self/net/dev";

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
  ASSIGN_OR_RETURN(const std::string other, FindOther(group));
  if (!other.empty()) {
    if (!std::exchange(warned_of_others_, true) && settings_.log != nullptr) {
      settings_.log->Warn("foreign_link_in_group", {{"link", other}, {"group", group}});
    }
    return UnregisterEach(group);
  }
  RETURN_IF_ERROR(Reach(settings_.fault_point, "deferred_deletion.unregister"));
  const std::vector<netlink::Request> batch = {netlink::DeleteLinkGroup(group)};
  const absl::Status status = netlink::SendBatch(socket_, batch).status;
  // The links have gone with their pods' namespaces.
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::string> DeferredDeletion::FindOther(uint32_t group) {
  ASSIGN_OR_RETURN(const std::string devices, os::ReadFile(kDevices));
  // Each line of a device has its name in front of a colon.
  for (const absl::string_view line : absl::StrSplit(devices, '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string name(absl::StripAsciiWhitespace(line.substr(0, colon)));
    if (IsHostLinkName(name)) continue;
    const auto link = netlink::GetLink(socket_, name);
    if (absl::IsNotFound(link.status())) continue;
    if (!link.ok()) return link.status();
    if (link->group == group) return name;
  }
  return std::string();
}

absl::Status DeferredDeletion::UnregisterEach(uint32_t group) {
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket_, claims::kLinkPrefix));
  absl::Status first_error;
  for (const netlink::Link& link : links) {
    if (link.group != group || !IsOurs(link)) continue;
    RETURN_IF_ERROR(Reach(settings_.fault_point, "deferred_deletion.unregister"));
    const std::vector<netlink::Request> batch = {netlink::DeleteLink(link.index)};
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
