// Reads the prevResult of a configuration (CNI spec 1.1.0, section 5 "Success"): lists of
// interfaces, ips and routes, and dns. Pure.
//
// It may lack cniVersion, any list, and the ips' interface, and may be of any version this plugin
// speaks, whatever the configuration's.
#pragma once

#include <optional>

#include "cni-plugin/agent/request.h"
#include "cni-plugin/cni_error.h"
#include "cni-plugin/json/json.h"

namespace spoke::cni {

// Reads it for an ADD: sets `request.chained` and `request.dns`, converted to
// `request.cni_version`. Errors: code 6 (not of that shape), 1 (a version this plugin does not
// speak).
std::optional<Error> ReadChained(const json::Value& prev, Request& request);

// Reads it for a CHECK: sets `request.expectations`. Errors: as above, and code 7: no interface in
// a sandbox is called CNI_IFNAME.
std::optional<Error> ReadExpectations(const json::Value& prev, Request& request);

}  // namespace spoke::cni
