// What a VM's next PUT changes.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "ipam-server/cloud/azure/instance_work.h"

namespace spoke::ipam::azure {
namespace {

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return SameName(other, name); });
}

const EntryInModel* Find(const std::vector<EntryInModel>& present, std::string_view name) {
  const auto found = std::find_if(present.begin(), present.end(), [&](const EntryInModel& entry) {
    return SameName(entry.name, name);
  });
  return found == present.end() ? nullptr : &*found;
}

// Returns whether others have made one address of a block. A name of another family is another's by
// now: the NIC's picture was an old one.
bool IsMadeSingle(const EntryInModel& there, const IpConfiguration& block) {
  const int host = block.range.family() == ip::Family::kV4 ? 32 : 128;
  return there.family == block.range.family() && there.prefix_length == host &&
         static_cast<int>(block.range.length()) != host;
}

// Returns whether the model has it: others may have taken it out, or made one address of it.
bool Has(const std::vector<EntryInModel>& present, const IpConfiguration& wanted) {
  const EntryInModel* const entry = Find(present, wanted.name);
  return entry != nullptr && !IsMadeSingle(*entry, wanted);
}

}  // namespace

std::optional<std::vector<EntryInModel>> InstanceWork::EntriesInModel() {
  std::vector<EntryInModel> entries;
  if (is_flexible()) {
    const auto nic = DecodeNic(nic_body_);
    if (!nic.ok()) return std::nullopt;
    for (const NicConfiguration& entry : nic->configurations) {
      EntryInModel& found = entries.emplace_back(EntryInModel{.name = entry.name});
      if (entry.range.has_value()) {
        found.family = entry.range->family();
        found.prefix_length = static_cast<int>(entry.range->length());
      }
    }
    return entries;
  }
  if (!model_->nics.has_value()) return std::nullopt;
  for (const ModelNic& nic : *model_->nics) {
    if (!SameName(nic.name, nic_name_)) continue;
    for (const ModelConfiguration& entry : nic.configurations) {
      entries.push_back({entry.name, entry.family, entry.prefix_length});
      if (entry.primary) subnet_ = entry.subnet;
    }
    return entries;
  }
  return std::nullopt;
}

absl::Status InstanceWork::CheckBlocks() const {
  const bool allowed = is_flexible() ? settings_.blocks_on_nics : settings_.blocks_on_scale_sets;
  for (const WantedConfiguration& wanted : request_.wanted) {
    const int host = wanted.family == ip::Family::kV4 ? 32 : 128;
    if (wanted.prefix_length != host && !allowed) {
      return absl::FailedPreconditionError("blocks are not enabled for NICs such as that of VM " +
                                           id_.text());
    }
  }
  return absl::OkStatus();
}

// The model has names without addresses, and lacks what somebody else has taken out of it in a
// write that failed, while the NIC has it still.
bool InstanceWork::MustSeeNic(const std::vector<EntryInModel>& present) const {
  const std::vector<IpConfiguration>& kept = request_.configurations;
  return !shown_.has_value() &&
         (std::any_of(request_.removing.begin(), request_.removing.end(),
                      [&](const auto& entry) { return Find(present, entry.name) != nullptr; }) ||
          !std::all_of(kept.begin(), kept.end(),
                       [&](const auto& entry) { return Has(present, entry); }));
}

// Whoever asked gives back what it did not know of once it is told; until then nothing more fits.
// Where it knows all, it hears that it asks for too much.
void InstanceWork::LeaveOutWhatDoesNotFit(const std::vector<EntryInModel>& present,
                                          NicChange& change) {
  const size_t stays = present.size() - change.remove.size();
  if (stays + change.add.size() <= kMaxConfigurations) return;
  const bool knows_all = std::all_of(present.begin(), present.end(), [&](const auto& entry) {
    const auto is_it = [&](const auto& known) { return SameName(known.name, entry.name); };
    return !absl::StartsWithIgnoreCase(entry.name, settings_.name_prefix) ||
           std::any_of(request_.configurations.begin(), request_.configurations.end(), is_it) ||
           std::any_of(request_.removing.begin(), request_.removing.end(), is_it) ||
           std::any_of(request_.wanted.begin(), request_.wanted.end(), is_it);
  });
  if (knows_all) return;
  const size_t fit = stays >= kMaxConfigurations ? 0 : kMaxConfigurations - stays;
  for (size_t i = fit; i < change.add.size(); ++i) {
    std::erase_if(request_.wanted,
                  [&](const auto& wanted) { return SameName(wanted.name, change.add[i].name); });
  }
  change.add.resize(fit);
}

NicChange InstanceWork::PlanChange(const std::vector<EntryInModel>& present,
                                   const WorkContext& context) {
  NicChange change{.nic_name = nic_name_, .add = {}, .remove = {}, .prefix = settings_.name_prefix};
  for (const IpConfiguration& entry : request_.removing) {
    // `shown_` without a value names none that is present.
    if (shown_.has_value() && Contains(shown_->removable, entry.name) &&
        Find(present, entry.name) != nullptr) {
      change.remove.push_back(entry.name);
    }
  }
  for (const WantedConfiguration& wanted : request_.wanted) {
    const bool there = Find(present, wanted.name) != nullptr;
    if (cleaning_) {
      if (there && !Contains(usable_, wanted.name)) change.remove.push_back(wanted.name);
    } else if (!there) {
      change.add.push_back({wanted.name, wanted.family, wanted.prefix_length});
    }
  }
  LeaveOutWhatDoesNotFit(present, change);
  // A full subnet has room again once something is taken off: that is not held up by what waits.
  if (!context.full_subnet.empty() && !change.add.empty() && !change.remove.empty()) {
    change.add.clear();
    failure_ = absl::ResourceExhaustedError(context.full_subnet);
  }
  // Our write would take off the NIC what the model lacks, under a pod. What comes back under its
  // name keeps its address.
  for (const IpConfiguration& entry : request_.configurations) {
    if (!shown_.has_value() || !Contains(shown_->kept, entry.name) || Has(present, entry)) continue;
    change.remove.push_back(entry.name);
    change.add.push_back({entry.name, entry.range.family(), entry.range.length()});
  }
  return change;
}

absl::StatusOr<http::Request> InstanceWork::BuildPut(const NicChange& change) const {
  http::Request put;
  put.method = "PUT";
  const std::string& base = settings_.endpoints.resource_manager;
  if (is_flexible()) {
    put.url = ResourceUrl(base, nics_.at(nic_index_));
    auto body = BuildNicPut(nic_body_, change);
    if (!body.ok()) return body.status();
    put.body = *std::move(body);
  } else {
    put.url = ResourceUrl(base, id_,
                          settings_.blocks_on_scale_sets ? kComputeBlocksVersion
                                                         : InstancePutVersion(*model_, change));
    auto body = BuildInstancePut(*model_, change);
    if (!body.ok()) return body.status();
    put.body = *std::move(body);
  }
  put.headers.Add("Content-Type", "application/json");
  if (!etag_.empty()) put.headers.Add("If-Match", etag_);
  return put;
}

void InstanceWork::Plan(const WorkContext& context) {
  if (!is_flexible() && nic_name_.empty()) {
    if (!model_->nics.has_value() || model_->nics->size() != 1) {
      ReadNic(Reading::kBeforePlan, absl::InfinitePast(), context);
      return;
    }
    nic_name_ = model_->nics->front().name;
  }
  const auto present = EntriesInModel();
  if (!present.has_value()) {
    nic_name_.clear();
    Retry(absl::UnavailableError("the model of VM " + id_.text() + " lacks the NIC"), context);
    return;
  }
  if (absl::Status blocks = CheckBlocks(); !blocks.ok()) {
    Finish(std::move(blocks), context);
    return;
  }
  if (MustSeeNic(*present)) {
    ReadNicWithOthers(Reading::kBeforePlan, context);
    return;
  }
  const NicChange change = PlanChange(*present, context);
  const bool nothing = change.add.empty() && change.remove.empty();
  if (nothing && !model_failed_ && !forced_) {
    AfterOperation(context);
    return;
  }
  if (nothing && !cleaning_ && !forced_) {
    // It failed, but perhaps not with what is ours: the NIC tells.
    ReadNic(Reading::kBack, absl::InfinitePast(), context);
    return;
  }
  auto put = BuildPut(change);
  if (!put.ok()) {
    const bool limit = absl::IsResourceExhausted(put.status());
    GiveUp(limit ? put.status() : absl::FailedPreconditionError(put.status().message()),
           kRejectedPark, context);
    return;
  }
  put_ = *std::move(put);
  stage_ = WorkStage::kPut;
  not_before_ = absl::InfinitePast();
}

}  // namespace spoke::ipam::azure
