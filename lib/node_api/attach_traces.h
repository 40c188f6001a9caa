// The course of the last ADDs of a node, step by step, as an operator asks and the agent answers.
// Values and their codec. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/node_api/fields.h"

namespace spoke::v1 {
class AttachTraces;
class AttachTracesRequest;
}  // namespace spoke::v1

namespace spoke::node_api {

// The traces to tell; an empty text stands for any.
struct AttachTracesRequest {
  uint64_t id = 0;
  std::string pod_namespace = {};
  std::string pod_name = {};
  std::string container_id = {};

  bool operator==(const AttachTracesRequest&) const = default;
};

struct AttachStep {
  std::string name;
  absl::Duration begin;  // The time since the beginning of the trace.
  absl::Duration took;

  bool operator==(const AttachStep&) const = default;
};

struct AttachTrace {
  std::string container_id;
  std::string ifname;
  std::string pod_namespace;
  std::string pod_name;
  std::string trace_id;  // The id of the runtime's trace, or the agent's own.
  absl::Time since;
  std::string error = {};  // The error; empty: it succeeded.
  std::vector<AttachStep> steps = {};
  std::vector<ip::Address> addresses = {};

  bool operator==(const AttachTrace&) const = default;
};

// The answer to the request of that id.
struct AttachTracesAnswer {
  uint64_t id = 0;
  std::vector<AttachTrace> traces;  // The traces, the newest first.

  bool operator==(const AttachTracesAnswer&) const = default;
};

// Bounds of the answer about one pod, which an agent gives from its last few hundred ADDs.
inline constexpr int kMaxTraces = 64;
inline constexpr int kMaxTraceSteps = 64;
inline constexpr int kMaxTraceAddresses = 16;
// The longest step; runtimes give up after minutes.
inline constexpr absl::Duration kMaxStepTime = absl::Hours(1);

void ToWire(const AttachTracesRequest& in, v1::AttachTracesRequest& out);
AttachTracesRequest FromWire(const v1::AttachTracesRequest& in);

void ToWire(const AttachTracesAnswer& in, v1::AttachTraces& out);
// Takes the first part of what is too long or too much. Errors: kInvalidArgument (an address that
// is none).
absl::StatusOr<AttachTracesAnswer> FromWire(const v1::AttachTraces& in);

}  // namespace spoke::node_api
