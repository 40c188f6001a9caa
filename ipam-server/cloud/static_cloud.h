// A cloud without an API: the network delivers any address of the pools to the node we say.
// Attaching is immediate, and a node is its name: another VM under that name has replaced the
// first, NIC and all. A node that is no more is not noticed. What was decided can be published in a
// file for whatever programs that network.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/cloud.h"

namespace spoke::ipam {

// The published file: a comment line, then a line "<address>/<prefix length>\t<nic mac>\t<node>"
// for each attached address, in address order. Pure.
std::string FormatAttachments(const std::map<NodeKey, NicAddresses>& nics);

class StaticCloud final : public Cloud {
 public:
  // `attachments_file`: rewritten whole, by rename, at each change; empty: none. Meant for networks
  // of up to some thousand addresses.
  explicit StaticCloud(std::string attachments_file)
      : attachments_file_(std::move(attachments_file)) {}

  // What is attached to begin with is just this; published at once. Before, nothing is touched.
  // Errors: what the file system says about the file; then nothing has changed.
  absl::Status Begin(const std::vector<NicAddresses>& nics);

  absl::StatusOr<NicAddresses> Apply(const NicRequest& desired) override;
  absl::StatusOr<std::vector<NicAddresses>> List() override;
  std::string Describe() const override { return "static"; }

 private:
  std::map<NodeKey, NicAddresses> TakeVmsNamed(const NodeKey& node)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Publish(const std::map<NodeKey, NicAddresses>& nics) const;

  const std::string attachments_file_;
  absl::Mutex mutex_;
  std::map<NodeKey, NicAddresses> nics_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
