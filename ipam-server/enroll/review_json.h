// TokenReview, Pod and Node as the API server writes them, read within limits and strictly: what is
// not as its API has it is refused, since a guess would be about who somebody is. Pure,
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ipam-server/enroll/enrollment_decision.h"

namespace spoke::ipam {

// The body of a request to create a TokenReview (authentication.k8s.io/v1) for one audience.
std::string TokenReviewRequest(std::string_view token, std::string_view audience);

// The answer to it. Errors: kInvalidArgument (not JSON, not a TokenReview with a status, or a field
// of another type than its API has; never with a part of the text, which holds the token).
absl::StatusOr<TokenFacts> ParseTokenReview(std::string_view text);

// Errors: kInvalidArgument (not JSON, not a Pod with name, namespace and uid, or a field of another
// type).
absl::StatusOr<PodFacts> ParsePod(std::string_view text);

// Errors: kInvalidArgument (not JSON, not a Node with a name, a field of another type, a provider
// id that is no URI, a label that Kubernetes would not take, or more than kMaxLabelsBytes of them).
inline constexpr size_t kMaxLabelsBytes = 12U << 10U;
absl::StatusOr<NodeFacts> ParseNode(std::string_view text);

}  // namespace spoke::ipam
