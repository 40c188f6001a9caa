// Checks what a request's body may say, before anybody looks at what it means: JSON, members that
// Azure's published API has, and a location that fits. Pure.
//
// Azure refuses a member that it does not know, and so finds a client that is wrong at once. Here
// names have to be spelled as published, too, where Azure would take them in any case.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/http/message.h"
#include "tests/azure-sim/backend.h"

namespace spoke::azure_sim {

enum class BodyOf : uint8_t {
  kScaleSet,
  kScaleSetUpdate,  // A PATCH.
  kInstance,
  kInstanceIds,  // A POST of manualupgrade.
  kReimage,      // A body that may be empty.
  kMachine,
  kMachineUpdate,  // A PATCH.
  kNic,
  kNetwork,
  kTags,  // A PATCH of what Microsoft.Network has.
  kSubnet,
};

// Returns the body as a JSON object. A response: what Azure answers to one that is none, or that
// has a member which the API does not have in the version that the request names.
std::optional<http::Response> ParseBody(const Call& call, BodyOf what, const Knobs& knobs,
                                        Json* body);

// The place of a resource now.
struct Placed {
  std::string_view name;
  std::string_view group;
  std::string_view location;  // The location; empty: it is not there yet.
};

enum class Location : uint8_t { kRequired, kOptional };

// Checks the location. A response: the body has none, or another than the resource, which stays
// where it is. "East US 2" is "eastus2".
std::optional<http::Response> CheckLocation(const Json& body, const Placed& resource,
                                            Location location);

}  // namespace spoke::azure_sim
