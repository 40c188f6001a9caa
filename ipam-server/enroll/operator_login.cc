#include "ipam-server/enroll/operator_login.h"

#include <algorithm>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxTokenBytes = 16U << 10U;
constexpr size_t kMaxSubjectBytes = 512;
constexpr size_t kMaxUserBytes = 64;  // Of a certificate's common name (RFC 5280).
constexpr std::string_view kUser = "user:";
constexpr std::string_view kGroup = "group:";

bool IsText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

bool Names(const std::vector<std::string>& subjects, const TokenFacts& token) {
  return std::any_of(subjects.begin(), subjects.end(), [&](const std::string& subject) {
    const std::string_view text(subject);
    if (text.starts_with(kUser)) return text.substr(kUser.size()) == token.user;
    return std::any_of(token.groups.begin(), token.groups.end(), [&](const std::string& group) {
      return text.starts_with(kGroup) && text.substr(kGroup.size()) == group;
    });
  });
}

}  // namespace

absl::Status CheckOperatorSubject(std::string_view subject) {
  const size_t colon = subject.find(':');
  const std::string_view kind = subject.substr(0, colon == subject.npos ? 0 : colon + 1);
  if ((kind == kUser || kind == kGroup) && subject.size() > kind.size() &&
      subject.size() <= kMaxSubjectBytes && IsText(subject)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is neither user:NAME nor group:NAME, as Kubernetes has them", subject));
}

absl::Status CheckOperatorToken(std::string_view token) {
  if (!token.empty() && token.size() <= kMaxTokenBytes && IsText(token)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "token must have 1 to {} printable signs; it has {}", kMaxTokenBytes, token.size()));
}

absl::StatusOr<Role> RoleFor(const TokenFacts& token, const OperatorRules& rules) {
  if (rules.empty()) {
    return absl::FailedPreconditionError(
        "this server gives operators no certificates: its enroll.operators names nobody");
  }
  if (!token.authenticated) {
    return absl::UnauthenticatedError(
        fmt::format("the token is no good: {}",
                    token.error.empty() ? "the API server does not say why" : token.error));
  }
  // A server that knows no audiences says nothing of them, and its tokens are good for anybody.
  if (std::find(token.audiences.begin(), token.audiences.end(), rules.audience) ==
      token.audiences.end()) {
    return absl::UnauthenticatedError(
        fmt::format("the token is not for the audience {0}; make one that is for nobody else: "
                    "kubectl create token NAME --audience {0}",
                    rules.audience));
  }
  if (token.user.empty() || token.user.size() > kMaxUserBytes || !IsText(token.user)) {
    return absl::InvalidArgumentError(
        fmt::format("the user's name has {} bytes, or other signs than printable ones; a "
                    "certificate takes {}: use a service account with a shorter name",
                    token.user.size(), kMaxUserBytes));
  }
  if (Names(rules.admins, token)) return Role::kAdmin;
  if (Names(rules.operators, token)) return Role::kOperator;
  if (Names(rules.viewers, token)) return Role::kViewer;
  return absl::PermissionDeniedError(
      fmt::format("{} has no role here; an admin adds user:{}, or one of its groups, to the "
                  "server's enroll.operators",
                  token.user, token.user));
}

}  // namespace spoke::ipam
