// A cloud without an API: the network delivers any address of the pools to the node we say.
// Attaching is immediate, and a node is its name: another VM under that name has replaced the
// first, NIC and all. A node that is no more is not noticed. What was decided can be published in a
// file for whatever programs that network.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/cloud.h"

namespace spoke::ipam {

// The published file: a comment line, then a line "<address>/<prefix length>\t<nic mac>\t<node>"
// for each attached address, in address order. Pure.
std::string FormatAttachments(const std::map<NodeKey, NicAddresses>& nics);

// A thread of its own writes the file, since a disk may take a while: once for all that waits.
class StaticCloud final : public Cloud {
 public:
  // `attachments_file`: rewritten whole, by rename, at each change; empty: none. Meant for networks
  // of up to some thousand addresses. `answer` is called on the cloud's thread.
  StaticCloud(std::string attachments_file, CloudAnswer answer);
  StaticCloud(const StaticCloud&) = delete;
  StaticCloud& operator=(const StaticCloud&) = delete;
  ~StaticCloud() override;

  // What is attached to begin with is just this; published at once. Before, nothing is touched.
  // Errors: what the file system says about the file; then nothing has changed.
  absl::Status Begin(const std::vector<NicAddresses>& nics) override;
  // Answers what the file system says about the file, to all that waited together: then nothing of
  // it has happened.
  void Request(NicRequest desired) override;
  void List(CloudListed listed) override;
  absl::Duration listing_period() const override { return absl::Seconds(60); }
  std::string Describe() const override { return "static"; }
  void Stop() override;

 private:
  using Nics = std::map<NodeKey, NicAddresses>;

  void Run();
  void CarryOut(const std::map<NodeKey, NicRequest>& requests);
  absl::Status Publish(const Nics& nics) const;

  const std::string attachments_file_;
  const CloudAnswer answer_;
  absl::Mutex mutex_;
  Nics nics_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeKey, NicRequest> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // It stands last, since it uses all of the above.
};

}  // namespace spoke::ipam
