#include "ipam-server/cloud/azure/sweep.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "ipam-server/cloud/azure/instance_work.h"
#include "ipam-server/cloud/azure/resources/list_page.h"
#include "ipam-server/cloud/azure/scale_set.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

// The retries of one page.
constexpr int kMostRetries = 4;
// A scale set has a thousand instances; even pages of one NIC would not come to this.
constexpr int kMostPages = 20000;
constexpr int kNotFound = 404;

}  // namespace

Sweep::Sweep(const Settings& settings, ResourceId scale_set, bool flexible, absl::Time asked)
    : settings_(settings), scale_set_(std::move(scale_set)), flexible_(flexible), asked_(asked) {
  Start(flexible ? Step::kVms : Step::kNics);
}

void Sweep::Start(Step step) {
  const std::string& base = settings_.endpoints.resource_manager;
  step_ = step;
  switch (step) {
    case Step::kScaleSet:
      url_ = ResourceUrl(base, scale_set_);
      return;
    case Step::kVms:
      url_ = FlexibleMachinesUrl(base, scale_set_);
      return;
    case Step::kNics:
      url_ = flexible_ ? GroupNicsUrl(base, scale_set_) : NicsUrl(base, scale_set_);
      return;
  }
}

Sweep::NextCall Sweep::Next() const {
  NextCall call;
  call.request.url = url_;
  call.request.headers.Add("Accept", "application/json");
  switch (step_) {
    case Step::kScaleSet:
      call.kind = CallKind::kGetScaleSet;
      break;
    case Step::kVms:
      call.kind = CallKind::kListVms;
      break;
    case Step::kNics:
      call.kind = flexible_ ? CallKind::kListNics : CallKind::kListInstanceNics;
      break;
  }
  return call;
}

void Sweep::Fail(const absl::Status& status) {
  if (++retries_ > kMostRetries) Abort(status);
}

void Sweep::Abort(const absl::Status& status) {
  result_ = absl::UnavailableError(
      fmt::format("list the NICs of {}: {}", scale_set_.text(), base::MessageOf(status)));
  done_ = true;
}

// A scale set made by AKS answers 404 to the list of its NICs when it has no instances.
absl::Status Sweep::OnMissing(const ArmError& error) {
  if (flexible_ || step_ != Step::kNics || pages_ > 0) {
    return absl::UnavailableError(Describe(error));
  }
  Start(Step::kScaleSet);
  return absl::OkStatus();
}

absl::Status Sweep::OnScaleSet(std::string_view body) {
  ASSIGN_OR_RETURN(const ScaleSet set, DecodeScaleSet(body));
  if (set.capacity != 0) {
    return absl::UnavailableError("it lists no NICs, but is to have instances");
  }
  done_ = true;
  return absl::OkStatus();
}

absl::Status Sweep::OnVm(const nlohmann::json& item) {
  ASSIGN_OR_RETURN(const ResourceId id, ResourceId::Parse(json_text::StringMember(item, "id")));
  vms_.insert(id.text());
  return absl::OkStatus();
}

// What a NIC that comes or goes holds is unknown for a moment. That spoils the listing, but not
// what is read of the others.
absl::Status Sweep::OnNic(const nlohmann::json& item) {
  auto nic = DecodeNic(item);
  const bool unknown = absl::IsFailedPrecondition(nic.status());
  if (!unknown) RETURN_IF_ERROR(nic.status());
  nic = ReadWhole(std::move(nic));
  if (!nic.ok()) {
    incomplete_ = nic.status();
    return absl::OkStatus();
  }
  const std::optional<ResourceId> vm = flexible_ ? nic->machine : nic->id.Parent();
  if (!vm.has_value() || (flexible_ && !vms_.contains(vm->text()))) return absl::OkStatus();
  // Pages shift while the list changes, and a page may be read twice.
  std::vector<NicResource>& nics = nics_[vm->text()];
  nics.erase(std::remove_if(nics.begin(), nics.end(),
                            [&](const NicResource& other) { return other.id == nic->id; }),
             nics.end());
  nics.push_back(*std::move(nic));
  return absl::OkStatus();
}

absl::Status Sweep::OnPage(std::string_view body) {
  ASSIGN_OR_RETURN(const ListPage page, DecodeListPage(body));
  std::string next;
  if (!page.next_link.empty()) {
    ASSIGN_OR_RETURN(next, FollowUrl(settings_.endpoints.resource_manager, page.next_link));
  }
  for (const nlohmann::json& item : page.items) {
    RETURN_IF_ERROR(step_ == Step::kVms ? OnVm(item) : OnNic(item));
  }
  ++pages_;
  if (!next.empty()) {
    if (pages_ >= kMostPages || !followed_.insert(next).second) {
      return absl::UnavailableError("its pages go round in circles");
    }
    url_ = next;
  } else if (step_ == Step::kVms) {
    Start(Step::kNics);
  } else {
    Finish();
  }
  return absl::OkStatus();
}

void Sweep::Finish() {
  for (const std::string& vm : vms_) {
    if (!nics_.contains(vm)) incomplete_ = absl::UnavailableError("VM " + vm + " shows no NIC");
  }
  if (nics_.empty() && incomplete_.ok()) {
    Start(Step::kScaleSet);  // An empty list is believed only when the set is to be empty.
  } else if (!incomplete_.ok()) {
    Abort(incomplete_);
  } else {
    done_ = true;
  }
}

void Sweep::OnResponse(const http::Response& response, absl::Time now) {
  absl::Status status;
  if (response.status == kNotFound) {
    status = OnMissing(DecodeArmError(response, now));
  } else if (response.status != 200) {
    status = absl::UnavailableError(Describe(DecodeArmError(response, now)));
  } else if (step_ == Step::kScaleSet) {
    status = OnScaleSet(response.body);
  } else {
    status = OnPage(response.body);
  }
  if (status.ok()) {
    retries_ = 0;
  } else {
    Fail(status);
  }
}

}  // namespace spoke::ipam::azure
