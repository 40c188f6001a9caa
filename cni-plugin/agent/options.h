// The options that an ADD is asked for beyond "an address": MAC, addresses, MTU, bandwidth, and
// what the pod's annotations say (annotations.h). Pure.
#pragma once

#include <optional>

#include "cni-plugin/agent/request.h"
#include "cni-plugin/cni_error.h"
#include "cni-plugin/json/json.h"

namespace spoke::cni {

// Sets `request.options` from the configuration and from what ParseEnvironment() read. The first
// that says something counts: for MAC and addresses runtimeConfig, args.cni and CNI_ARGS; for
// bandwidth the configuration's own keys, then runtimeConfig (both as the reference plugins have
// it). Keys of the last two levels match in any case. Errors: code 7, naming key and value, and for
// bandwidth the rule and the pod; those of ReadAnnotations().
std::optional<Error> ReadOptions(const json::Value& config, Request& request);

}  // namespace spoke::cni
