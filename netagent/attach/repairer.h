// Puts back what others have taken away: looks every ten seconds whether the kernel holds each
// attachment as it was built, and applies the plan of what differs (links/link_plan.h). What is
// broken is right again within 30 s.
//
// A pod is looked into when something in its namespace has changed, as the kernel tells
// (Links::TakePodChanges()), and every five minutes for what it might not tell; where it tells
// nothing, in every round.
//
// The node's settings and the unreachable routes are looked at in the same round. CHECK and STATUS
// are answered from the same plan.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/assignments.h"
#include "netagent/attach/attachment_checker.h"
#include "netagent/attach/attachments.h"
#include "netagent/links/link_plan.h"
#include "netagent/links/links.h"
#include "netagent/node/node_setup.h"

namespace spoke::netagent {

// The time from one look at all host links to the next.
inline constexpr absl::Duration kRepairRound = absl::Seconds(10);
// What is to be mended, and the pods' insides, are dealt with in slices: the loop serves plugins in
// between. A slice ends after this time, or this many attachments, whichever comes first. Should
// each slice do no more than one attachment, 250 take 25 s.
inline constexpr absl::Duration kRepairSlice = absl::Milliseconds(3);
inline constexpr int kMaxRepairsPerSlice = 16;
// All pods are looked into so often, whatever the kernel tells.
inline constexpr absl::Duration kFullPass = absl::Minutes(5);
inline constexpr absl::Duration kRepairSlicePause = absl::Milliseconds(100);
// A node that is not healthy is not ready (STATUS), and Kubernetes evicts the pods of such a node
// after five minutes: what fails for one pod, or once, must not do that to all. So a node is
// unhealthy if more than this share of its attachments cannot be mended.
inline constexpr int kUnhealthyPercent = 50;
// A node is also unhealthy if it could not read them in this many rounds in a row.
inline constexpr int kUnhealthyUnreadRounds = 3;

// The counts of repairs since the agent's start.
struct RepairCounts {
  struct OfPart {
    uint64_t repaired = 0;
    uint64_t failed = 0;  // Failed attempts.

    bool operator==(const OfPart&) const = default;
  };
  std::array<OfPart, static_cast<size_t>(kLastPart) + 1> parts;
  uint64_t node_settings = 0;  // Settings of the node as a whole that had to be made again.
  uint64_t rounds = 0;
  uint64_t failed_rounds = 0;  // Rounds that could not read the host links.

  const OfPart& of(Part part) const { return parts[static_cast<size_t>(part)]; }
};

// Not thread-safe; the agent's one loop owns it. So an attachment that is being built or taken down
// is never looked at.
class Repairer final : public AttachmentChecker {
 public:
  struct Edges {
    Links& links;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  struct Settings {
    // Whether pods are looked into as well. If not, a changed MAC of a pod's is not noticed.
    bool repair_pods = true;
    // Opens the network namespace at a path. One that cannot be had, or that is not the pod's any
    // more, is passed over.
    std::function<absl::StatusOr<os::UniqueFd>(const std::string& path)> open_netns;
    // Makes the settings of the node as a whole.
    std::function<NodeSetupReport()> prepare_node;
    // Hears the MAC that the pod behind a host link has, in each round; may be empty.
    std::function<void(const std::string&, const ip::MacAddress&)> on_pod_mac = {};
  };
  // Borrows the edges and `attachments`.
  Repairer(Settings settings, const Edges& edges, const Attachments& attachments);

  // Does what is due. Call at NextWake(), or at any time.
  void Tick();
  absl::Time NextWake() const;
  // Makes a round due, as when a link is known to have changed.
  void LookNow() { next_round_ = absl::InfinitePast(); }

  // OK, or what keeps this node from carrying its pods' traffic: a setting of the node that cannot
  // be made, and attachments that cannot be mended or read, as far as the limits above say.
  // What a pod does inside itself is not in it: no pod may make its node unfit for others.
  absl::Status Health() const;
  bool Healthy() const { return Health().ok(); }

  // Compares an attachment with the kernel; what is found is mended soon after, in a round. The
  // message of kDataLoss has the first three differences and how many more there are.
  absl::Status Check(const AttachmentKey& key, const CheckExpectation& expected,
                     int pod_netns) override;
  absl::Status DataPath() const override;

  const RepairCounts& counts() const { return counts_; }

  // The attachments whose host link was not there in the last round that could read them, except
  // those that the journal does not know.
  std::vector<Assignment> Gone() const;

 private:
  // What is remembered of an attachment from one look to the next.
  struct Known {
    std::set<Part> failing_on_node;
    std::set<Part> failing_in_pod;
    bool gone = false;
    uint64_t generation = 0;  // That of the assignment which the rest is about.
    // Whether the pod is to be looked into: it was not, or it changed, or it was not right.
    bool look_into = true;
    std::optional<ip::MacAddress> pod_mac;  // The last one seen: later plugins may change it.
  };
  struct Job {
    AttachmentKey key;
    uint64_t generation = 0;
    LinkOperations plan;
  };

  void Round();
  void PrepareNode();
  void SyncUnreachable();
  void LookAt(const Assignment& assignment, const PodChanges& changes);
  void Slice();
  // Returns the assignment if it still has that generation.
  const Assignment* Find(const AttachmentKey& key, uint64_t generation) const;
  absl::StatusOr<AttachSpec> SpecOf(const Assignment& assignment);
  void MendHost(const Job& job);
  void LookInto(const Assignment& assignment);
  void Mend(const Assignment& assignment, const AttachSpec& spec, const LinkOperations& plan,
            std::optional<int> pod_netns, std::set<Part>& failing);

  const Settings settings_;
  const Edges edges_;
  const Attachments& attachments_;
  absl::Time next_round_ = absl::InfinitePast();
  absl::Time next_slice_ = absl::InfinitePast();
  absl::Time next_full_pass_ = absl::InfinitePast();
  std::map<std::string, HostSide> hosts_;  // The host links in the last round.
  std::map<AttachmentKey, Known> known_;   // Holds present assignments only.
  std::deque<Job> to_mend_;                // Jobs on the node's side.
  std::deque<Job> pods_;                   // Pods to look into; a job without a plan.
  absl::Status readable_;                  // Whether the last round could look.
  int unread_rounds_ = 0;                  // Rounds in a row, up to the last.
  std::vector<absl::Status> node_failures_;
  std::string first_failure_;  // The first on the node's side in the last round; for Health().
  RepairCounts counts_;
};

}  // namespace spoke::netagent
