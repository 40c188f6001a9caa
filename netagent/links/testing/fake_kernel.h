// Links for tests: keeps the state a kernel would, lets a test damage it, and fails when told to.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/testing/link_acts.h"

namespace spoke::netagent {

// Keeps every promise of links.h (links_contract.h runs against it). Thread-safe, unlike the real
// one, so that a test can look while the program's kernel thread works.
//
// A namespace is stood for by a descriptor, as it is with the real kernel: a copy (dup, SCM_RIGHTS)
// is the same namespace, and a descriptor that did not come from here is none.
//
// A detached link stays deferred until FinishDetaching(), or the making of a link that it is in the
// way of.
class FakeKernel final : public Links {
 public:
  // What stands for a namespace: a descriptor of an empty file, as processes can hand on; or a
  // number beyond every descriptor, which closing does nothing to, where more pods wait than one
  // process may have descriptors.
  enum class Identity : uint8_t { kDescriptor, kNumber };
  explicit FakeKernel(Identity identity = Identity::kDescriptor);

  absl::StatusOr<std::map<std::string, HostSide>> Read() override;
  absl::StatusOr<PodSide> ReadPod(const AttachSpec& spec, int pod_netns) override;
  PodChanges TakePodChanges() override;
  uint32_t IndexOf(const std::string& host_link) const override;
  HostSide Recall(const std::string& host_link) const override;
  absl::Status Apply(const AttachSpec& spec, const LinkOperations& plan,
                     std::optional<int> pod_netns) override;
  absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) override;
  absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& nic) override;
  absl::StatusOr<Nic> ReadNic(const std::string& name) override;
  // Unregisters what was taken down, as KernelLinks::FinishDetaching() does.
  absl::Status FinishDetaching();

  // The device and inode of a descriptor, or 0 and a number: no two namespaces have the same, not
  // one after the other either.
  using NetnsId = std::pair<uint64_t, uint64_t>;

  // Makes a pod namespace with nothing in it. It lives until DestroyPodNetns(), open or not.
  os::UniqueFd NewPodNetns();
  // Returns one more of what stands for a namespace.
  static os::UniqueFd Copy(int netns);
  // Returns how a namespace is known once it is no longer open; it must be.
  static NetnsId IdOf(int netns);
  // Returns one more descriptor of the node's own namespace.
  os::UniqueFd NodeNetns() const;
  // Ends the namespace, as when a pod's sandbox dies without a DEL: each link in it and its host
  // end go. The descriptor no longer stands for a namespace.
  void DestroyPodNetns(int pod_netns);
  void DestroyPodNetns(const NetnsId& netns);
  // Makes TakePodChanges() answer as a kernel that does not tell this process.
  void TellNoPodChanges();
  // Puts a link of somebody else's into the pod.
  void AddPodLink(int pod_netns, const std::string& name);

  // Returns what is there of a link, for a test of one thread to damage at will; it must be there.
  HostSide& host(const std::string& host_link) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return links_.at(host_link).host;
  }
  // Damage to the pod is heard of at the next TakePodChanges().
  PodSide& pod(const std::string& host_link) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    NoteChange(links_.at(host_link).netns);
    return links_.at(host_link).pod;
  }
  // The host link of the first link in the pod; empty: there is none.
  std::string HostLinkIn(const NetnsId& netns) const;
  // Removes the link for good, and the pod's end with it.
  void Remove(const std::string& host_link);
  // Gives the address a route of somebody else's, in place of ours.
  void AddForeignRoute(const ip::Address& address);

  // Adds the device, or replaces the one of that name.
  void SetNic(Nic nic);
  void RemoveNic(const std::string& name);

  // Makes the `nth` call of a method of Links from now on (1 is the next), whichever it is, return
  // `status` and change nothing. A second FailCall() replaces the first.
  void FailCall(int nth, absl::Status status);
  // Makes the making of `host_link` return `status` and change nothing, until it is called with OK.
  void FailAttach(const std::string& host_link, absl::Status status);

  // Makes Read(), or mending `part` of any link, fail in the same way.
  void FailReads(absl::Status status);
  void FailMending(Part part, absl::Status status);

  // Holds deferred links: while held, none is ever unregistered, and what waits for that returns
  // kUnavailable.
  void HoldDeferred(bool held);
  // The host links that are detached and not unregistered, sorted.
  std::vector<std::string> Deferred() const;

  // The number of calls made so far, failed ones included.
  int calls() const;
  int pod_reads() const;  // Calls of ReadPod().
  int mends() const;      // Calls of Apply() for a link that is there.
  // Returns what was built for `host_link`, if it is there.
  std::optional<AttachSpec> Attached(const std::string& host_link) const;
  // The table by which what comes from each address leaves; addresses that have none are left out.
  std::map<ip::Address, uint32_t> SourceTables() const;
  // The addresses with an unreachable route, sorted.
  std::vector<ip::Address> Unreachable() const;

 private:
  struct Link {
    AttachSpec spec;
    NetnsId netns;
    HostSide host = {};
    PodSide pod = {};
  };

  // Counts the call, and returns the fault that is due, or OK.
  absl::Status Enter() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Make(const AttachSpec& spec, const LinkOperations& plan, int pod_netns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Mend(const AttachSpec& spec, const LinkOperations& plan,
                    std::optional<int> pod_netns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckPod(const AttachSpec& spec, int pod_netns) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the address's route: it leads to no link any more.
  void TakeRoute(const ip::Address& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stops the link from carrying anything, and defers it.
  void DeleteLater(const std::string& host_link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Unregister(const std::vector<std::string>& deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The deferred links that `spec` cannot be attached beside.
  std::vector<std::string> DeferredInTheWay(const AttachSpec& spec, const NetnsId& netns) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  os::UniqueFd NewIdentity();
  void NoteChange(const NetnsId& netns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Identity identity_;
  std::atomic<int> last_number_;
  const os::UniqueFd node_netns_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Link> links_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Link> deferred_ ABSL_GUARDED_BY(mutex_);
  bool hold_deferred_ ABSL_GUARDED_BY(mutex_) = false;
  // The names in each pod; a namespace is one that has an entry here.
  std::map<NetnsId, std::set<std::string>> pods_ ABSL_GUARDED_BY(mutex_);
  // The numbers of namespaces; a number is never used again.
  std::map<NetnsId, int32_t> netns_numbers_ ABSL_GUARDED_BY(mutex_);
  int32_t last_netns_number_ ABSL_GUARDED_BY(mutex_) = 0;
  PodChanges pod_changes_ ABSL_GUARDED_BY(mutex_) = {.all = true};
  bool tells_pod_changes_ ABSL_GUARDED_BY(mutex_) = true;
  std::set<ip::Address> foreign_routes_ ABSL_GUARDED_BY(mutex_);
  std::set<ip::Address> unreachable_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Nic> nics_ ABSL_GUARDED_BY(mutex_);

  int32_t next_index_ ABSL_GUARDED_BY(mutex_) = 100;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int pod_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  int mends_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status read_fault_ ABSL_GUARDED_BY(mutex_);
  std::map<Part, absl::Status> mend_faults_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::pair<int, absl::Status>> fail_call_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Status> fail_attach_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::netagent
