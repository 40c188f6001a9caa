// What the plugin asks, carried out, and the outcome in CNI's terms.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"
#include "netagent/sync/attachments.h"
#include "proto/spoke/v1/cni.pb.h"

namespace spoke::netagent {

// Codes of the CNI spec 1.0.0, section 5 "Error"; those from 100 are ours and stable.
inline constexpr uint32_t kCniInvalidEnvironment = 4;
inline constexpr uint32_t kCniTryAgainLater = 11;
inline constexpr uint32_t kCniInternal = 100;
inline constexpr uint32_t kCniAlreadyExists = 101;

// kResourceExhausted, kUnavailable and kDeadlineExceeded are 11; kFailedPrecondition (the namespace
// is none, or the node's own) is 4; kAlreadyExists 101; the rest 100. Pure.
uint32_t CniCodeOf(absl::StatusCode code);

// Not thread-safe; belongs to the loop's thread.
class CniHandler {
 public:
  // Milliseconds of CLOCK_MONOTONIC, which is what the plugin's deadline is in.
  using MonotonicMs = std::function<int64_t()>;

  // Borrows `attachments` and `log`.
  CniHandler(Attachments& attachments, MonotonicMs monotonic_ms, telemetry::Log& log)
      : attachments_(attachments), monotonic_ms_(std::move(monotonic_ms)), log_(log) {}

  v1::CniResponse Handle(const v1::CniRequest& request, os::UniqueFd pod_netns);

 private:
  absl::StatusOr<v1::CniAttachment> Add(const v1::CniRequest& request, const os::UniqueFd& netns);

  Attachments& attachments_;
  const MonotonicMs monotonic_ms_;
  telemetry::Log& log_;
};

}  // namespace spoke::netagent
