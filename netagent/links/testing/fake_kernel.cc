#include "netagent/links/testing/fake_kernel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

// No process has as many descriptors (fs.nr_open of proc(5) is 1,048,576 unless it is raised).
constexpr int kFirstNumber = 1 << 30;

std::optional<std::pair<uint64_t, uint64_t>> IdentityOf(int fd) {
  if (fd >= kFirstNumber) return std::pair<uint64_t, uint64_t>(0, fd);
  struct stat status {};
  if (::fstat(fd, &status) < 0) return std::nullopt;
  return std::pair<uint64_t, uint64_t>(status.st_dev, status.st_ino);
}

// Whether both links would have the same default route.
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

FakeKernel::FakeKernel(Identity identity)
    : identity_(identity), last_number_(kFirstNumber), node_netns_(NewIdentity()) {}

// An empty file of its own: a descriptor with an identity is all a namespace needs here.
os::UniqueFd FakeKernel::NewIdentity() {
  if (identity_ == Identity::kNumber) return os::UniqueFd(++last_number_);
  os::UniqueFd fd(::memfd_create("fake-netns", MFD_CLOEXEC));
  CHECK(fd.valid(), "a test can open one more descriptor");
  return fd;
}

absl::StatusOr<std::map<std::string, HostSide>> FakeKernel::Read() {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  RETURN_IF_ERROR(read_fault_);
  std::map<std::string, HostSide> sides;
  for (const auto& [name, link] : links_) sides.emplace(name, link.host);
  return sides;
}

absl::StatusOr<PodSide> FakeKernel::ReadPod(const AttachSpec& spec, int pod_netns) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  ++pod_reads_;
  RETURN_IF_ERROR(CheckPod(spec, pod_netns));
  return links_.at(spec.host_link).pod;
}

PodChanges FakeKernel::TakePodChanges() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(pod_changes_, {.all = !tells_pod_changes_});
}

void FakeKernel::TellNoPodChanges() {
  absl::MutexLock lock(&mutex_);
  tells_pod_changes_ = false;
  pod_changes_.all = true;
}

void FakeKernel::NoteChange(const NetnsId& netns) {
  const auto number = netns_numbers_.find(netns);
  if (number != netns_numbers_.end()) pod_changes_.netns.insert(number->second);
}

uint32_t FakeKernel::IndexOf(const std::string& host_link) const {
  absl::MutexLock lock(&mutex_);
  const auto link = links_.find(host_link);
  return link == links_.end() ? 0 : static_cast<uint32_t>(link->second.host.index);
}

HostSide FakeKernel::Recall(const std::string& host_link) const {
  absl::MutexLock lock(&mutex_);
  const auto link = links_.find(host_link);
  return link == links_.end() ? HostSide() : link->second.host;
}

absl::Status FakeKernel::Apply(const AttachSpec& spec, const LinkOperations& plan,
                               std::optional<int> pod_netns) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  if (!IsHostLinkName(spec.host_link)) {
    return absl::InvalidArgumentError(fmt::format("{} is no name of ours", spec.host_link));
  }
  if (spec.addresses.empty()) {
    DeleteLater(spec.host_link);
    return absl::OkStatus();
  }
  if (plan.empty() || plan.front().part != Part::kHostLink) return Mend(spec, plan, pod_netns);
  if (!pod_netns) return absl::InvalidArgumentError("a link cannot be made without its pod");
  return Make(spec, plan, *pod_netns);
}

absl::Status FakeKernel::Make(const AttachSpec& spec, const LinkOperations& plan, int pod_netns) {
  if (const auto fault = fail_attach_.find(spec.host_link); fault != fail_attach_.end()) {
    return fault->second;
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
  Link made{spec, *netns};
  for (const ip::Address& address : spec.addresses) TakeRoute(address);
  for (const LinkOperation& operation : plan) ApplyTo(spec, operation, made.host, made.pod);
  made.host.index = next_index_++;
  const auto number = netns_numbers_.find(*netns);
  made.host.peer_netns = number != netns_numbers_.end() ? number->second : ++last_netns_number_;
  netns_numbers_[*netns] = *made.host.peer_netns;
  NoteChange(*netns);
  links_.emplace(spec.host_link, std::move(made));
  return absl::OkStatus();
}

absl::Status FakeKernel::CheckPod(const AttachSpec& spec, int pod_netns) const {
  const auto link = links_.find(spec.host_link);
  if (link == links_.end()) return absl::NotFoundError(fmt::format("no link {}", spec.host_link));
  if (IdentityOf(pod_netns) != link->second.netns) {
    return absl::FailedPreconditionError("the other end is not in this network namespace");
  }
  return absl::OkStatus();
}

absl::Status FakeKernel::Mend(const AttachSpec& spec, const LinkOperations& plan,
                              std::optional<int> pod_netns) {
  ++mends_;
  for (const LinkOperation& operation : plan) {
    if (operation.part == Part::kHostLink || operation.part == Part::kPodLink ||
        (IsInPod(operation.part) && !pod_netns)) {
      return absl::InvalidArgumentError(
          fmt::format("{} cannot be mended here", NameOf(operation.part)));
    }
  }
  if (pod_netns) RETURN_IF_ERROR(CheckPod(spec, *pod_netns));
  const auto link = links_.find(spec.host_link);
  if (link == links_.end()) return absl::NotFoundError(fmt::format("no link {}", spec.host_link));
  absl::Status first_error;
  for (const LinkOperation& operation : plan) {
    const bool is_route = operation.part == Part::kHostRoute;
    if (const auto fault = mend_faults_.find(operation.part); fault != mend_faults_.end()) {
      first_error.Update(fault->second);
      continue;
    }
    if (is_route && foreign_routes_.count(*operation.address) > 0) {
      first_error.Update(absl::AlreadyExistsError("a route that is not ours is in the way"));
      continue;
    }
    if (is_route) {
      for (auto& [name, other] : links_) std::erase(other.host.routes, *operation.address);
    }
    ApplyTo(spec, operation, link->second.host, link->second.pod);
    if (IsInPod(operation.part)) NoteChange(link->second.netns);
  }
  return first_error;
}

void FakeKernel::TakeRoute(const ip::Address& address) {
  for (auto& [name, link] : links_) {
    std::erase(link.host.routes, address);
    std::erase_if(link.host.rules,
                  [&](const SourceTable& rule) { return rule.address == address; });
  }
}

absl::Status FakeKernel::FinishDetaching() {
  absl::MutexLock lock(&mutex_);
  if (absl::Status fault = Enter(); !fault.ok()) return fault;
  std::vector<std::string> all;
  for (const auto& [name, link] : deferred_) all.push_back(name);
  return Unregister(all);
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
    // Each MAC has a number, as each device has its index.
    return claims::kFirstNicTable + mac.octets[4] * 256U + mac.octets[5];
  }
  return absl::NotFoundError(fmt::format("no NIC has the MAC {}", mac.ToString()));
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

os::UniqueFd FakeKernel::NodeNetns() const { return Copy(node_netns_.get()); }

os::UniqueFd FakeKernel::Copy(int netns) {
  return os::UniqueFd(netns >= kFirstNumber ? netns : ::fcntl(netns, F_DUPFD_CLOEXEC, 0));
}

FakeKernel::NetnsId FakeKernel::IdOf(int netns) { return IdentityOf(netns).value(); }

void FakeKernel::DestroyPodNetns(int pod_netns) {
  if (const auto netns = IdentityOf(pod_netns)) DestroyPodNetns(*netns);
}

void FakeKernel::DestroyPodNetns(const NetnsId& netns) {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> gone;
  for (const auto& [name, link] : links_) {
    if (link.netns == netns) gone.push_back(name);
  }
  for (const std::string& name : gone) DeleteLater(name);
  std::erase_if(deferred_, [&netns](const auto& entry) { return entry.second.netns == netns; });
  pods_.erase(netns);
  netns_numbers_.erase(netns);
}

void FakeKernel::AddPodLink(int pod_netns, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto netns = IdentityOf(pod_netns);
  CHECK(netns && pods_.count(*netns) > 0, "the pod namespace is one of ours");
  pods_[*netns].insert(name);
  NoteChange(*netns);
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

void FakeKernel::Remove(const std::string& host_link) {
  absl::MutexLock lock(&mutex_);
  DeleteLater(host_link);
  deferred_.erase(host_link);
}

std::string FakeKernel::HostLinkIn(const NetnsId& netns) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, link] : links_) {
    if (link.netns == netns) return name;
  }
  return "";
}

void FakeKernel::AddForeignRoute(const ip::Address& address) {
  absl::MutexLock lock(&mutex_);
  foreign_routes_.insert(address);
}

void FakeKernel::FailReads(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  read_fault_ = std::move(status);
}

void FakeKernel::FailMending(Part part, absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (status.ok()) {
    mend_faults_.erase(part);
  } else {
    mend_faults_.insert_or_assign(part, std::move(status));
  }
}

int FakeKernel::pod_reads() const {
  absl::MutexLock lock(&mutex_);
  return pod_reads_;
}

int FakeKernel::mends() const {
  absl::MutexLock lock(&mutex_);
  return mends_;
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
  std::map<ip::Address, uint32_t> tables;
  for (const auto& [name, link] : links_) {
    for (const SourceTable& rule : link.host.rules) tables[rule.address] = rule.table;
  }
  return tables;
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
