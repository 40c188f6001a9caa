// The machine and a simulated Resource Manager in one process, on one simulated clock: calls take a
// little time each, and the clock jumps to whatever comes next.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ipam-server/cloud/azure/azure_state.h"
#include "tests/azure-sim/arm_model.h"
#include "tests/azure-sim/tokens.h"

namespace spoke::ipam::azure {

class AzureStateWorld {
 public:
  // Stands in front of Azure: what it returns is the answer; nullopt lets the request through.
  using Intercept =
      std::function<std::optional<absl::StatusOr<http::Response>>(const http::Request&)>;

  explicit AzureStateWorld(const azure_sim::SimSpec& spec, azure_sim::Knobs knobs = {},
                           Settings settings = {}, uint64_t seed = 1) {
    auto model = azure_sim::ArmModel::Build(spec, now_, std::move(knobs));
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    settings.endpoints.resource_manager = "https://management.azure.com";
    for (const auto& set : spec.scale_sets) settings.scale_sets.push_back(set.id());
    settings_ = std::move(settings);
    machine_ = std::make_unique<AzureState>(settings_, seed);
  }

  // The process is gone with all that it knew, and another one begins. What was sent was sent.
  void Restart() {
    machine_ = std::make_unique<AzureState>(settings_, /*seed=*/2);
    coming_.clear();
    answers_.clear();
    listings_.clear();
  }
  // How long nobody else may write, from each moment on.
  void set_write_margin(absl::Duration margin) { write_margin_ = margin; }

  azure_sim::ArmModel& arm() { return *model_; }
  AzureState& machine() { return *machine_; }
  absl::Time now() const { return now_; }
  void set_intercept(Intercept intercept) { intercept_ = std::move(intercept); }
  void set_latency(absl::Duration latency) { latency_ = latency; }
  // Every request that was sent, in order.
  const std::vector<std::pair<absl::Time, http::Request>>& sent() const { return sent_; }
  size_t CountSent(std::string_view method, std::string_view part = "") const {
    size_t count = 0;
    for (const auto& [when, request] : sent_) {
      if (request.method == method && request.url.find(part) != std::string::npos) ++count;
    }
    return count;
  }

  azure_sim::Instance& InstanceOf(std::string_view id) {
    azure_sim::Instance* instance = model_->world().FindInstance(id);
    EXPECT_NE(instance, nullptr) << id;
    return *instance;
  }

  // Makes a request for the VM with that id, by names.
  NicRequest Ask(const std::string& id, const std::vector<std::string>& wanted,
                 const std::vector<std::string>& removing = {}) {
    NicRequest request;
    request.node = {id, "vm-id"};
    request.nic_mac = InstanceOf(id).nics.at(0)->mac;
    request.instance = id;
    for (const std::string& name : wanted) request.wanted.push_back({name});
    for (const std::string& name : removing) request.removing.push_back({name, RangeOf(id, name)});
    return request;
  }
  // Returns what the fabric delivers to under that name now; if nothing, an address of nobody.
  ip::Prefix RangeOf(const std::string& id, const std::string& name) {
    model_->Advance(now_);
    for (const azure_sim::NicEntry& entry : InstanceOf(id).nics.at(0)->entries) {
      if (entry.name == name) return entry.range;
    }
    return ip::Prefix();
  }
  void Request(NicRequest request) { machine_->Request(std::move(request), now_); }

  // Lets everything happen until `done`, or nothing more would, or `most` is over.
  void RunUntil(const std::function<bool()>& done, absl::Duration most = absl::Hours(2)) {
    const absl::Time end = now_ + most;
    while (now_ <= end) {
      Collect();
      if (done()) return;
      Send();
      Collect();
      if (done()) return;
      absl::Time next = machine_->NextWake();
      if (!coming_.empty()) next = std::min(next, coming_.begin()->first);
      if (next > end) break;
      now_ = std::max(next, now_ + absl::Microseconds(1));
      Deliver();
    }
    now_ = std::max(now_, std::min(end, now_ + most));
  }
  void RunFor(absl::Duration time) {
    const absl::Time end = now_ + time;
    RunUntil([] { return false; }, time);
    now_ = end;
  }

  // Returns the answer to the node's only request.
  absl::StatusOr<NicAddresses> Answer(const std::string& id, absl::Duration most = absl::Hours(2)) {
    RunUntil([&] { return answers_.contains(id); }, most);
    const auto it = answers_.find(id);
    if (it == answers_.end()) return absl::InternalError("no answer");
    absl::StatusOr<NicAddresses> answer = std::move(it->second);
    answers_.erase(it);
    return answer;
  }
  absl::StatusOr<NicAddresses> AskAndWait(const std::string& id,
                                          const std::vector<std::string>& wanted,
                                          const std::vector<std::string>& removing = {}) {
    Request(Ask(id, wanted, removing));
    return Answer(id);
  }
  size_t answers() const { return answers_.size(); }
  bool has_answer(const std::string& id) const { return answers_.contains(id); }

  absl::StatusOr<std::vector<NicAddresses>> List() {
    machine_->List(now_);
    RunUntil([&] { return !listings_.empty(); });
    if (listings_.empty()) return absl::InternalError("no listing");
    // A move constructor makes GCC 12 warn of what is not initialized in an error.
    absl::StatusOr<std::vector<NicAddresses>> listing;
    listing = std::move(listings_.front());
    listings_.pop_front();
    return listing;
  }

  // Returns the names of ours that the fabric delivers to the VM now.
  std::set<std::string> OnWire(const std::string& id) {
    model_->Advance(now_);
    std::set<std::string> names;
    for (const azure_sim::NicEntry& entry : InstanceOf(id).nics.at(0)->entries) {
      if (entry.name.rfind("spoke-", 0) == 0) names.insert(entry.name);
    }
    return names;
  }

 private:
  void Send() {
    for (MachineCall& call : machine_->Next(now_, write_margin_)) {
      const std::string token =
          azure_sim::FormatToken({.principal = fmt::format("principal{}", call.principal),
                                  .issued = absl::UnixEpoch(),
                                  .expires = absl::InfiniteFuture()});
      call.request.headers.Add("Authorization", "Bearer " + token);
      sent_.emplace_back(now_, call.request);
      absl::Duration takes = latency_;
      std::optional<absl::StatusOr<http::Response>> answer;
      if (intercept_) answer = intercept_(call.request);
      if (!answer.has_value()) {
        http::Response response = model_->Handle(call.request, now_);
        if (response.status == 0) {
          answer = absl::DeadlineExceededError("no answer");
        } else {
          answer = std::move(response);
        }
      }
      if (!answer->ok()) takes = call.timeout;
      coming_.emplace(now_ + takes, std::pair(call.id, *std::move(answer)));
    }
  }
  void Deliver() {
    while (!coming_.empty() && coming_.begin()->first <= now_) {
      auto first = coming_.extract(coming_.begin());
      machine_->OnResponse(first.mapped().first, first.mapped().second, now_);
    }
  }
  void Collect() {
    for (MachineAnswer& answer : machine_->TakeAnswers()) {
      answers_.insert_or_assign(answer.node.name, std::move(answer.result));
    }
    for (auto& listing : machine_->TakeListings()) listings_.push_back(std::move(listing));
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Duration latency_ = absl::Milliseconds(150);
  absl::Duration write_margin_ = absl::InfiniteDuration();
  Settings settings_;
  std::unique_ptr<azure_sim::ArmModel> model_;
  std::unique_ptr<AzureState> machine_;
  Intercept intercept_;
  std::multimap<absl::Time, std::pair<uint64_t, absl::StatusOr<http::Response>>> coming_;
  std::vector<std::pair<absl::Time, http::Request>> sent_;
  std::map<std::string, absl::StatusOr<NicAddresses>> answers_;
  std::deque<absl::StatusOr<std::vector<NicAddresses>>> listings_;
};

// The set and the VMs of SmallSpec().
inline constexpr const char* kSetId =
    "/subscriptions/sub/resourcegroups/rg/providers/microsoft.compute/virtualmachinescalesets/"
    "pool";
inline std::string VmId(int number) { return fmt::format("{}/virtualmachines/{}", kSetId, number); }

inline std::vector<std::string> Names(const std::string& prefix, int count) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("spoke-{}{}", prefix, i));
  return names;
}
inline std::set<std::string> NamesOf(const NicAddresses& nic) {
  std::set<std::string> names;
  for (const IpConfiguration& entry : nic.configurations) names.insert(entry.name);
  return names;
}

}  // namespace spoke::ipam::azure
