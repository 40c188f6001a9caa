#include "lib/base/status.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace spoke::base {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENODEV:
    case ESRCH:
    case ENXIO:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case EADDRINUSE:
      return absl::StatusCode::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOBUFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    case EINVAL:
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    case EAGAIN:
    case EBUSY:
    case EINTR:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      return absl::StatusCode::kUnavailable;
    case ETIMEDOUT:
      return absl::StatusCode::kDeadlineExceeded;
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case ENOSYS:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ErrnoToStatus(int error, std::string_view what) {
  return absl::Status(CodeOf(error), std::string(what) + ": " + std::strerror(error));
}

absl::Status Annotate(const absl::Status& status, std::string_view what) {
  if (status.ok()) return status;
  return absl::Status(status.code(), std::string(what) + ": " + std::string(status.message()));
}

}  // namespace spoke::base
