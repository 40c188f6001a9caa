#include "netagent/shaping/queues/tc_shaper.h"

#include <map>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "netagent/shaping/class_changes.h"
#include "netagent/shaping/queues/layout.h"
#include "netagent/shaping/shaping_check.h"

namespace spoke::netagent {
namespace {

// Returns the status that Shaper promises: the caller can do nothing about the difference.
absl::Status AsPromised(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
      return status;
    default:
      return absl::InternalError(fmt::format("shaping: {}", base::MessageOf(status)));
  }
}

std::set<uint32_t> PodLinksOf(const ShapingTables& tables) {
  std::set<uint32_t> links;
  for (const ShapedFlow& flow : tables.flows) links.insert(flow.host_index);
  return links;
}

std::set<uint32_t> ScopedLinksOf(const ShapingTables& tables) {
  std::set<uint32_t> links;
  for (const ShapedFlow& flow : tables.flows) {
    if (flow.scope != kWholeLink) links.insert(flow.host_index);
  }
  return links;
}

// Returns the kinds of links as the programs know them.
std::map<uint32_t, uint32_t> KindsOf(const ShapedLinks::Wanted& links,
                                     const std::set<uint32_t>& scoped,
                                     const ShapedLinks::Ends& ends) {
  std::map<uint32_t, uint32_t> kinds;
  for (const int32_t queues : {ends.from_pods, ends.to_pods}) {
    kinds[static_cast<uint32_t>(queues)] = SPOKE_QUEUES;
  }
  for (const auto& [link, kind] : links) {
    if (kind == LinkKind::kOuter) kinds[link] = SPOKE_OUTER_LINK;
  }
  for (const uint32_t link : scoped) kinds[link] = SPOKE_SCOPED_LINK;
  return kinds;
}

std::vector<ShapeClass> AsKept(const std::vector<ShapeClass>& tree) {
  std::vector<ShapeClass> kept;
  kept.reserve(tree.size());
  for (const ShapeClass& one : tree) kept.push_back(AsKept(one));
  return kept;
}

bool IsEmpty(const ShapingTables& tables) {
  return !tables.ready && tables.flows.empty() && tables.trees[0].empty() &&
         tables.trees[1].empty();
}

size_t At(TrafficDirection direction) { return static_cast<size_t>(direction); }

}  // namespace

absl::StatusOr<std::unique_ptr<TcShaper>> TcShaper::Create() {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  return std::unique_ptr<TcShaper>(new TcShaper(std::move(socket)));
}

bool TcShaper::IsThere() const { return devices_[0].index != 0 || devices_[1].index != 0; }

ShapedLinks::Ends TcShaper::ends() const {
  return {.from_pods = devices_[At(TrafficDirection::kEgress)].index,
          .to_pods = devices_[At(TrafficDirection::kIngress)].index};
}

ShapedLinks::Wanted TcShaper::LinksFor(const ShapingTables& tables) const {
  ShapedLinks::Wanted links;
  for (const uint32_t link : PodLinksOf(tables)) links.emplace(link, LinkKind::kPod);
  // Where the whole link is limited, it does not matter what addresses become of those in a packet.
  // Where the scopes wait for flows, so do the programs.
  const bool waits = tables.ready && !tables.scopes.empty();
  if (ScopedLinksOf(tables).empty() && !waits) return links;
  for (const uint32_t link : outer_) links.emplace(link, LinkKind::kOuter);
  return links;
}

absl::Status TcShaper::Load(uint32_t found) {
  absl::StatusOr<ShapeMaps> maps = ShapeMaps::Load(found);
  if (absl::IsUnimplemented(maps.status())) {
    return base::Annotate(maps.status(),
                          "the kernel lacks BPF (CONFIG_BPF_SYSCALL), or some of it");
  }
  if (!maps.ok()) return maps.status();
  maps_ = *std::move(maps);
  return absl::OkStatus();
}

absl::Status TcShaper::Observe(const ShapingTables& tables) {
  uint32_t found = 0;
  for (const TrafficDirection direction : kBothDirections) {
    ASSIGN_OR_RETURN(devices_.at(At(direction)), ReadQueueDevice(socket_, direction));
    if (found == 0) found = devices_.at(At(direction)).classifier;
  }
  if (!maps_ && found != 0) {
    RETURN_IF_ERROR(Load(found));
  } else if (maps_ && !maps_known_) {
    RETURN_IF_ERROR(maps_->Refresh());
  }
  maps_known_ = true;
  RETURN_IF_ERROR(
      links_.Read(socket_, maps_ ? &maps_->programs() : nullptr, ends(), PodLinksOf(tables)));
  ASSIGN_OR_RETURN(outer_, ReadOuterLinks(socket_));
  known_ = true;
  return absl::OkStatus();
}

absl::StatusOr<size_t> TcShaper::MendDevices() {
  size_t mended = 0;
  for (QueueDevice& device : devices_) {
    ASSIGN_OR_RETURN(const size_t here, MendQueueDevice(socket_, maps_->programs(), device));
    mended += here;
  }
  return mended;
}

absl::StatusOr<size_t> TcShaper::BeginDevices() {
  absl::StatusOr<size_t> mended = MendDevices();
  if (mended.ok()) {
    const absl::Status probed = ProbeDiverting(socket_, maps_->programs(), devices_[0]);
    if (probed.ok()) return mended;
    mended = probed;
  }
  std::vector<netlink::Request> requests;
  for (const QueueDevice& device : devices_) {
    if (device.index != 0) requests.push_back(netlink::DeleteLink(device.index));
  }
  // The first error says more.
  SendAll(socket_, requests).IgnoreError();
  return mended;
}

// Changes the classes. Packets that waited in what is removed are dropped with it, and a flow that
// moves to where its class comes again passes unshaped for that moment: it has no class to name.
absl::StatusOr<size_t> TcShaper::ChangeClasses(const ShapingTables& tables, const Blocks& blocks) {
  std::array<ClassChanges, 2> changes;
  std::array<std::set<ShapeClassId>, 2> later;
  size_t differences = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    changes.at(i) = PlanClassChanges(devices_.at(i).classes, AsKept(tables.trees.at(i)));
    differences += changes.at(i).differences;
    for (const ClassChange& change : changes.at(i).again) later.at(i).insert(change.wanted.id);
    RETURN_IF_ERROR(SetClasses(socket_, devices_.at(i), changes.at(i).first));
  }
  RETURN_IF_ERROR(maps_->PutBuckets(tables.buckets));
  for (ShapedFlow flow : tables.flows) {
    if (later.at(At(flow.direction)).count(flow.class_id) != 0) flow.class_id = 0;
    RETURN_IF_ERROR(maps_->PutFlow(flow));
  }
  RETURN_IF_ERROR(maps_->SetScopes(blocks));
  const ShapedLinks::Wanted wanted = LinksFor(tables);
  RETURN_IF_ERROR(maps_->SetLinks(KindsOf(wanted, ScopedLinksOf(tables), ends())));
  ASSIGN_OR_RETURN(const size_t links, links_.Set(socket_, maps_->programs(), ends(), wanted));
  RETURN_IF_ERROR(maps_->KeepFlows(tables.flows));
  for (size_t i = 0; i < changes.size(); ++i) {
    RETURN_IF_ERROR(RemoveClasses(socket_, devices_.at(i), changes.at(i).removed));
    RETURN_IF_ERROR(SetClasses(socket_, devices_.at(i), changes.at(i).again));
    devices_.at(i).classes = AsKept(tables.trees.at(i));
  }
  for (const ShapedFlow& flow : tables.flows) RETURN_IF_ERROR(maps_->PutFlow(flow));
  RETURN_IF_ERROR(maps_->KeepBuckets(tables.buckets));
  return differences + links;
}

absl::StatusOr<size_t> TcShaper::Reconcile(const ShapingTables& tables, const Blocks& blocks) {
  if (!known_) RETURN_IF_ERROR(Observe(tables));
  if (!IsThere() && !maps_ && IsEmpty(tables)) return size_t{0};
  known_ = maps_known_ = false;  // Nothing is known until all of it is done.
  size_t mended = 0;
  if (!IsThere() && !maps_) {
    RETURN_IF_ERROR(Load(0));
    const absl::StatusOr<size_t> begun = BeginDevices();
    if (!begun.ok()) {
      maps_.reset();
      return begun;
    }
    mended = *begun;
  } else {
    if (!maps_) RETURN_IF_ERROR(Load(0));
    ASSIGN_OR_RETURN(mended, MendDevices());
  }
  ASSIGN_OR_RETURN(const size_t changed, ChangeClasses(tables, blocks));
  known_ = maps_known_ = true;
  return mended + changed;
}

absl::Status TcShaper::Apply(const ShapingTables& tables) {
  RETURN_IF_ERROR(CheckShapingTables(tables));
  const bool same_scopes =
      applied_ && applied_->scopes == tables.scopes && applied_->learned == tables.learned;
  absl::StatusOr<Blocks> blocks = same_scopes ? blocks_ : ScopeBlocks(tables);
  if (!blocks.ok()) return blocks.status();
  if (known_ && applied_ == tables) return absl::OkStatus();
  const absl::StatusOr<size_t> changed = Reconcile(tables, *blocks);
  if (!changed.ok()) return AsPromised(changed.status());
  applied_ = tables;
  blocks_ = *std::move(blocks);
  return absl::OkStatus();
}

absl::StatusOr<ShapingReading> TcShaper::Read() {
  if (!known_) {
    const absl::Status observed = Observe(applied_.value_or(ShapingTables{}));
    if (!observed.ok()) return AsPromised(observed);
  }
  ShapingReading reading;
  if (!maps_) return reading;
  for (const TrafficDirection direction : kBothDirections) {
    const auto classes = ReadClasses(socket_, direction, devices_.at(At(direction)));
    // The device was deleted; Repair() is still to come.
    if (absl::IsNotFound(classes.status())) continue;
    if (!classes.ok()) return AsPromised(classes.status());
    reading.classes.insert(reading.classes.end(), classes->begin(), classes->end());
  }
  const auto flows = maps_->ReadFlows();
  if (!flows.ok()) return AsPromised(flows.status());
  reading.flows = *flows;
  return reading;
}

absl::StatusOr<size_t> TcShaper::Repair() {
  if (!applied_ || (!maps_ && IsEmpty(*applied_))) return size_t{0};
  known_ = false;
  const absl::StatusOr<size_t> mended = Reconcile(*applied_, blocks_);
  if (!mended.ok()) return AsPromised(mended.status());
  return mended;
}

absl::Status TcShaper::DoRemove() {
  known_ = false;
  RETURN_IF_ERROR(Observe(applied_.value_or(ShapingTables{})));
  known_ = false;
  applied_.reset();
  RETURN_IF_ERROR(links_.Clear(socket_));
  std::vector<netlink::Request> requests;
  for (const QueueDevice& device : devices_) {
    if (device.index != 0) requests.push_back(netlink::DeleteLink(device.index));
  }
  RETURN_IF_ERROR(SendAll(socket_, requests));
  maps_.reset();
  return absl::OkStatus();
}

absl::Status TcShaper::Remove() { return AsPromised(DoRemove()); }

}  // namespace spoke::netagent
