// A node with one NIC, a server that keeps what it is told, and an agent's Attachments that can be
// started again on what the last one's journal says.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/clock.h"
#include "lib/os/unique_fd.h"
#include "netagent/attach/attachments.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {

class AttachmentsFixture : public testing::Test {
 protected:
  AttachmentsFixture() {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    Restart();
  }
  // Starts a new agent on the same node.
  void Restart() {
    const std::vector<Event> events = tmpfs_.events;
    attachments_.emplace(settings_, Attachments::Edges{kernel_, server_, clock_, log_},
                         std::make_unique<FakeJournal>(tmpfs_));
    ASSERT_TRUE(attachments_->Start(events).ok());
  }
  // Adds an attachment of a new pod.
  absl::StatusOr<AttachSpec> Add(const Assignment& asked) {
    pods_.push_back(kernel_.NewPodNetns());
    return attachments_->Add(asked, pods_.back().get());
  }
  bool HasLink(const AttachmentKey& key) { return kernel_.Attached(HostLinkName(key)).has_value(); }

  Attachments::Settings settings_{
      .node_name = "node1", .nic = "eth0", .cooldown = absl::Seconds(30)};
  FakeKernel kernel_;
  FakeServerLink server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  std::vector<os::UniqueFd> pods_;
  std::optional<Attachments> attachments_;
};

}  // namespace spoke::netagent
