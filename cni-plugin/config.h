// Reads the network configuration on standard input (CNI spec 1.1.0, section 1 and 3). Pure.
#pragma once

#include <optional>
#include <string_view>

#include "cni-plugin/agent/request.h"
#include "cni-plugin/cni_error.h"

namespace spoke::cni {

// Fills in what `text` says; what the error leaves unset is as it was. Unknown keys are passed
// over, and each verb reads only what it uses: a DEL is kept from nothing by what only an ADD
// needs. Errors, in the order of the reference plugins: code 6 (not a JSON object), 7 (no name), 1
// (a version that the plugin does not speak, or one that does not have this verb), then 7 for what
// else is malformed, naming key and value, and 6 for a prevResult that cannot be read.
std::optional<Error> ReadConfig(std::string_view text, Request& request);

}  // namespace spoke::cni
