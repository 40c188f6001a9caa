// How the last ADDs of a node went, step by step, as an operator asks and the agent answers. Values
// and their codec. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/node_api/bounds.h"

namespace spoke::v1 {
class AttachTraces;
class AttachTracesRequest;
}  // namespace spoke::v1

namespace spoke::node_api {

// Which traces to tell; an empty text stands for any.
struct AttachTracesRequest {
  uint64_t id = 0;
  std::string pod_namespace = {};
  std::string pod_name = {};
  std::string container_id = {};

  bool operator==(const AttachTracesRequest&) const = default;
};

struct AttachStep {
  std::string name;
  absl::Duration begin;  // After the beginning of the trace.
  absl::Duration took;

  bool operator==(const AttachStep&) const = default;
};

struct AttachTrace {
  std::string container_id;
  std::string ifname;
  std::string pod_namespace;
  std::string pod_name;
  std::string trace_id;  // That of the runtime's trace, or the agent's own.
  absl::Time since;
  std::string error = {};  // Empty: it succeeded.
  std::vector<AttachStep> steps = {};
  std::vector<ip::Address> addresses = {};

  bool operator==(const AttachTrace&) const = default;
};

// Answers the request of that id.
struct AttachTracesAnswer {
  uint64_t id = 0;
  std::vector<AttachTrace> traces;  // The newest first.

  bool operator==(const AttachTracesAnswer&) const = default;
};

// Bounds of the answer about one pod, which an agent gives from its last few hundred ADDs.
inline constexpr int kMaxTraces = 64;
inline constexpr int kMaxTraceSteps = 64;
inline constexpr int kMaxTraceAddresses = 16;
inline constexpr absl::Duration kMaxStepTime = absl::Hours(1);  // Runtimes give up after minutes.

void ToWire(const AttachTracesRequest& in, v1::AttachTracesRequest& out);
AttachTracesRequest FromWire(const v1::AttachTracesRequest& in);

void ToWire(const AttachTracesAnswer& in, v1::AttachTraces& out);
// Of what is too long or too much, the first part is taken. Errors: kInvalidArgument (an address
// that is none).
absl::StatusOr<AttachTracesAnswer> FromWire(const v1::AttachTraces& in);

}  // namespace spoke::node_api
