#include "netagent/links/testing/fake_kernel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "netagent/claims.h"
#include "netagent/links/host_link_name.h"

namespace spoke::netagent {
namespace {

// An empty file of its own: a descriptor with an identity, which is all a namespace needs here.
os::UniqueFd NewIdentity() {
  os::UniqueFd fd(::memfd_create("fake-netns", MFD_CLOEXEC));
  CHECK(fd.valid(), "a test can open one more descriptor");
  return fd;
}

std::optional<std::pair<uint64_t, uint64_t>> IdentityOf(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) < 0) return std::nullopt;
  return std::pair<uint64_t, uint64_t>(status.st_dev, status.st_ino);
}

// Whether both would have the same default route.
bool ShareDefault(const AttachSpec& one, const AttachSpec& other) {
  if (one.ordinal != other.ordinal) return false;
  for (const ip::Address& a : one.addresses) {
    for (const ip::Address& b : other.addresses) {
      if (a.family() == b.family()) return true;
    }
  }
  return false;
}

}  // namespace

FakeKernel::FakeKernel() : node_netns_(NewIdentity()) {}

absl::Status FakeKernel::Attach(const AttachSpec& spec, int pod_netns) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  if (const auto fault = fail_attach_.find(spec.host_link); fault != fail_attach_.end()) {
    return fault->second;
  }
  if (!IsHostLinkName(spec.host_link)) {
    return absl::InvalidArgumentError(fmt::format("{} is no name of ours", spec.host_link));
  }
  const auto netns = IdentityOf(pod_netns);
  if (netns && *netns == IdentityOf(node_netns_.get())) {
    return absl::FailedPreconditionError("the pod's network namespace is the node's own");
  }
  if (!netns || pods_.count(*netns) == 0) {
    return absl::FailedPreconditionError("not a network namespace");
  }
  RETURN_IF_ERROR(Unregister(DeferredInTheWay(spec, *netns)));
  if (links_.count(spec.host_link) > 0) {
    return absl::AlreadyExistsError(fmt::format("link {} exists", spec.host_link));
  }
  if (pods_[*netns].count(spec.pod_link) > 0) {
    return absl::AlreadyExistsError(fmt::format("link {} exists in the pod", spec.pod_link));
  }
  for (const auto& [name, link] : links_) {
    if (link.netns == *netns && ShareDefault(link.spec, spec)) {
      return absl::InternalError("the pod has a default route of that family already");
    }
  }
  pods_[*netns].insert(spec.pod_link);
  links_.emplace(spec.host_link, Link{spec, *netns});
  for (const ip::Address& address : spec.addresses) {
    routes_.insert_or_assign(address, spec.host_link);
    source_tables_.erase(address);
  }
  for (const SourceTable& source : spec.source_tables) {
    source_tables_[source.address] = source.table;
  }
  return absl::OkStatus();
}

absl::Status FakeKernel::Detach(const std::string& host_link) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  if (!IsHostLinkName(host_link)) {
    return absl::InvalidArgumentError(fmt::format("{} is no link of ours", host_link));
  }
  DeleteLater(host_link);
  return absl::OkStatus();
}

absl::Status FakeKernel::FinishDetaching() {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  std::vector<std::string> all;
  for (const auto& [name, link] : deferred_) all.push_back(name);
  return Unregister(all);
}

absl::StatusOr<std::vector<AttachedLink>> FakeKernel::ListAttached() {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  std::vector<AttachedLink> attached;
  for (const auto& [name, link] : links_) {
    AttachedLink& entry = attached.emplace_back(AttachedLink{name, {}});
    for (const auto& [address, holder] : routes_) {
      if (holder == name) entry.addresses.push_back(address);
    }
  }
  return attached;
}

absl::Status FakeKernel::SetUnreachable(const std::vector<ip::Address>& addresses) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  unreachable_ = std::set<ip::Address>(addresses.begin(), addresses.end());
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> FakeKernel::SetNicTable(const ip::MacAddress& mac) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  for (const auto& [name, nic] : nics_) {
    if (nic.mac != mac) continue;
    // A number for each MAC, as each device has its index.
    return claims::kFirstNicTable + mac.octets[4] * 256U + mac.octets[5];
  }
  return absl::NotFoundError(fmt::format("no NIC has the MAC {}", mac.ToString()));
}

absl::StatusOr<uint32_t> FakeKernel::HostIndex(const std::string& host_link) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  const auto link = links_.find(host_link);
  if (link == links_.end()) return absl::NotFoundError(fmt::format("no link {}", host_link));
  if (link->second.index == 0) link->second.index = next_index_++;
  return link->second.index;
}

absl::StatusOr<Nic> FakeKernel::ReadNic(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  const auto nic = nics_.find(name);
  if (nic == nics_.end()) return absl::NotFoundError(fmt::format("no network device {}", name));
  return nic->second;
}

os::UniqueFd FakeKernel::NewPodNetns() {
  os::UniqueFd netns = NewIdentity();
  absl::MutexLock lock(&mutex_);
  pods_[IdentityOf(netns.get()).value()] = {"lo"};
  return netns;
}

os::UniqueFd FakeKernel::NodeNetns() const {
  return os::UniqueFd(::fcntl(node_netns_.get(), F_DUPFD_CLOEXEC, 0));
}

void FakeKernel::DestroyPodNetns(int pod_netns) {
  absl::MutexLock lock(&mutex_);
  const auto netns = IdentityOf(pod_netns);
  if (!netns) return;
  std::vector<std::string> gone;
  for (const auto& [name, link] : links_) {
    if (link.netns == *netns) gone.push_back(name);
  }
  for (const std::string& name : gone) DeleteLater(name);
  std::erase_if(deferred_, [&netns](const auto& entry) { return entry.second.netns == *netns; });
  pods_.erase(*netns);
}

void FakeKernel::AddPodLink(int pod_netns, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto netns = IdentityOf(pod_netns);
  CHECK(netns && pods_.count(*netns) > 0, "the pod namespace is one of ours");
  pods_[*netns].insert(name);
}

void FakeKernel::SetNic(Nic nic) {
  absl::MutexLock lock(&mutex_);
  std::sort(nic.addresses.begin(), nic.addresses.end());
  std::string name = nic.name;
  nics_.insert_or_assign(std::move(name), std::move(nic));
}

void FakeKernel::RemoveNic(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  nics_.erase(name);
}

void FakeKernel::FailCall(int nth, absl::Status status) {
  absl::MutexLock lock(&mutex_);
  fail_call_ = {calls_ + nth, std::move(status)};
}

void FakeKernel::FailAttach(const std::string& host_link, absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (status.ok()) {
    fail_attach_.erase(host_link);
  } else {
    fail_attach_.insert_or_assign(host_link, std::move(status));
  }
}

void FakeKernel::HoldDeferred(bool held) {
  absl::MutexLock lock(&mutex_);
  hold_deferred_ = held;
}

std::vector<std::string> FakeKernel::Deferred() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [name, link] : deferred_) names.push_back(name);
  return names;
}

int FakeKernel::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

std::optional<AttachSpec> FakeKernel::Attached(const std::string& host_link) const {
  absl::MutexLock lock(&mutex_);
  const auto link = links_.find(host_link);
  if (link == links_.end()) return std::nullopt;
  return link->second.spec;
}

std::map<ip::Address, uint32_t> FakeKernel::SourceTables() const {
  absl::MutexLock lock(&mutex_);
  return source_tables_;
}

std::vector<ip::Address> FakeKernel::Unreachable() const {
  absl::MutexLock lock(&mutex_);
  return {unreachable_.begin(), unreachable_.end()};
}

absl::Status FakeKernel::Enter() {
  ++calls_;
  if (!fail_call_ || fail_call_->first != calls_) return absl::OkStatus();
  absl::Status fault = std::move(fail_call_->second);
  fail_call_.reset();
  return fault;
}

void FakeKernel::DeleteLater(const std::string& host_link) {
  const auto link = links_.find(host_link);
  if (link == links_.end()) return;
  for (auto route = routes_.begin(); route != routes_.end();) {
    if (route->second != host_link) {
      ++route;
      continue;
    }
    source_tables_.erase(route->first);
    route = routes_.erase(route);
  }
  deferred_.insert_or_assign(host_link, std::move(link->second));
  links_.erase(link);
}

absl::Status FakeKernel::Unregister(const std::vector<std::string>& deferred) {
  if (deferred.empty()) return absl::OkStatus();
  if (hold_deferred_) return absl::UnavailableError("detached links are not unregistered in time");
  for (const std::string& name : deferred) {
    const auto link = deferred_.find(name);
    pods_[link->second.netns].erase(link->second.spec.pod_link);
    deferred_.erase(link);
  }
  return absl::OkStatus();
}

std::vector<std::string> FakeKernel::DeferredInTheWay(const AttachSpec& spec,
                                                      const NetnsId& netns) const {
  std::vector<std::string> names;
  for (const auto& [name, deferred] : deferred_) {
    const Link& link = deferred;
    const bool same_place = link.netns == netns && link.spec.pod_link == spec.pod_link;
    const bool same_address =
        std::any_of(spec.addresses.begin(), spec.addresses.end(), [&](const ip::Address& address) {
          return std::find(link.spec.addresses.begin(), link.spec.addresses.end(), address) !=
                 link.spec.addresses.end();
        });
    if (name == spec.host_link || same_place || same_address) names.push_back(name);
  }
  return names;
}

}  // namespace spoke::netagent
