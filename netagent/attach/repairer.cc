#include "netagent/attach/repairer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

// A link that the journal did not know is held without all that it was built from.
bool IsAdopted(const AttachmentKey& key) { return key.ifname == "?"; }

std::string PodName(const Assignment& assignment) {
  if (assignment.pod.name.empty()) return assignment.key.container_id;
  return fmt::format("{}/{}", assignment.pod.pod_namespace, assignment.pod.name);
}

// Returns the operations of `all` that are not in `known` as well.
LinkOperations Without(LinkOperations all, const LinkOperations& known) {
  std::erase_if(all, [&](const LinkOperation& operation) {
    return std::find(known.begin(), known.end(), operation) != known.end();
  });
  return all;
}

// Whether the attachment went while it was looked at: its DEL, or the next round, deals with that.
bool HasLeft(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
}

constexpr size_t kMaxTold = 3;

std::string ListOf(const std::vector<ip::Address>& addresses) {
  std::string text;
  for (const ip::Address& address : addresses) {
    text += fmt::format("{}{}", text.empty() ? "" : " and ", address.ToString());
  }
  return text;
}

// Lists what prevResult says that was never so.
std::vector<std::string> CompareWithResult(const Assignment& assignment, const AttachSpec& spec,
                                           const CheckExpectation& expected) {
  std::vector<std::string> texts;
  if (!expected.host_link.empty() && expected.host_link != spec.host_link) {
    texts.push_back(fmt::format("prevResult names host link {}, but it is {}", expected.host_link,
                                spec.host_link));
  }
  for (const ip::Address& address : expected.addresses) {
    if (std::find(assignment.addresses.begin(), assignment.addresses.end(), address) !=
        assignment.addresses.end()) {
      continue;
    }
    texts.push_back(fmt::format("prevResult has {}, but {} is assigned to this interface",
                                address.ToString(), ListOf(assignment.addresses)));
  }
  return texts;
}

void CompareWithResult(const PodSide& pod, const CheckExpectation& expected,
                       std::vector<std::string>& texts) {
  if (expected.pod_mac && *expected.pod_mac != pod.mac) {
    texts.push_back(fmt::format("link {} has MAC {} in the pod, not {}", pod.name,
                                pod.mac.ToString(), expected.pod_mac->ToString()));
  }
  if (expected.mtu != 0 && expected.mtu != pod.mtu) {
    texts.push_back(
        fmt::format("link {} has MTU {} in the pod, not {}", pod.name, pod.mtu, expected.mtu));
  }
}

absl::Status Told(const AttachmentKey& key, const std::vector<std::string>& texts) {
  if (texts.empty()) return absl::OkStatus();
  std::string message;
  for (size_t i = 0; i < std::min(texts.size(), kMaxTold); ++i) {
    message += fmt::format("{}{}", i == 0 ? "" : "; ", texts[i]);
  }
  if (texts.size() > kMaxTold) message += fmt::format("; and {} more", texts.size() - kMaxTold);
  return absl::DataLossError(
      fmt::format("{} of container {}: {}", key.ifname, key.container_id, message));
}

}  // namespace

Repairer::Repairer(Settings settings, const Edges& edges, const Attachments& attachments)
    : settings_(std::move(settings)), edges_(edges), attachments_(attachments) {}

void Repairer::Tick() {
  const absl::Time now = edges_.clock.Now();
  if (now >= next_round_) {
    next_round_ = now + kRepairRound;
    Round();
  }
  if (now >= next_slice_ && !(to_mend_.empty() && pods_.empty())) {
    Slice();
    next_slice_ = now + kRepairSlicePause;
  }
}

absl::Time Repairer::NextWake() const {
  if (to_mend_.empty() && pods_.empty()) return next_round_;
  return std::min(next_round_, next_slice_);
}

void Repairer::Round() {
  ++counts_.rounds;
  PrepareNode();
  SyncUnreachable();
  to_mend_.clear();
  auto hosts = edges_.links.Read();
  if (!hosts.ok()) {
    ++counts_.failed_rounds;
    if (readable_.ok()) edges_.log.Warn("attachments_unreadable", {{"error", hosts.status()}});
    readable_ = hosts.status();
    ++unread_rounds_;
    return;
  }
  readable_ = absl::OkStatus();
  unread_rounds_ = 0;
  hosts_ = *std::move(hosts);

  const std::vector<Assignment> assignments = attachments_.assignments().Built();
  std::map<AttachmentKey, Known> known;
  for (const Assignment& assignment : assignments) {
    const auto before = known_.find(assignment.key);
    if (before != known_.end() && before->second.generation == assignment.generation) {
      known.insert(known_.extract(before));
    } else {
      known[assignment.key].generation = assignment.generation;
    }
  }
  known_ = std::move(known);
  // A pass through the pods that takes longer than a round goes on, since otherwise the last never
  // have their turn.
  const bool next_pass = pods_.empty() && settings_.repair_pods;
  PodChanges changes = edges_.links.TakePodChanges();
  if (const absl::Time now = edges_.clock.Now(); now >= next_full_pass_) {
    changes.all = true;
    next_full_pass_ = now + kFullPass;
  }
  for (const Assignment& assignment : assignments) {
    if (IsAdopted(assignment.key)) continue;
    LookAt(assignment, changes);
    if (next_pass && known_[assignment.key].look_into && !assignment.netns_path.empty()) {
      pods_.push_back({assignment.key, assignment.generation, {}});
    }
  }
}

void Repairer::PrepareNode() {
  NodeSetupReport report = settings_.prepare_node();
  counts_.node_settings += report.changed.size();
  for (const ChangedSetting& setting : report.changed) {
    edges_.log.Warn("node_setting_repaired",
                    {{"name", setting.name}, {"before", setting.before}, {"after", setting.after}});
  }
  for (const absl::Status& failure : report.failed) {
    if (std::find(node_failures_.begin(), node_failures_.end(), failure) == node_failures_.end()) {
      edges_.log.Error("sysctl_failed", {{"error", failure}});
    }
  }
  node_failures_ = std::move(report.failed);
}

// Attachments compares with what it has told the kernel; here the kernel is asked.
void Repairer::SyncUnreachable() {
  const absl::Status status = edges_.links.SetUnreachable(attachments_.assignments().Attached());
  if (!status.ok()) edges_.log.Warn("unreachable_routes_failed", {{"error", status}});
}

absl::StatusOr<AttachSpec> Repairer::SpecOf(const Assignment& assignment) {
  auto spec = attachments_.SpecOf(assignment);
  if (!spec.ok()) return spec;
  if (const auto& mac = known_[assignment.key].pod_mac) spec->pod_mac = *mac;
  return spec;
}

void Repairer::LookAt(const Assignment& assignment, const PodChanges& changes) {
  const auto spec = SpecOf(assignment);
  if (!spec.ok()) return;  // It was built, so it has one.
  Known& known = known_[assignment.key];
  const auto host = hosts_.find(spec->host_link);
  if (host == hosts_.end()) {
    // The link has gone with its sandbox, as a rule, and its DEL is on the way.
    if (!known.gone) {
      edges_.log.Warn("attachment_link_gone",
                      {{"link", spec->host_link}, {"pod", PodName(assignment)}});
    }
    known = {.gone = true, .generation = assignment.generation};
    return;
  }
  known.gone = false;
  const std::optional<int32_t> netns = host->second.peer_netns;
  if (changes.all || !netns || changes.netns.contains(*netns)) known.look_into = true;
  if (known.pod_mac && settings_.on_pod_mac) settings_.on_pod_mac(spec->host_link, *known.pod_mac);
  LinkOperations plan = PlanLink(*spec, {.host = host->second});
  if (plan.empty()) {
    known.failing_on_node.clear();
    return;
  }
  to_mend_.push_back({assignment.key, assignment.generation, std::move(plan)});
}

void Repairer::Slice() {
  const absl::Time start = edges_.clock.Now();
  for (int done = 0; done < kMaxRepairsPerSlice; ++done) {
    if (!to_mend_.empty()) {
      const Job job = std::move(to_mend_.front());
      to_mend_.pop_front();
      MendHost(job);
    } else if (!pods_.empty()) {
      const Job job = std::move(pods_.front());
      pods_.pop_front();
      if (const Assignment* assignment = Find(job.key, job.generation)) LookInto(*assignment);
    } else {
      return;
    }
    if (edges_.clock.Now() - start >= kRepairSlice) return;
  }
}

const Assignment* Repairer::Find(const AttachmentKey& key, uint64_t generation) const {
  const Assignment* const assignment = attachments_.assignments().Find(key);
  return assignment != nullptr && assignment->generation == generation ? assignment : nullptr;
}

void Repairer::MendHost(const Job& job) {
  const Assignment* const assignment = Find(job.key, job.generation);
  if (assignment == nullptr) return;
  const auto spec = SpecOf(*assignment);
  if (!spec.ok()) return;
  Mend(*assignment, *spec, job.plan, std::nullopt, known_[job.key].failing_on_node);
}

void Repairer::LookInto(const Assignment& assignment) {
  const auto spec = SpecOf(assignment);
  if (!spec.ok()) return;
  const auto host = hosts_.find(spec->host_link);
  if (host == hosts_.end()) return;
  const auto netns = settings_.open_netns(assignment.netns_path);
  if (!netns.ok()) return;
  const auto pod = edges_.links.ReadPod(*spec, netns->get());
  if (!pod.ok()) return;
  Known& known = known_[assignment.key];
  known.pod_mac = pod->mac;
  if (settings_.on_pod_mac) settings_.on_pod_mac(spec->host_link, pod->mac);
  AttachSpec seen = *spec;
  seen.pod_mac = pod->mac;
  // Differences that show without the pod have had their turn in this round.
  const LinkOperations plan = Without(PlanLink(seen, {.host = host->second, .pod = *pod}),
                                      PlanLink(seen, {.host = host->second}));
  known.look_into = !plan.empty();
  Mend(assignment, seen, plan, netns->get(), known.failing_in_pod);
}

void Repairer::Mend(const Assignment& assignment, const AttachSpec& spec,
                    const LinkOperations& plan, std::optional<int> pod_netns,
                    std::set<Part>& failing) {
  std::set<Part> still_failing;
  for (const LinkOperation& operation : plan) {
    const bool mendable = operation.part != Part::kPodLink;
    const absl::Status status = mendable
                                    ? edges_.links.Apply(spec, {operation}, pod_netns)
                                    : absl::FailedPreconditionError("only its pod can mend it");
    if (mendable && HasLeft(status)) return;
    // An operation that follows from another is no repair of its own.
    if (operation.found.empty() && status.ok()) continue;
    RepairCounts::OfPart& count = counts_.parts[static_cast<size_t>(operation.part)];
    if (status.ok()) {
      ++count.repaired;
      edges_.log.Warn("attachment_repaired", {{"link", spec.host_link},
                                              {"pod", PodName(assignment)},
                                              {"part", NameOf(operation.part)},
                                              {"found", operation.found}});
      continue;
    }
    ++count.failed;
    still_failing.insert(operation.part);
    if (!failing.contains(operation.part)) {
      edges_.log.Warn("attachment_repair_failed", {{"link", spec.host_link},
                                                   {"pod", PodName(assignment)},
                                                   {"part", NameOf(operation.part)},
                                                   {"found", operation.found},
                                                   {"error", status}});
    }
    if (!pod_netns) first_failure_ = operation.found;
  }
  failing = std::move(still_failing);
}

std::vector<Assignment> Repairer::Gone() const {
  std::vector<Assignment> gone;
  for (const auto& [key, known] : known_) {
    const Assignment* const assignment =
        known.gone ? attachments_.assignments().Find(key) : nullptr;
    if (assignment != nullptr) gone.push_back(*assignment);
  }
  return gone;
}

absl::Status Repairer::Health() const {
  if (unread_rounds_ >= kUnhealthyUnreadRounds) {
    return absl::UnavailableError(
        fmt::format("the attachments of this node cannot be read: {}", base::MessageOf(readable_)));
  }
  if (!node_failures_.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("this node does not forward: {}", base::MessageOf(node_failures_.front())));
  }
  int there = 0;
  int failing = 0;
  for (const auto& [key, known] : known_) {
    if (!known.gone) ++there;
    if (!known.failing_on_node.empty()) ++failing;
  }
  if (failing * 100 <= there * kUnhealthyPercent) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} of {} attachments of this node cannot be mended, such as: {}", failing, there,
                  first_failure_));
}

absl::Status Repairer::Check(const AttachmentKey& key, const CheckExpectation& expected,
                             int pod_netns) {
  const Assignment* const assignment = attachments_.assignments().Find(key);
  if (assignment == nullptr) return Told(key, {"this node has assigned it no address"});
  ASSIGN_OR_RETURN(const AttachSpec spec, attachments_.SpecOf(*assignment));
  std::vector<std::string> texts = CompareWithResult(*assignment, spec, expected);

  auto hosts = edges_.links.Read();
  if (!hosts.ok()) return absl::UnavailableError(hosts.status().message());
  ObservedLink observed{.host = (*hosts)[spec.host_link]};
  auto pod = edges_.links.ReadPod(spec, pod_netns);
  if (pod.ok()) {
    CompareWithResult(*pod, expected, texts);
    observed.pod = *std::move(pod);
  } else if (absl::IsFailedPrecondition(pod.status())) {
    texts.emplace_back(base::MessageOf(pod.status()));
  } else if (!absl::IsNotFound(pod.status())) {
    return absl::UnavailableError(pod.status().message());
  }
  for (LinkOperation& operation : PlanLink(spec, observed)) {
    if (!operation.found.empty()) texts.push_back(std::move(operation.found));
  }
  return Told(key, texts);
}

absl::Status Repairer::DataPath() const {
  const absl::Status health = Health();
  return health.ok() ? health : absl::DataLossError(health.message());
}

}  // namespace spoke::netagent
