#include "netagent/links/testing/fake_inspector.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

// Puts the entry of `built` for the address in the place of whatever is there for it.
void RestoreNeighbour(const std::vector<PermanentNeighbour>& built, const ip::Address& address,
                      std::vector<PermanentNeighbour>& entries) {
  const auto is_it = [&](const PermanentNeighbour& entry) { return entry.address == address; };
  const auto wanted = std::find_if(built.begin(), built.end(), is_it);
  CHECK(wanted != built.end(), "an attachment has a neighbour entry for each address");
  const auto found = std::find_if(entries.begin(), entries.end(), is_it);
  if (found == entries.end()) {
    entries.push_back(*wanted);
  } else {
    *found = *wanted;
  }
}

template <typename T>
void AddMissing(const std::vector<T>& wanted, std::vector<T>& values) {
  for (const T& value : wanted) {
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
}

// `spec` with one of its addresses only.
AttachSpec For(AttachSpec spec, const ip::Address& address) {
  spec.addresses = {address};
  return spec;
}

}  // namespace

os::UniqueFd FakeInspector::NewPodNetns() {
  os::UniqueFd fd(::memfd_create("fake-netns", MFD_CLOEXEC));
  CHECK(fd.valid(), "a test can open one more descriptor");
  return fd;
}

std::optional<FakeInspector::NetnsId> FakeInspector::IdentityOf(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) < 0) return std::nullopt;
  return NetnsId(status.st_dev, status.st_ino);
}

void FakeInspector::Build(const AttachSpec& spec, int pod_netns) {
  const auto netns = IdentityOf(pod_netns);
  CHECK(netns.has_value(), "a pod has a namespace");
  // An address that an older attachment has moves to this one.
  for (auto& [name, attachment] : attachments_) {
    std::erase_if(attachment.host.routes, [&](const ip::Address& address) {
      return std::find(spec.addresses.begin(), spec.addresses.end(), address) !=
             spec.addresses.end();
    });
  }
  Attachment built{*netns, BuiltHostSide(spec), BuiltPodSide(spec)};
  built.host.index = static_cast<int32_t>(1000 + attachments_.size());
  attachments_.insert_or_assign(spec.host_link, std::move(built));
}

void FakeInspector::Remove(const std::string& host_link) { attachments_.erase(host_link); }

HostSide& FakeInspector::host(const std::string& host_link) {
  return attachments_.at(host_link).host;
}
PodSide& FakeInspector::pod(const std::string& host_link) { return attachments_.at(host_link).pod; }

void FakeInspector::FailMending(Part part, absl::Status status) {
  mend_faults_.insert_or_assign(part, std::move(status));
}

absl::StatusOr<std::map<std::string, HostSide>> FakeInspector::ReadHostSides() {
  ++reads_;
  RETURN_IF_ERROR(read_fault_);
  std::map<std::string, HostSide> sides;
  for (const auto& [name, attachment] : attachments_) sides.emplace(name, attachment.host);
  return sides;
}

absl::Status FakeInspector::CheckPod(const AttachSpec& spec, int pod_netns) const {
  const auto attachment = attachments_.find(spec.host_link);
  if (attachment == attachments_.end()) {
    return absl::NotFoundError(fmt::format("no link {}", spec.host_link));
  }
  const auto netns = IdentityOf(pod_netns);
  if (!netns || *netns != attachment->second.netns) {
    return absl::FailedPreconditionError("the other end is not in this network namespace");
  }
  return absl::OkStatus();
}

absl::StatusOr<PodSide> FakeInspector::ReadPodSide(const AttachSpec& spec, int pod_netns) {
  ++pod_reads_;
  RETURN_IF_ERROR(CheckPod(spec, pod_netns));
  return attachments_.at(spec.host_link).pod;
}

absl::Status FakeInspector::Mend(const AttachSpec& spec, const std::vector<Difference>& differences,
                                 std::optional<int> pod_netns) {
  ++mends_;
  for (const Difference& difference : differences) {
    if (!IsMendable(difference.part) || (IsInPod(difference.part) && !pod_netns)) {
      return absl::InvalidArgumentError(
          fmt::format("{} cannot be mended here", NameOf(difference.part)));
    }
  }
  if (pod_netns) RETURN_IF_ERROR(CheckPod(spec, *pod_netns));
  if (attachments_.count(spec.host_link) == 0) {
    return absl::NotFoundError(fmt::format("no link {}", spec.host_link));
  }
  absl::Status first_error;
  for (const Difference& difference : differences) {
    first_error.Update(MendOne(spec, difference, pod_netns.has_value()));
  }
  return first_error;
}

absl::Status FakeInspector::MendOne(const AttachSpec& spec, const Difference& difference,
                                    bool with_pod) {
  if (const auto fault = mend_faults_.find(difference.part); fault != mend_faults_.end()) {
    RETURN_IF_ERROR(fault->second);
  }
  Attachment& attachment = attachments_.at(spec.host_link);
  AttachSpec wanted = spec;
  if (with_pod) {
    wanted.pod_mac = attachment.pod.mac;
    wanted.mtu = attachment.pod.mtu;
  }
  if (IsInPod(difference.part)) {
    MendInPod(wanted, difference, attachment.pod);
    return absl::OkStatus();
  }
  return MendOnHost(wanted, difference, attachment.host);
}

absl::Status FakeInspector::MendOnHost(const AttachSpec& wanted, const Difference& difference,
                                       HostSide& host) {
  const HostSide built = BuiltHostSide(wanted);
  switch (difference.part) {
    case Part::kHostUp:
      host.up = true;
      break;
    case Part::kHostMac:
      host.mac = built.mac;
      break;
    case Part::kHostMtu:
      host.mtu = built.mtu;
      break;
    case Part::kHostSetting:
      host.settings = built.settings;
      host.address_generation = built.address_generation;
      break;
    case Part::kHostNeighbour:
      RestoreNeighbour(built.neighbours, *difference.address, host.neighbours);
      break;
    case Part::kHostRoute:
      if (foreign_routes_.count(*difference.address) > 0) {
        return absl::AlreadyExistsError("a route that is not ours is in the way");
      }
      for (auto& [name, attachment] : attachments_) {
        std::erase(attachment.host.routes, *difference.address);
      }
      host.routes.push_back(*difference.address);
      break;
    case Part::kHostRule:
      host.rules = built.rules;
      break;
    case Part::kIngressLimit:
      host.limit_bps = built.limit_bps;
      break;
    default:
      break;  // Refused by Mend().
  }
  return absl::OkStatus();
}

void FakeInspector::MendInPod(const AttachSpec& wanted, const Difference& difference,
                              PodSide& pod) {
  switch (difference.part) {
    case Part::kPodUp:
      pod.up = true;
      break;
    case Part::kPodAddress:
      AddMissing({*difference.address}, pod.addresses);
      break;
    case Part::kPodNeighbour: {
      const auto entries = BuiltPodSide(For(wanted, *difference.address)).neighbours;
      RestoreNeighbour(entries, entries[0].address, pod.neighbours);
      break;
    }
    case Part::kPodRoute:
      AddMissing(BuiltPodSide(For(wanted, *difference.address)).routes, pod.routes);
      break;
    case Part::kPodRule:
      AddMissing(BuiltPodSide(For(wanted, *difference.address)).rules, pod.rules);
      break;
    default:
      break;  // Refused by Mend().
  }
}

}  // namespace spoke::netagent
