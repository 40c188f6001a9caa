// Which role the holder of a token has, when it asks for an operator's certificate. Pure,
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/enroll/enrollment_decision.h"
#include "ipam-server/operators/role.h"

namespace spoke::ipam {

// Who gets which role: "user:NAME" or "group:NAME", as Kubernetes has them.
struct OperatorRules {
  std::string audience = "spoke-operators";  // Whom tokens are for: never the API server itself.
  std::vector<std::string> viewers;
  std::vector<std::string> operators;
  std::vector<std::string> admins;

  bool empty() const { return viewers.empty() && operators.empty() && admins.empty(); }
  bool operator==(const OperatorRules&) const = default;
};

// Whether `subject` can be in OperatorRules. Errors: kInvalidArgument.
absl::Status CheckOperatorSubject(std::string_view subject);

// Whether a request could be an operator's at all: before anybody is asked anything. Errors:
// kInvalidArgument (no token, or one that is too long).
absl::Status CheckOperatorToken(std::string_view token);

// Returns the highest role that the rules give the token's user or one of its groups. Errors:
// kUnauthenticated (no good, or for another audience, such as the API server's own),
// kPermissionDenied (no role), kInvalidArgument (a name that no certificate takes),
// kFailedPrecondition (there are no rules).
absl::StatusOr<Role> RoleFor(const TokenFacts& token, const OperatorRules& rules);

}  // namespace spoke::ipam
