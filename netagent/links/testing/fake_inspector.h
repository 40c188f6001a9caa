// An Inspector for tests: keeps both sides of each attachment as a kernel would, lets a test damage
// them, and fails when told to.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/os/unique_fd.h"
#include "netagent/links/inspector.h"

namespace spoke::netagent {

// Keeps every promise of inspector.h (inspector_contract.h runs against it). A namespace is stood
// for by a descriptor, as FakeKernel's are, and those may be used here. Not thread-safe.
class FakeInspector final : public Inspector {
 public:
  absl::StatusOr<std::map<std::string, HostSide>> ReadHostSides() override;
  absl::StatusOr<PodSide> ReadPodSide(const AttachSpec& spec, int pod_netns) override;
  absl::Status Mend(const AttachSpec& spec, const std::vector<Difference>& differences,
                    std::optional<int> pod_netns) override;

  static os::UniqueFd NewPodNetns();
  // As Router::Attach() leaves it.
  void Build(const AttachSpec& spec, int pod_netns);
  void Remove(const std::string& host_link);
  // What is there now, to be damaged at will; there must be one.
  HostSide& host(const std::string& host_link);
  PodSide& pod(const std::string& host_link);
  // The address has a route of somebody else's, in place of ours.
  void AddForeignRoute(const ip::Address& address) { foreign_routes_.insert(address); }

  // Until this is called with OK, ReadHostSides() fails so.
  void FailReads(absl::Status status) { read_fault_ = std::move(status); }
  // Likewise for what Mend() is to do to `part`.
  void FailMending(Part part, absl::Status status);

  int reads() const { return reads_; }          // Calls of ReadHostSides().
  int pod_reads() const { return pod_reads_; }  // Calls of ReadPodSide().
  int mends() const { return mends_; }          // Calls of Mend().

 private:
  using NetnsId = std::pair<uint64_t, uint64_t>;
  struct Attachment {
    NetnsId netns;
    HostSide host;
    PodSide pod;
  };

  static std::optional<NetnsId> IdentityOf(int fd);
  absl::Status CheckPod(const AttachSpec& spec, int pod_netns) const;
  absl::Status MendOne(const AttachSpec& spec, const Difference& difference, bool with_pod);
  absl::Status MendOnHost(const AttachSpec& wanted, const Difference& difference, HostSide& host);
  static void MendInPod(const AttachSpec& wanted, const Difference& difference, PodSide& pod);

  std::map<std::string, Attachment> attachments_;
  std::set<ip::Address> foreign_routes_;
  absl::Status read_fault_;
  std::map<Part, absl::Status> mend_faults_;
  int reads_ = 0;
  int pod_reads_ = 0;
  int mends_ = 0;
};

}  // namespace spoke::netagent
