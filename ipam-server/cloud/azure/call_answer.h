// What a response says about Azure's limits, for the plan of calls. Pure.
#pragma once

#include <optional>

#include "ipam-server/cloud/azure/resources/arm_error.h"
#include "ipam-server/cloud/calls/cloud_plan.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

// `error`: what DecodeArmError() made of the response; nullopt for a success.
CallAnswer CallAnswerOf(const http::Response& response, const std::optional<ArmError>& error);

// Whether the same call is to be sent again, once the plan lets it.
bool IsRefusal(const ArmError& error);

}  // namespace spoke::ipam::azure
