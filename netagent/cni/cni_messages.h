// Converts between the plugin's messages (proto/spoke/v1/cni.proto) and the agent's values. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "netagent/attach/assignments.h"
#include "netagent/attach/attachment_checker.h"
#include "netagent/cni/cni_errors.h"
#include "proto/spoke/v1/cni.pb.h"

namespace spoke::netagent {

// Returns the verb; nullopt: one that only a newer plugin knows.
std::optional<CniVerb> VerbOf(const v1::CniRequest& request);

// Reads what an ADD asks for. An address may be followed by any prefix length: an interface has the
// address alone. Errors: kInvalidArgument (a MAC or an address that cannot be read, or more than
// kMaxRequests addresses).
inline constexpr int kMaxRequests = 16;
absl::StatusOr<Assignment> AssignmentOf(const v1::CniRequest& request);

// Reads what a CHECK expects. Errors: kInvalidArgument (a MAC or address that cannot be read).
absl::StatusOr<CheckExpectation> ExpectationOf(const v1::CniAttachment& expected);

// Reads the valid attachments of a GC; those without a container or a name are left out, for no
// attachment of ours is like that.
std::vector<AttachmentKey> ValidOf(const v1::CniRequest& request);

v1::CniResponse AttachmentResponse(const AttachSpec& spec);
v1::CniResponse DoneResponse();
v1::CniResponse ErrorResponse(const CniFailure& failure);

}  // namespace spoke::netagent
