#include "netagent/attach/attachments.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

// A link whose assignment the journal has lost is held under its own name, which is a hash of the
// key that a DEL will come with.
constexpr std::string_view kUnknown = "unknown:";
AttachmentKey UnknownKey(const std::string& host_link) {
  return {std::string(kUnknown) + host_link, "?"};
}

// The host link of an assignment, adopted or not.
std::string LinkOf(const AttachmentKey& key) {
  if (key.ifname == "?" && key.container_id.compare(0, kUnknown.size(), kUnknown) == 0) {
    return key.container_id.substr(kUnknown.size());
  }
  return HostLinkName(key);
}

// The pause between two attempts to take down what the kernel would not take down.
constexpr absl::Duration kUndoPause = absl::Seconds(5);

// The pause between two attempts to make a NIC's table: the device may come after its addresses.
constexpr absl::Duration kNicTablePause = absl::Seconds(10);

// The journal is compacted above this size when most of it is history.
constexpr size_t kCompactAboveBytes = 1 << 20;

// The kernel is short of something else than addresses: the same call may work later, but not
// because an address has come.
absl::Status WithoutExhaustion(const absl::Status& built) {
  if (!absl::IsResourceExhausted(built)) return built;
  return absl::UnavailableError(
      fmt::format("the kernel has run out of something: {}", base::MessageOf(built)));
}

// Returns the part of `sorted` that is in `block`.
std::span<const ip::Address> AddressesIn(const ip::Prefix& block,
                                         const std::vector<ip::Address>& sorted) {
  const auto begin = std::lower_bound(sorted.begin(), sorted.end(), block.base());
  const auto end = std::upper_bound(begin, sorted.end(), block.last());
  return {begin, end};
}

template <typename Take>
void ForEachAddress(const ip::Prefix& range, const Take& take) {
  for (uint64_t i = 0; i < range.size(); ++i) take(ip::Advance(range.base(), i));
}

std::set<ip::Address> RemovedBy(const node_api::DesiredState& desired) {
  std::set<ip::Address> removed;
  for (const ip::Prefix& range : desired.removed) {
    ForEachAddress(range, [&](const ip::Address& address) { removed.insert(address); });
  }
  return removed;
}

}  // namespace

Attachments::Attachments(Settings settings, const Edges& edges, std::unique_ptr<Journal> journal)
    : settings_(std::move(settings)),
      links_(edges.links),
      server_(edges.server),
      clock_(edges.clock),
      log_(edges.log),
      traffic_(edges.traffic),
      journal_(std::move(journal)),
      assignments_(settings_.cooldown, settings_.proof_required, settings_.clearing_required),
      nic_tables_(links_, log_) {}

absl::Status Attachments::Start(const std::vector<Event>& events) {
  ASSIGN_OR_RETURN(const Nic nic, links_.ReadNic(settings_.nic));
  mtu_ = settings_.mtu != 0 ? settings_.mtu : nic.mtu;
  first_nic_ = nic.mac;
  assignments_ =
      Assignments(settings_.cooldown, settings_.proof_required, settings_.clearing_required);
  unreachable_version_.reset();
  for (const Event& event : events) {
    assignments_.Apply(event);
    if (const auto* replaced = std::get_if<HoldingsReplaced>(&event)) {
      listing_ = replaced->holdings;
    }
  }
  assignments_.ClampCooldowns(clock_.Now());
  PrepareNicTables(listing_);
  RETURN_IF_ERROR(UndoUnfinished());
  RETURN_IF_ERROR(AdoptUnknownLinks());
  assignments_.EndCooldowns(clock_.Now());
  RETURN_IF_ERROR(
      base::Annotate(journal_->Compact(assignments_.Snapshot()), "compact the journal"));
  RETURN_IF_ERROR(SyncUnreachable());
  log_.Info("attachments_restored", {{"in_use", assignments_.Built().size()},
                                     {"attached", assignments_.Attached().size()}});
  return absl::OkStatus();
}

absl::Status Attachments::UndoUnfinished() {
  for (const Assignment& assignment : assignments_.Unfinished()) {
    RETURN_IF_ERROR(
        base::Annotate(Undo(HostLinkName(assignment.key)), "undo an unfinished attachment"));
    RETURN_IF_ERROR(Record(AssignmentReleased{assignment.key, clock_.Now(), /*unused=*/true}));
    log_.Info("attachment_undone",
              {{"container", assignment.key.container_id}, {"ifname", assignment.key.ifname}});
  }
  return absl::OkStatus();
}

absl::Status Attachments::AdoptUnknownLinks() {
  auto links = links_.Read();
  if (!links.ok()) return base::Annotate(links.status(), "list pod links");
  std::set<std::string> known;
  for (const Assignment& assignment : assignments_.Built()) known.insert(LinkOf(assignment.key));
  for (auto& [host_link, host] : *links) {
    if (known.contains(host_link)) continue;
    const AttachmentKey key = UnknownKey(host_link);
    log_.Warn("link_adopted", {{"link", host_link}, {"addresses", host.routes.size()}});
    std::sort(host.routes.begin(), host.routes.end());
    RETURN_IF_ERROR(Record(
        AssignmentBegun{{.key = key,
                         .addresses = std::move(host.routes),
                         .generation = static_cast<uint64_t>(absl::ToUnixMicros(clock_.Now())),
                         .since = clock_.Now()}}));
    RETURN_IF_ERROR(Record(AssignmentBuilt{key}));
  }
  return absl::OkStatus();
}

absl::StatusOr<Assignment> Attachments::Plan(const Assignment& asked) const {
  for (const PodTraffic* traffic : traffic_) RETURN_IF_ERROR(Explain(traffic->Ready()));
  absl::StatusOr<Assignment> assignment = assignments_.PlanAssignment(asked, clock_.Now());
  if (!assignment.ok()) return Explain(assignment.status());
  return assignment;
}

absl::StatusOr<AttachSpec> Attachments::Add(const Assignment& asked, int pod_netns,
                                            StepTimes* steps) {
  if (const Assignment* known = assignments_.Find(asked.key);
      known != nullptr && asked.attempt != 0 && known->attempt == asked.attempt &&
      assignments_.IsBuilt(asked.key)) {
    log_.Info("cni_add_repeated",
              {{"container", asked.key.container_id}, {"ifname", asked.key.ifname}});
    return SpecOf(*known);
  }
  ASSIGN_OR_RETURN(Assignment assignment, Plan(asked));
  ASSIGN_OR_RETURN(AttachSpec spec, SpecOf(assignment));
  if (settings_.trace_netns) {
    assignment.netns_trace = settings_.trace_netns(assignment.netns_path, pod_netns);
  }
  if (steps != nullptr) steps->Ended("plan", clock_.Now());
  RETURN_IF_ERROR(base::Annotate(Build(assignment, spec, pod_netns, steps),
                                 fmt::format("attach {}", asked.key.ifname)));
  AddEntries(assignment, news_.emplace_back().in_use);
  return spec;
}

absl::Status Attachments::Build(const Assignment& assignment, const AttachSpec& spec, int pod_netns,
                                StepTimes* steps) {
  const auto ended = [&](std::string_view step) {
    if (steps != nullptr) steps->Ended(step, clock_.Now());
  };
  RETURN_IF_ERROR(Record(AssignmentBegun{assignment}));
  ended("journal_intent");
  const absl::Status built = WithoutExhaustion(links_.Apply(spec, PlanLink(spec, {}), pod_netns));
  ended("kernel");
  absl::Status after = absl::OkStatus();
  if (built.ok()) {
    if (!traffic_.empty()) {
      const TrafficPod pod =
          TrafficPodOf(assignment, links_.IndexOf(spec.host_link), spec.host_link, spec);
      for (PodTraffic* traffic : traffic_) {
        if (after.ok()) after = WithoutExhaustion(traffic->Attach(pod));
      }
      ended("traffic");
    }
    if (after.ok()) after = Record(AssignmentBuilt{assignment.key});
    ended("journal_built");
    if (after.ok()) return after;
    if (const absl::Status undone = Undo(spec.host_link); !undone.ok()) {
      // The pod has the address still: it must not be assigned to another.
      undo_at_ = clock_.Now() + kUndoPause;
      return after;
    }
  }
  // If this cannot be written now, it is before the next event: a restart undoes it until then.
  const AssignmentReleased released{assignment.key, clock_.Now(), /*unused=*/true};
  if (!Record(released).ok()) {
    assignments_.Apply(released);
    unwritten_.emplace_back(released);
  }
  return built.ok() ? after : built;
}

TrafficPod Attachments::TrafficPodOf(const Assignment& assignment, uint32_t host_index,
                                     const std::string& host_link, const AttachSpec& spec) const {
  return {.host_link = host_link,
          .host_index = host_index,
          .addresses = assignment.addresses,
          // An adopted link had another key, of which its MAC was made.
          .pod_mac = spec.host_link == host_link ? std::optional(spec.pod_mac) : std::nullopt,
          .pod_namespace = assignment.pod.pod_namespace,
          .pod_name = assignment.pod.name,
          .pod_uid = assignment.pod.uid,
          .mtu = spec.mtu,
          .on_first_nic = spec.source_tables.empty(),
          .shaped = spec.bandwidth != cni::Bandwidth{},
          .bandwidth = spec.bandwidth,
          .internet = assignment.options.internet};
}

std::vector<TrafficPod> Attachments::TrafficPods() const {
  std::vector<TrafficPod> pods;
  for (const Assignment& assignment : assignments_.Built()) {
    const std::string host_link = LinkOf(assignment.key);
    const uint32_t host_index = links_.IndexOf(host_link);
    // The pod's namespace has gone, and its link with it; the DEL is still to come.
    if (host_index == 0) continue;
    // An adopted link may have neither known addresses nor a known MTU.
    const auto spec = SpecOf(assignment);
    pods.push_back(TrafficPodOf(assignment, host_index, host_link, spec.value_or(AttachSpec{})));
  }
  return pods;
}

absl::Status Attachments::TakeDown(const std::string& host_link) {
  const AttachSpec none = NoLink(host_link);
  return links_.Apply(none, PlanLink(none, {.host = links_.Recall(host_link)}), std::nullopt);
}

absl::Status Attachments::Undo(const std::string& host_link) {
  RETURN_IF_ERROR(TakeDown(host_link));
  absl::Status first_error;
  for (PodTraffic* traffic : traffic_) first_error.Update(traffic->Detach(host_link));
  return first_error;
}

absl::StatusOr<AttachSpec> Attachments::SpecOf(const Assignment& assignment) const {
  ASSIGN_OR_RETURN(AttachSpec spec,
                   PlanAttach(assignment.key, assignment.addresses, mtu_, assignment.options));
  ASSIGN_OR_RETURN(spec.source_tables, nic_tables_.Of(assignment.addresses, assignments_));
  return spec;
}

absl::Status Attachments::Del(const AttachmentKey& key) {
  const std::string host_link = HostLinkName(key);
  const Assignment* found = assignments_.Find(key);
  if (found == nullptr) found = assignments_.Find(UnknownKey(host_link));
  if (found == nullptr) return base::Annotate(TakeDown(host_link), "detach");
  return Release(Assignment(*found), host_link);
}

absl::Status Attachments::Release(const Assignment& assignment, const std::string& host_link) {
  RETURN_IF_ERROR(base::Annotate(Undo(host_link), "detach"));
  // The server has not heard of an assignment that was never built.
  const bool heard = assignments_.IsBuilt(assignment.key);
  RETURN_IF_ERROR(Record(AssignmentReleased{assignment.key, clock_.Now()}));
  if (!heard) return absl::OkStatus();
  node_api::AssignmentReport& news = news_.emplace_back();
  for (const ip::Address& address : assignment.addresses) {
    news.released.push_back({address, assignment.generation});
  }
  return absl::OkStatus();
}

absl::Status Attachments::DelAskedAt(const AttachmentKey& key, absl::Time asked) {
  // A file's time is that of the last timer interrupt, and so up to 10 ms behind the clock (HZ of
  // 100 and above); the journal keeps whole milliseconds.
  constexpr absl::Duration kClockSlack = absl::Milliseconds(11);
  const Assignment* found = assignments_.Find(key);
  if (found != nullptr && found->since > asked + kClockSlack) return absl::OkStatus();
  return Del(key);
}

absl::Status Attachments::CollectGarbage(const std::string& network,
                                         const std::vector<AttachmentKey>& valid, size_t& deleted) {
  // Links are compared by name, since an adopted link has nothing else.
  std::set<std::string> valid_links;
  for (const AttachmentKey& key : valid) valid_links.insert(HostLinkName(key));
  absl::Status first_error;
  for (const Assignment& assignment : assignments_.Built()) {
    if (assignment.network != network && !assignment.network.empty()) continue;
    if (assignment.since + kGarbageAge > clock_.Now()) continue;
    const std::string host_link = LinkOf(assignment.key);
    if (valid_links.contains(host_link)) continue;
    const absl::Status status = Release(assignment, host_link);
    first_error.Update(base::Annotate(
        status,
        fmt::format("container {} {}", assignment.key.container_id, assignment.key.ifname)));
    if (status.ok()) ++deleted;
  }
  return first_error;
}

std::vector<Holding> Attachments::NextListing(const node_api::DesiredState& desired) const {
  std::vector<Holding> listing;
  if (!desired.full) {
    const std::set<ip::Address> removed = RemovedBy(desired);
    for (const Holding& holding : listing_) {
      if (!removed.contains(holding.address)) listing.push_back(holding);
    }
  }
  std::set<ip::Address> listed;
  for (const Holding& holding : listing) listed.insert(holding.address);
  for (const node_api::DesiredConfiguration& added : desired.added) {
    ForEachAddress(added.range, [&](const ip::Address& address) {
      if (listed.insert(address).second) listing.push_back({address, added.pool, added.nic_mac});
    });
  }
  return listing;
}

std::vector<PoolRule> Attachments::NextRules(const node_api::DesiredState& desired,
                                             const std::vector<Holding>& listing) const {
  std::map<std::string, PoolRule> rules;
  // A pool that is not mentioned keeps its rule for as long as an address of it is here: to forget
  // it would open the pool to everybody.
  std::set<std::string> held;
  for (const Holding& holding : listing) held.insert(holding.pool);
  for (PoolRule& rule : assignments_.Rules()) {
    if (held.contains(rule.pool)) rules.insert_or_assign(rule.pool, std::move(rule));
  }
  for (const node_api::PoolState& pool : desired.pools) {
    rules.insert_or_assign(pool.name, PoolRule{pool.name, pool.cidr, pool.namespaces});
  }
  std::vector<PoolRule> next;
  for (auto& [name, rule] : rules) next.push_back(std::move(rule));
  return next;
}

std::vector<ip::Address> Attachments::ListedAnew(const node_api::DesiredState& desired) const {
  const std::set<ip::Address> removed = RemovedBy(desired);
  std::vector<ip::Address> withdrawn = assignments_.Withdrawn();
  const std::set<ip::Address> waiting(withdrawn.begin(), withdrawn.end());
  std::vector<ip::Address> anew;
  for (const node_api::DesiredConfiguration& added : desired.added) {
    ForEachAddress(added.range, [&](const ip::Address& address) {
      if (!waiting.contains(address)) return;
      const bool later_session = desired.full && !agreed_.contains(address);
      if (later_session || removed.contains(address)) anew.push_back(address);
    });
  }
  return anew;
}

absl::Status Attachments::OnDesired(const node_api::DesiredState& desired) {
  pools_ = desired.pools;
  std::vector<Holding> listing = NextListing(desired);
  std::vector<PoolRule> rules = NextRules(desired, listing);
  PrepareNicTables(listing);
  // This precedes the list, so that a crash in between errs on the side of not assigning.
  RETURN_IF_ERROR(BeginCooldowns(desired));
  if (listing != listing_ || rules != assignments_.Rules()) {
    RETURN_IF_ERROR(Record(HoldingsReplaced{listing, std::move(rules)}));
    listing_ = std::move(listing);
  }
  // This follows the list, so that a crash in between errs on the side of not assigning.
  if (WithdrawnSet anew{ListedAnew(desired), /*withdrawn=*/false}; !anew.addresses.empty()) {
    RETURN_IF_ERROR(Record(anew));
    for (const ip::Address& address : anew.addresses) agreed_.erase(address);
  }
  if (const absl::Status status = SyncUnreachable(); !status.ok()) {
    // The address can be assigned all the same; the next change tries again.
    log_.Warn("unreachable_routes_failed", {{"error", status}});
  }
  server_.Acknowledge(desired.version);
  return absl::OkStatus();
}

absl::Status Attachments::BeginCooldowns(const node_api::DesiredState& desired) {
  const absl::Time now = clock_.Now();
  const absl::Time unrecorded =
      desired.full ? settings_.unrecorded_use_end + settings_.cooldown : absl::InfinitePast();
  const std::vector<ip::Address> known = assignments_.Attached();  // Sorted.
  absl::Status status;
  for (const node_api::DesiredConfiguration& added : desired.added) {
    if (added.cooldown <= absl::ZeroDuration() && unrecorded <= now) continue;
    ForEachAddress(added.range, [&](const ip::Address& address) {
      absl::Time until = now + added.cooldown;
      const bool is_known = !AddressesIn(ip::Prefix::Host(address), known).empty();
      if (!is_known) until = std::max(until, unrecorded);
      if (!status.ok() || until <= now || assignments_.CooldownEnd(address) >= until) return;
      status = Record(CooldownSet{address, until});
    });
  }
  return status;
}

void Attachments::OnReclaim(const node_api::ReclaimRequest& request) {
  SayNews();  // An answer never overtakes what happened before it.
  WithdrawPlan plan = assignments_.PlanWithdraw(request.ranges);
  if (!plan.withdraw.empty() && !Record(WithdrawnSet{plan.withdraw}).ok()) {
    // What was agreed to before stays agreed; the rest is denied for now.
    const auto first_new = std::stable_partition(
        plan.agreed.begin(), plan.agreed.end(),
        [&](const ip::Prefix& block) { return AddressesIn(block, plan.withdraw).empty(); });
    plan.denied.insert(plan.denied.end(), first_new, plan.agreed.end());
    plan.agreed.erase(first_new, plan.agreed.end());
  }
  const std::vector<ip::Address> withdrawn = assignments_.Withdrawn();
  for (const ip::Prefix& block : plan.agreed) {
    for (const ip::Address& address : AddressesIn(block, withdrawn)) agreed_.insert(address);
  }
  log_.Info("reclaim_answered",
            {{"id", request.id}, {"agreed", plan.agreed.size()}, {"denied", plan.denied.size()}});
  server_.Answer(
      node_api::ReclaimAnswer{request.id, std::move(plan.agreed), std::move(plan.denied)});
}

void Attachments::OnEndAssignment(const node_api::EndAssignment& request) {
  for (const Assignment& assignment : assignments_.Built()) {
    const auto& addresses = assignment.addresses;
    if (assignment.generation != request.generation ||
        std::find(addresses.begin(), addresses.end(), request.address) == addresses.end()) {
      continue;
    }
    const absl::Status status = Release(assignment, LinkOf(assignment.key));
    const std::string what =
        fmt::format("{} of pod {}/{}, container {}", request.address.ToString(),
                    assignment.pod.pod_namespace, assignment.pod.name, assignment.key.container_id);
    if (status.ok()) {
      log_.Warn("assignment_ended", {{"assignment", what}, {"reason", request.reason}});
    } else {
      log_.Error("assignment_not_ended", {{"assignment", what}, {"error", status}});
    }
    return;
  }
}

void Attachments::OnInventory(const node_api::InventoryRequest& request) {
  SayNews();
  node_api::Inventory inventory{.id = request.id, .held = assignments_.Own(), .in_use = {}};
  for (Assignment& assignment : assignments_.Built()) {
    // The audit compares keys and generations; the pods would double the message.
    assignment.pod = {};
    AddEntries(assignment, inventory.in_use);
  }
  server_.Answer(inventory);
}

absl::Status Attachments::OnConflict(const ip::Address& address,
                                     const std::optional<ip::MacAddress>& other_mac) {
  const std::vector<ip::Address> attached = assignments_.Attached();
  if (!std::binary_search(attached.begin(), attached.end(), address)) {
    return absl::NotFoundError(
        fmt::format("{} is not an address of this node", address.ToString()));
  }
  const std::vector<ConflictNoted> known = assignments_.Conflicts();
  if (std::any_of(known.begin(), known.end(),
                  [&](const ConflictNoted& other) { return other.address == address; })) {
    server_.ReportConflict(address, other_mac);
    return absl::OkStatus();
  }
  const ConflictNoted conflict{address, other_mac};
  log_.Error("address_in_conflict", {{"address", address.ToString()},
                                     {"mac", other_mac ? other_mac->ToString() : "unknown"}});
  const absl::Status recorded = Record(conflict);
  // To assign it would be worse than to forget it at the next restart.
  if (!recorded.ok()) assignments_.Apply(conflict);
  server_.ReportConflict(address, other_mac);
  return recorded;
}

absl::Status Attachments::OnConflictOver(const ip::Address& address) {
  const std::vector<ConflictNoted> known = assignments_.Conflicts();
  if (std::none_of(known.begin(), known.end(),
                   [&](const ConflictNoted& conflict) { return conflict.address == address; })) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Record(ConflictOver{address}));
  log_.Info("address_conflict_over", {{"address", address.ToString()}});
  return absl::OkStatus();
}

absl::Status Attachments::OnProven(const std::vector<ip::Address>& addresses) {
  return Record(AddressesProven{addresses});
}

Greeting Attachments::BeginSession() {
  agreed_.clear();
  news_.clear();  // The greeting says it.
  Greeting greeting;
  for (const Assignment& assignment : assignments_.Built())
    AddEntries(assignment, greeting.hello.in_use);
  greeting.hello.cooldown = assignments_.Cooldown();
  for (const ConflictNoted& conflict : assignments_.Conflicts()) {
    greeting.conflicts.push_back({conflict.address, conflict.other_mac});
  }
  return greeting;
}

void Attachments::Tick() {
  std::vector<ip::Address> cooled = assignments_.EndCooldowns(clock_.Now());
  if (!cooled.empty()) news_.push_back({.cooled = std::move(cooled)});
  if (undo_at_ && *undo_at_ <= clock_.Now()) UndoLeftovers();
  if (nic_tables_at_ && *nic_tables_at_ <= clock_.Now()) PrepareNicTables(listing_);
  SayNews();
  if (const absl::Status status = SyncUnreachable(); !status.ok()) {
    log_.Warn("unreachable_routes_failed", {{"error", status}});
  }
}

std::optional<absl::Time> Attachments::NextWake() const {
  std::optional<absl::Time> next;
  for (const auto& wake : {assignments_.NextCooldownEnd(), undo_at_, nic_tables_at_}) {
    if (wake) next = next ? std::min(*next, *wake) : *wake;
  }
  return next;
}

void Attachments::SayNews() {
  for (const node_api::AssignmentReport& report : news_) server_.Report(report);
  news_.clear();
}

void Attachments::UndoLeftovers() {
  undo_at_.reset();
  if (const absl::Status status = UndoUnfinished(); !status.ok()) {
    log_.Warn("attachment_undo_failed", {{"error", status}});
    undo_at_ = clock_.Now() + kUndoPause;
  }
}

absl::Status Attachments::Record(const Event& event) {
  unwritten_.push_back(event);
  for (; !unwritten_.empty(); unwritten_.pop_front()) {
    const absl::Status status = journal_->Append(unwritten_.front());
    if (status.ok()) continue;
    unwritten_.pop_back();
    log_.Error("journal_write_failed", {{"error", status}});
    return absl::UnavailableError(std::string(status.message()));
  }
  assignments_.Apply(event);
  if (journal_->size() > kCompactAboveBytes) {
    if (const absl::Status status = journal_->Compact(assignments_.Snapshot()); !status.ok()) {
      log_.Warn("journal_compact_failed", {{"error", status}});
    }
  }
  return absl::OkStatus();
}

absl::Status Attachments::SyncUnreachable() {
  const uint64_t version = assignments_.attached_version();
  if (unreachable_version_ == version) return absl::OkStatus();
  RETURN_IF_ERROR(links_.SetUnreachable(assignments_.Attached()));
  unreachable_version_ = version;
  return absl::OkStatus();
}

void Attachments::PrepareNicTables(const std::vector<Holding>& listing) {
  nic_tables_.Prepare(first_nic_, listing);
  std::set<ip::MacAddress> missing = nic_tables_.Missing();
  nic_tables_at_.reset();
  if (!missing.empty()) nic_tables_at_ = clock_.Now() + kNicTablePause;
  assignments_.SetUnroutable(std::move(missing));
}

absl::Status Attachments::Explain(const absl::Status& why) const {
  if (!absl::IsResourceExhausted(why) && !absl::IsPermissionDenied(why)) return why;
  std::string text = fmt::format("{}: node {}", base::MessageOf(why), settings_.node_name);
  const auto counts = assignments_.CountByPool();
  if (counts.empty()) text += " has been given none yet";
  struct {
    uint32_t attached = 0;
    uint32_t unproven = 0;
  } all;
  for (const auto& [pool, count] : counts) {
    text += fmt::format(", pool {}: {} attached here, {} in use, {} in cooldown, {} available",
                        pool, count.attached(), count.in_use, count.cooldown, count.available);
    if (count.unusable > 0) text += fmt::format(", {} unusable", count.unusable);
    if (count.on_nic > 0) text += fmt::format(", {} on {} itself", count.on_nic, settings_.nic);
    if (count.unproven > 0) text += fmt::format(", {} unproven", count.unproven);
    all.attached += count.attached();
    all.unproven += count.unproven;
  }
  if (all.unproven > 0) {
    text += fmt::format("; {} of {} addresses wait for proof", all.unproven, all.attached);
    if (settings_.explain_unproven) text += fmt::format(": {}", settings_.explain_unproven());
  }
  if (const std::string missing = nic_tables_.ExplainMissing(); !missing.empty()) {
    text += "; " + missing;
  }
  for (const node_api::PoolState& pool : pools_) {
    text += fmt::format("; server: pool {} ({}): {} usable, {} attached, {} free", pool.name,
                        pool.cidr, pool.usable, pool.attached, pool.free);
  }
  return {why.code(), text};
}

}  // namespace spoke::netagent
