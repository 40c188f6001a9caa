// The options that an ADD is asked for beyond "an address": MAC, addresses, MTU, bandwidth, and
// what the pod's annotations say (annotations.h). Pure.
#pragma once

#include <optional>

#include "cni-plugin/agent/request.h"
#include "cni-plugin/expected.h"
#include "cni-plugin/json/json.h"

namespace spoke::cni {

// The options that the pod's own annotations ask for: limits and weight of its traffic with the
// Internet.

// Sets `request.options.internet` from runtimeConfig["io.kubernetes.cri.pod-annotations"], a
// capability that containerd and CRI-O have; nothing where it is not passed on. What counts is
//   spoke.internal/internet-ingress-bandwidth, -egress-bandwidth: a whole or decimal number and its
//     unit, bit, kbit, Mbit, Gbit or Tbit (SI, bits a second), from 1Mbit to 1Tbit. A unit is
//     required, since elsewhere a bare number is bits or bytes;
//   spoke.internal/internet-weight: a whole number from 1 to 100.
// Other annotations are passed over, except one of spoke.internal/ with "bandwidth" in its name:
// as a misspelt limit it would limit nothing. Errors: code 7, naming annotation, pod and value,
// with what is right.
std::optional<Error> ReadAnnotations(const json::Value& config, Invocation& request);

// Sets `request.options` from the configuration and from what ParseEnvironment() read. The first
// that says something counts: for MAC and addresses runtimeConfig, args.cni and CNI_ARGS; for
// bandwidth the configuration's own keys, then runtimeConfig (both as the reference plugins have
// it). Keys of the last two levels match in any case. Errors: code 7, naming key and value, and for
// bandwidth the rule and the pod; those of ReadAnnotations().
std::optional<Error> ReadOptions(const json::Value& config, Invocation& request);

}  // namespace spoke::cni
