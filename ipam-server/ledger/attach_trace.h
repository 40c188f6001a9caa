// How an ADD went on a node, as its agent tells it for an operator. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

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
  std::string trace_id;
  absl::Time since;
  std::string error;  // Empty: it succeeded.
  std::vector<AttachStep> steps;
  std::vector<ip::Address> addresses;

  bool operator==(const AttachTrace&) const = default;
};

// Answers the request of that id.
struct AttachTraces {
  uint64_t id = 0;
  std::vector<AttachTrace> traces;  // The newest first.
};

}  // namespace spoke::ipam
