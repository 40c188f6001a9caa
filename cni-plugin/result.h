// What the runtime is told, as JSON for each version of the spec. Pure.
#pragma once

#include <string>
#include <vector>

#include "cni-plugin/cni_error.h"
#include "cni-plugin/request.h"

namespace spoke::cni {

struct PodAddress {
  std::string address;  // CIDR notation.
  std::string gateway;
};

// What the agent has built.
struct Attachment {
  std::string host_link;
  std::string host_mac;
  std::string pod_mac;
  std::vector<PodAddress> addresses;
};

// The ADD result in the shape of `request.cni_version` (CNI spec 1.0.0, section 5 "Success"): host
// end and pod end, and addresses that point at the pod end, which is where runtimes look for them.
std::string FormatResult(const Request& request, const Attachment& attachment);

// `cni_version` may be empty where it is not known.
std::string FormatError(const Error& error, const std::string& cni_version);

std::string FormatVersion();

}  // namespace spoke::cni
