// The answer to the runtime, as JSON for each version of the spec. Pure.
#pragma once

#include <string>
#include <string_view>

#include "cni-plugin/agent/request.h"
#include "cni-plugin/cni_error.h"

namespace spoke::cni {

// Returns the ADD result in the shape of `request.cni_version` (CNI spec 1.1.0, section 5
// "Success"): what plugins before this one answered, then host end and pod end, and addresses that
// point at the pod end, which is where runtimes look for them.
std::string FormatResult(const Request& request, const Attachment& attachment);

// Returns the error object. `cni_version` may be empty where it is not known.
std::string FormatError(const Error& error, std::string_view cni_version);

std::string FormatVersion();

}  // namespace spoke::cni
