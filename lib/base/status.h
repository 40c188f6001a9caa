// Status helpers shared by every component. Pure.
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::base {

// The one mapping from errno to a canonical code. `what` names the call and its object
// ("bind netlink socket"); the message becomes "<what>: <strerror>". `error` must be positive.
absl::Status ErrnoToStatus(int error, std::string_view what);

// `status` with "<what>: " put before its message; OK stays OK and the code is kept.
absl::Status Annotate(const absl::Status& status, std::string_view what);

// The message as a std::string_view, which fmt can print; valid as long as `status` is.
inline std::string_view MessageOf(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

}  // namespace spoke::base

// NOLINTBEGIN(bugprone-macro-parentheses): names and declarations cannot stand in parentheses.
#define SPOKE_CONCAT_INNER(a, b) a##b
#define SPOKE_CONCAT(a, b) SPOKE_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expr` is not OK.
#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

// Declares or assigns `lhs` from a StatusOr, or returns its error.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_INNER(SPOKE_CONCAT(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                           \
  if (!tmp.ok()) return tmp.status();          \
  lhs = *std::move(tmp)
// NOLINTEND(bugprone-macro-parentheses)
