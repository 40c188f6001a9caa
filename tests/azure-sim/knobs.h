// The settings of the simulated Azure, which can be changed while it runs. Pure.
//
// Defaults are what Microsoft documents, or what recordings of the real service show. Where neither
// says anything, the comment says "unverified": a test should then hold for other values, too.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace spoke::azure_sim {

// The groups of calls that Azure counts together.
enum class Policy : uint8_t {
  kUpdateScaleSetVms,
  kDeleteScaleSetVms,
  kGetScaleSetVms,
  kPutScaleSet,
  kUpdateScaleSet,
  kDeleteScaleSet,
  kLowCostGetScaleSet,
  kHighCostGetScaleSet,
  kUpdateVm,
  kPutVm,
  kDeleteVm,
  kLowCostGetVm,
  kHighCostGetVm,
  kGetOperation,
  kScaleSetVmViews,  // The units of VMs looked at by lists; not limited today, but recorded.
  kNetworkRead,
  kNetworkWrite,
};
inline constexpr size_t kPolicies = 17;
std::string_view NameOf(Policy policy);

// A bucket of `most` tokens; `refill` come back each minute. `most` 0: no limit.
struct Bucket {
  double refill = 0;
  double most = 0;

  bool operator==(const Bucket&) const = default;
};

struct PolicyLimits {
  Bucket resource;
  Bucket subscription;  // The bucket of a subscription and region.

  bool operator==(const PolicyLimits&) const = default;
};

// One direction of ARM's front door; it refills all the time.
struct FrontDoorBucket {
  double per_second = 0;
  double most = 0;
};

struct Limits {
  Limits();

  PolicyLimits& operator[](Policy policy) { return policies[static_cast<size_t>(policy)]; }
  const PolicyLimits& operator[](Policy policy) const {
    return policies[static_cast<size_t>(policy)];
  }

  bool enabled = true;
  std::array<PolicyLimits, kPolicies> policies;
  // The time in a minute at which Compute refills its buckets; by subscription and region it is the
  // same.
  absl::Duration compute_phase = absl::ZeroDuration();
  // Microsoft.Network counts in windows of this length.
  absl::Duration network_window = absl::Minutes(5);
  absl::Duration network_phase = absl::ZeroDuration();
  FrontDoorBucket reads{25, 250};
  FrontDoorBucket writes{10, 200};
  FrontDoorBucket deletes{10, 200};
  // The amount that all principals together may do, as a multiple of what one may.
  double global_factor = 15;
};

enum class RetryAfter : uint8_t { kSeconds, kHttpDate, kAbsent };
enum class OnConcurrentWrite : uint8_t { kConflict, kPreempt };
// The way in which a full subnet shows: in the answer to the write, or as an operation that fails.
enum class FullSubnet : uint8_t { kSync, kAsync };
// The knowledge that a cloud's Compute has of blocks of addresses on a NIC: it may not have the
// version that brought them yet, or have the version without the field.
enum class ComputeBlocks : uint8_t { kPresent, kNoVersion, kNoField };

struct Latency {
  absl::Duration least = absl::Seconds(10);
  absl::Duration most = absl::Seconds(40);
  double slow_share = 0;  // The share of operations that take up to `slowest` instead.
  absl::Duration slowest = absl::Seconds(60);
};

struct Knobs {  // NOLINT(clang-analyzer-optin.performance.Padding): ordered for readers.
  // Whether a token is required. Otherwise a request without a token counts as one of the principal
  // "anonymous". The program wants tokens unless told otherwise.
  bool require_token = false;

  // -- The shape of answers.
  int page_size = 120;                  // Unverified: Azure publishes no size.
  bool expose_throttle_headers = true;  // Whether answers have x-ms-ratelimit-* headers.
  // Whether there is one x-ms-ratelimit-remaining-resource for each limit.
  bool repeat_headers = false;
  // Whether Network's answers have x-ms-ratelimit-remaining-subscription-global-*: they do not in
  // every cloud.
  bool network_global_limits = true;
  bool network_async_notification = true;  // Whether they have Azure-AsyncNotification as well.
  // Whether 429 bodies are without the outer "error", as documented once.
  bool throttle_without_error = false;
  RetryAfter retry_after = RetryAfter::kSeconds;
  int unknown_instance_status = 404;  // Unverified: 400 or 404.
  bool retry_after_on_compute_operations = false;
  // The size of the certificate in the URLs of operations; real ones: 4096.
  int operation_url_bytes = 64;
  bool vary_id_case = false;
  bool null_network_profile_while_deleting = true;
  // The number beyond which a subnet does not list them. Unverified.
  int subnet_ip_configurations_most = 1000;
  bool subnet_lists_ip_configurations = true;
  bool shuffle_ip_configurations = false;
  bool empty_set_has_no_nic_list = true;  // Whether the NICs of a set without instances are a 404.

  // -- Times.
  Latency latency;  // The time of writes. Network writes on scale sets usually take 10 to 40 s.
  Latency delete_latency;  // The time of deleting instances.
  // The time for which a NIC still reads as before after its operation is done.
  absl::Duration nic_lag;
  absl::Duration list_lag;  // The time for which lists miss what is new, and show what is gone.
  absl::Duration imds_lag;  // The time by which the metadata service lags behind the fabric.
  // The time until an address that was taken off can be given again.
  absl::Duration free_after_removal;
  // The same for the addresses of an instance. Unverified.
  absl::Duration free_after_delete = absl::Seconds(30);
  absl::Duration operation_kept = absl::Hours(1);  // The time after which its status is 404.

  // -- Rules.
  OnConcurrentWrite on_concurrent_write = OnConcurrentWrite::kConflict;
  FullSubnet full_subnet = FullSubnet::kAsync;
  int most_ip_configurations = 256;  // The most on a NIC.
  // Whether the primary one is among the above. Unverified for scale sets.
  bool primary_counts = true;
  // Whether an image reference may be echoed; false: that is a 403.
  bool reads_image_references = false;
  bool set_writes_bump_instance_etags = false;  // Unverified.
  bool reimage_keeps_addresses = true;          // Unverified.
  int most_nics = 8;
  ComputeBlocks compute_blocks = ComputeBlocks::kPresent;

  // -- Faults. Shares are of calls or operations, in [0, 1].
  double failed_operations = 0;
  // The share of failing operations that had written the NIC by then: something else of the VM
  // failed, as an extension does.
  double failed_after_write = 0;
  double canceled_operations = 0;
  std::string failed_operation_code = "NetworkingInternalOperationError";
  double server_errors = 0;  // The share that fails before anything is done.
  int server_error_status = 503;
  // The share of writes that are carried out without an answer, which status 0 stands for.
  double lost_responses = 0;
  double lost_reads = 0;
  double foreign_writes = 0;  // The share of an instance's GETs behind which it is written.
  // The share of PUTs just before which it is written, however their sender had read it.
  double foreign_writes_at_put = 0;
  double conflicts = 0;       // The share of 409 though nothing else is under way.
  double network_busy = 0;    // The share of 429 RetryableErrorDueToAnotherOperation.
  double nic_list_empty = 0;  // The share of lists of NICs that are empty.
  double nic_list_null = 0;   // The share of NICs in lists whose ipConfigurations are null.
  double list_omits = 0;      // The share of entries left out of lists.
  bool deny_reads = false;    // Whether reads are 403 AuthorizationFailed.
  bool deny_writes = false;
  bool deny_join = false;  // Whether joining a subnet is 403 LinkedAuthorizationFailed.
  bool scope_locked = false;
  absl::Time tokens_valid_from = absl::InfinitePast();  // The time before which tokens are refused.

  // -- The metadata service.
  absl::Duration token_lifetime = absl::Hours(24);
  int imds_per_second = 5;
  int identity_per_second = 20;
  bool imds_gone = false;     // Whether it answers 410: being updated; try again.
  int imds_fails_status = 0;  // The status of every answer; 0: none.
  bool identity_missing = false;
  // Whether IMDS and wireserver list each address of a block, or its first. Unverified.
  bool local_views_expand_blocks = true;

  Limits limits;
};

// Sets what `json` names; the rest stays. Durations are in seconds and end in "_s".
// Errors: kInvalidArgument (not an object, unknown name, wrong type); then nothing has changed.
absl::Status MergeKnobs(std::string_view json, Knobs* knobs);

// Returns all of them, as MergeKnobs() takes them.
std::string FormatKnobs(const Knobs& knobs);

// A source of numbers that one seed decides (splitmix64).
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}

  uint64_t Next();
  // Returns a number in [0, 1).
  double Fraction() { return static_cast<double>(Next() >> 11U) * 0x1.0p-53; }
  bool Chance(double share) { return share > 0 && Fraction() < share; }
  absl::Duration Of(const Latency& latency);
  // Returns "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
  std::string Guid();

 private:
  uint64_t state_;
};

}  // namespace spoke::azure_sim
