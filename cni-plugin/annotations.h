// The options that the pod's own annotations ask for: limits and weight of its traffic with the
// Internet. Pure.
#pragma once

#include <optional>

#include "cni-plugin/agent/request.h"
#include "cni-plugin/cni_error.h"
#include "cni-plugin/json/json.h"

namespace spoke::cni {

// Sets `request.options.internet` from runtimeConfig["io.kubernetes.cri.pod-annotations"], a
// capability that containerd and CRI-O have; nothing where it is not passed on. What counts is
//   spoke.internal/internet-ingress-bandwidth, -egress-bandwidth: a whole or decimal number and its
//     unit, bit, kbit, Mbit, Gbit or Tbit (SI, bits a second), from 1Mbit to 1Tbit. A unit is
//     required, since elsewhere a bare number is bits or bytes;
//   spoke.internal/internet-weight: a whole number from 1 to 100.
// Other annotations are passed over, except one of spoke.internal/ with "bandwidth" in its name:
// as a misspelt limit it would limit nothing. Errors: code 7, naming annotation, pod and value,
// with what is right.
std::optional<Error> ReadAnnotations(const json::Value& config, Request& request);

}  // namespace spoke::cni
