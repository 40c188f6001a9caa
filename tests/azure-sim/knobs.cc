#include "tests/azure-sim/knobs.h"

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "fmt/core.h"
#include "nlohmann/json.hpp"

namespace spoke::azure_sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, kPolicies> kNames = {
    "UpdateVMScaleSetVMs",
    "DeleteVMScaleSetVMs",
    "GetVMScaleSetVMs",
    "CreateVMScaleSet",
    "UpdateVMScaleSet",
    "DeleteVMScaleSet",
    "LowCostGetVMScaleSet",
    "HighCostGetVMScaleSet",
    "UpdateVM",
    "CreateVM",
    "DeleteVM",
    "LowCostGetVM",
    "HighCostGetVM",
    "GetOperation",
    "VMScaleSetVMViews",
    "NetworkRead",
    "NetworkWrite",
};

// The names and places of all knobs except the tables of limits, so that reading, writing and
// refusing unknown ones cannot differ.
template <typename K, typename V>
void VisitTime(K& k, V& visit) {
  visit("latency_least_s", k.latency.least);
  visit("latency_most_s", k.latency.most);
  visit("latency_slow_share", k.latency.slow_share);
  visit("latency_slowest_s", k.latency.slowest);
  visit("delete_latency_least_s", k.delete_latency.least);
  visit("delete_latency_most_s", k.delete_latency.most);
  visit("nic_lag_s", k.nic_lag);
  visit("list_lag_s", k.list_lag);
  visit("imds_lag_s", k.imds_lag);
  visit("free_after_removal_s", k.free_after_removal);
  visit("free_after_delete_s", k.free_after_delete);
  visit("operation_kept_s", k.operation_kept);
}

template <typename K, typename V>
void VisitShape(K& k, V& visit) {
  visit("require_token", k.require_token);
  visit("page_size", k.page_size);
  visit("expose_throttle_headers", k.expose_throttle_headers);
  visit("repeat_headers", k.repeat_headers);
  visit("network_global_limits", k.network_global_limits);
  visit("network_async_notification", k.network_async_notification);
  visit("throttle_without_error", k.throttle_without_error);
  visit("retry_after", k.retry_after);
  visit("unknown_instance_status", k.unknown_instance_status);
  visit("retry_after_on_compute_operations", k.retry_after_on_compute_operations);
  visit("operation_url_bytes", k.operation_url_bytes);
  visit("vary_id_case", k.vary_id_case);
  visit("null_network_profile_while_deleting", k.null_network_profile_while_deleting);
  visit("subnet_ip_configurations_most", k.subnet_ip_configurations_most);
  visit("subnet_lists_ip_configurations", k.subnet_lists_ip_configurations);
  visit("shuffle_ip_configurations", k.shuffle_ip_configurations);
  visit("empty_set_has_no_nic_list", k.empty_set_has_no_nic_list);
  visit("on_concurrent_write", k.on_concurrent_write);
  visit("full_subnet", k.full_subnet);
  visit("most_ip_configurations", k.most_ip_configurations);
  visit("primary_counts", k.primary_counts);
  visit("reads_image_references", k.reads_image_references);
  visit("set_writes_bump_instance_etags", k.set_writes_bump_instance_etags);
  visit("reimage_keeps_addresses", k.reimage_keeps_addresses);
  visit("most_nics", k.most_nics);
  visit("compute_blocks", k.compute_blocks);
}

template <typename K, typename V>
void VisitFaults(K& k, V& visit) {
  visit("failed_operations", k.failed_operations);
  visit("failed_after_write", k.failed_after_write);
  visit("canceled_operations", k.canceled_operations);
  visit("failed_operation_code", k.failed_operation_code);
  visit("server_errors", k.server_errors);
  visit("server_error_status", k.server_error_status);
  visit("lost_responses", k.lost_responses);
  visit("lost_reads", k.lost_reads);
  visit("foreign_writes", k.foreign_writes);
  visit("foreign_writes_at_put", k.foreign_writes_at_put);
  visit("conflicts", k.conflicts);
  visit("network_busy", k.network_busy);
  visit("nic_list_empty", k.nic_list_empty);
  visit("nic_list_null", k.nic_list_null);
  visit("list_omits", k.list_omits);
  visit("deny_reads", k.deny_reads);
  visit("deny_writes", k.deny_writes);
  visit("deny_join", k.deny_join);
  visit("scope_locked", k.scope_locked);
  visit("tokens_valid_from", k.tokens_valid_from);
}

template <typename K, typename V>
void VisitMetadataAndLimits(K& k, V& visit) {
  visit("token_lifetime_s", k.token_lifetime);
  visit("imds_per_second", k.imds_per_second);
  visit("identity_per_second", k.identity_per_second);
  visit("imds_gone", k.imds_gone);
  visit("imds_fails_status", k.imds_fails_status);
  visit("identity_missing", k.identity_missing);
  visit("local_views_expand_blocks", k.local_views_expand_blocks);
  visit("throttle", k.limits.enabled);
  visit("compute_phase_s", k.limits.compute_phase);
  visit("network_window_s", k.limits.network_window);
  visit("network_phase_s", k.limits.network_phase);
  visit("front_door_reads", k.limits.reads.most);
  visit("front_door_reads_per_s", k.limits.reads.per_second);
  visit("front_door_writes", k.limits.writes.most);
  visit("front_door_writes_per_s", k.limits.writes.per_second);
  visit("front_door_deletes", k.limits.deletes.most);
  visit("front_door_deletes_per_s", k.limits.deletes.per_second);
  visit("front_door_global_factor", k.limits.global_factor);
}

template <typename K, typename V>
void VisitAll(K& k, V& visit) {
  VisitTime(k, visit);
  VisitShape(k, visit);
  VisitFaults(k, visit);
  VisitMetadataAndLimits(k, visit);
}

constexpr std::array<std::string_view, 3> kRetryAfters = {"seconds", "http-date", "absent"};
constexpr std::array<std::string_view, 2> kConcurrent = {"conflict", "preempt"};
constexpr std::array<std::string_view, 2> kFull = {"sync", "async"};
constexpr std::array<std::string_view, 3> kBlocks = {"present", "no-version", "no-field"};

template <typename E>
constexpr const auto& WordsOf() {
  if constexpr (std::is_same_v<E, RetryAfter>) {
    return kRetryAfters;
  } else if constexpr (std::is_same_v<E, OnConcurrentWrite>) {
    return kConcurrent;
  } else if constexpr (std::is_same_v<E, ComputeBlocks>) {
    return kBlocks;
  } else {
    return kFull;
  }
}

struct Reader {
  template <typename T>
  void operator()(const char* name, T& field) {
    const auto found = values.find(name);
    if (found == values.end()) return;
    if (!Read(*found, &field) && status.ok()) {
      status = absl::InvalidArgumentError(fmt::format("{}: cannot be {}", name, found->dump()));
    }
    values.erase(found);
  }

  static bool Read(const Json& value, bool* field) {
    if (!value.is_boolean()) return false;
    *field = value.get<bool>();
    return true;
  }
  static bool Read(const Json& value, int* field) {
    if (!value.is_number_integer()) return false;
    *field = value.get<int>();
    return true;
  }
  static bool Read(const Json& value, double* field) {
    if (!value.is_number()) return false;
    *field = value.get<double>();
    return true;
  }
  static bool Read(const Json& value, std::string* field) {
    if (!value.is_string()) return false;
    *field = value.get<std::string>();
    return true;
  }
  static bool Read(const Json& value, absl::Duration* field) {
    if (!value.is_number()) return false;
    *field = absl::Seconds(value.get<double>());
    return true;
  }
  static bool Read(const Json& value, absl::Time* field) {  // The value is seconds since 1970.
    if (!value.is_number()) return false;
    *field = absl::UnixEpoch() + absl::Seconds(value.get<double>());
    return true;
  }
  template <typename E, typename = std::enable_if_t<std::is_enum_v<E>>>
  static bool Read(const Json& value, E* field) {
    const auto& words = WordsOf<E>();
    for (size_t i = 0; i < words.size(); ++i) {
      if (!value.is_string() || value.get_ref<const std::string&>() != words[i]) continue;
      *field = static_cast<E>(i);
      return true;
    }
    return false;
  }

  Json values;
  absl::Status status;
};

struct Writer {
  void operator()(const char* name, bool field) { values[name] = field; }
  void operator()(const char* name, int field) { values[name] = field; }
  void operator()(const char* name, double field) { values[name] = field; }
  void operator()(const char* name, const std::string& field) { values[name] = field; }
  void operator()(const char* name, absl::Duration field) {
    values[name] = absl::ToDoubleSeconds(field);
  }
  void operator()(const char* name, absl::Time field) {
    if (field != absl::InfinitePast()) values[name] = absl::ToUnixSeconds(field);
  }
  template <typename E, typename = std::enable_if_t<std::is_enum_v<E>>>
  void operator()(const char* name, E field) {
    values[name] = std::string(WordsOf<E>()[static_cast<size_t>(field)]);
  }

  Json values = Json::object();
};

bool ReadBucket(const Json& value, Bucket* bucket) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number() || !value[1].is_number()) {
    return false;
  }
  *bucket = {value[0].get<double>(), value[1].get<double>()};
  return true;
}

// Reads {"UpdateVMScaleSetVMs": {"resource": [4, 12], "subscription": [500, 1500]}}.
absl::Status ReadLimits(const Json& value, Limits* limits) {
  if (!value.is_object()) return absl::InvalidArgumentError("limits: not an object");
  for (const auto& [name, policy] : value.items()) {
    size_t index = 0;
    while (index < kPolicies && kNames[index] != name) ++index;
    if (index == kPolicies || !policy.is_object()) {
      return absl::InvalidArgumentError(fmt::format("limits: no policy {}", name));
    }
    for (const auto& [scope, bucket] : policy.items()) {
      PolicyLimits& kept = limits->policies[index];
      const bool resource = scope == "resource";
      if ((!resource && scope != "subscription") ||
          !ReadBucket(bucket, resource ? &kept.resource : &kept.subscription)) {
        return absl::InvalidArgumentError(
            fmt::format("limits: {}.{}: not [refill, most]", name, scope));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view NameOf(Policy policy) { return kNames[static_cast<size_t>(policy)]; }

Limits::Limits() {
  Limits& self = *this;
  self[Policy::kUpdateScaleSetVms] = {{4, 12}, {500, 1500}};
  self[Policy::kDeleteScaleSetVms] = {{4, 12}, {500, 1500}};
  self[Policy::kGetScaleSetVms] = {{12, 36}, {2000, 6000}};
  self[Policy::kPutScaleSet] = {{4, 12}, {125, 375}};
  self[Policy::kUpdateScaleSet] = {{4, 12}, {500, 1500}};
  self[Policy::kDeleteScaleSet] = {{4, 12}, {175, 525}};
  self[Policy::kLowCostGetScaleSet] = {{12, 36}, {800, 2400}};
  self[Policy::kHighCostGetScaleSet] = {{10, 30}, {360, 1080}};
  self[Policy::kUpdateVm] = {{4, 12}, {500, 1500}};
  self[Policy::kPutVm] = {{4, 12}, {500, 1500}};
  self[Policy::kDeleteVm] = {{4, 12}, {500, 1500}};
  self[Policy::kLowCostGetVm] = {{12, 36}, {8000, 24000}};
  self[Policy::kHighCostGetVm] = {{}, {300, 900}};
  self[Policy::kGetOperation] = {{15, 45}, {5000, 15000}};
  // In a window all of it comes back at once.
  self[Policy::kNetworkRead] = {{}, {10'000, 10'000}};
  self[Policy::kNetworkWrite] = {{}, {1'000, 1'000}};
}

absl::Status MergeKnobs(std::string_view json, Knobs* knobs) {
  Reader reader;
  reader.values = Json::parse(json, nullptr, false);
  if (!reader.values.is_object()) return absl::InvalidArgumentError("not a JSON object");
  Knobs merged = *knobs;
  if (const auto limits = reader.values.find("limits"); limits != reader.values.end()) {
    if (absl::Status status = ReadLimits(*limits, &merged.limits); !status.ok()) return status;
    reader.values.erase(limits);
  }
  VisitAll(merged, reader);
  if (!reader.status.ok()) return reader.status;
  if (!reader.values.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: there is no such knob", reader.values.begin().key()));
  }
  *knobs = std::move(merged);
  return absl::OkStatus();
}

std::string FormatKnobs(const Knobs& knobs) {
  Writer writer;
  VisitAll(knobs, writer);
  Json limits = Json::object();
  for (size_t i = 0; i < kPolicies; ++i) {
    const PolicyLimits& policy = knobs.limits.policies[i];
    limits[std::string(kNames[i])] = {
        {"resource", {policy.resource.refill, policy.resource.most}},
        {"subscription", {policy.subscription.refill, policy.subscription.most}}};
  }
  writer.values["limits"] = std::move(limits);
  return writer.values.dump(1);
}

uint64_t SeededRandom::Next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31U);
}

absl::Duration SeededRandom::Of(const Latency& latency) {
  if (Chance(latency.slow_share)) {
    return latency.most + (latency.slowest - latency.most) * Fraction();
  }
  return latency.least + (latency.most - latency.least) * Fraction();
}

std::string SeededRandom::Guid() {
  const uint64_t a = Next();
  const uint64_t b = Next();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32U, (a >> 16U) & 0xFFFFU,
                     a & 0xFFFU, 0x8000U | (b >> 50U), b & 0xFFFFFFFFFFFFULL);
}

}  // namespace spoke::azure_sim
