// Results of CNI as JSON: the answer to the runtime for each version of the spec, and the
// prevResult of a plugin before this one. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cni-plugin/agent/request.h"
#include "cni-plugin/expected.h"
#include "cni-plugin/json/json.h"

namespace spoke::cni {

// Returns the ADD result in the shape of `request.cni_version` (CNI spec 1.1.0, section 5
// "Success"): what plugins before this one answered, then host end and pod end, and addresses that
// point at the pod end, which is where runtimes look for them.
std::string FormatResult(const Invocation& request, const Attachment& attachment);

// Returns the error object. `cni_version` may be empty where it is not known.
std::string FormatError(const Error& error, std::string_view cni_version);

std::string FormatVersion();

// Reads the prevResult of a configuration (CNI spec 1.1.0, section 5 "Success"): lists of
// interfaces, ips and routes, and dns.
//
// It may lack cniVersion, any list, and the ips' interface, and may be of any version this plugin
// speaks, whatever the configuration's.

// Reads it for an ADD: sets `request.chained` and `request.dns`, converted to
// `request.cni_version`. Errors: code 6 (not of that shape), 1 (a version this plugin does not
// speak).
std::optional<Error> ReadChained(const json::Value& prev, Invocation& request);

// Reads it for a CHECK: sets `request.expectations`. Errors: as above, and code 7: no interface in
// a sandbox is called CNI_IFNAME.
std::optional<Error> ReadExpectations(const json::Value& prev, Invocation& request);

}  // namespace spoke::cni
