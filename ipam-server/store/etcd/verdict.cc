#include "ipam-server/store/etcd/verdict.h"

#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "fmt/core.h"

namespace spoke::ipam::etcd {
namespace {

constexpr int kOldestMajor = 3;
constexpr int kOldestMinor = 4;

bool Has(const std::string& message, const char* part) { return absl::StrContains(message, part); }

// Whether gRPC says that it has not sent anything.
bool NeverSent(const std::string& message) {
  return Has(message, "failed to connect") || Has(message, "DNS resolution failed") ||
         Has(message, "connections to all backends failing");
}

// Why a member has not answered, and what to do about it.
std::string WhyUnavailable(absl::StatusCode code, const std::string& message) {
  if (Has(message, "DNS resolution failed")) {
    return fmt::format("the name has no address ({}): correct the endpoint, or DNS", message);
  }
  if (Has(message, "andshake")) {
    return fmt::format(
        "TLS with it fails ({}): is its certificate of the authority in ca, for this name, and "
        "still good?",
        message);
  }
  if (NeverSent(message)) {
    return fmt::format("it cannot be connected to ({}): start it, or open the way to it", message);
  }
  if (Has(message, "no leader") || Has(message, "request timed out")) {
    return fmt::format("it has no quorum ({}): start the other members", message);
  }
  if (code == absl::StatusCode::kDeadlineExceeded) {
    return "no answer in time: it is stopped, cut off, or without a quorum";
  }
  return message;
}

Verdict Denied(const char* why) { return {.status = absl::PermissionDeniedError(why)}; }

Verdict JudgeArgument(const std::string& message) {
  if (Has(message, "user name is empty")) {
    return Denied(
        "etcd demands authentication: set store.etcd.user and password_file, or a client "
        "certificate, and start the server again");
  }
  if (Has(message, "authentication failed")) {
    return Denied(
        "etcd does not know this user with this password: correct store.etcd.user or "
        "password_file, and start the server again");
  }
  if (Has(message, "revision of auth store is old")) {
    return {.status = absl::PermissionDeniedError(message), .authenticate = true};
  }
  return {.status = absl::InvalidArgumentError(fmt::format("etcd refuses the call: {}", message))};
}

}  // namespace

Verdict Judge(int grpc_code, const std::string& message) {
  const auto code = static_cast<absl::StatusCode>(grpc_code);
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return JudgeArgument(message);
    case absl::StatusCode::kUnauthenticated:
      return {.status = absl::PermissionDeniedError(message), .authenticate = true};
    case absl::StatusCode::kPermissionDenied:
      return Denied(
          "etcd lets this user not do that: give it a role that may read and write the prefix");
    case absl::StatusCode::kFailedPrecondition:
      if (Has(message, "authentication is not enabled")) {
        return Denied(
            "a user is configured, but this etcd has no authentication: enable it there "
            "(etcdctl auth enable), or leave the user out");
      }
      return {.status = absl::UnavailableError(message), .try_next = true};
    case absl::StatusCode::kResourceExhausted:
      if (Has(message, "database space exceeded")) {
        return {.status = absl::ResourceExhaustedError(
                    "etcd's database has reached its quota (alarm NOSPACE): raise "
                    "--quota-backend-bytes, or wait until it has been compacted")};
      }
      return {.status = absl::UnavailableError(message), .try_next = true};
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kNotFound:
      return {.status = absl::Status(code, message)};
    case absl::StatusCode::kDataLoss:
      return {.status = absl::DataLossError(fmt::format(
                  "a member of etcd is damaged ({}): replace it, or restore a snapshot", message))};
    case absl::StatusCode::kUnimplemented:
      return {.status = absl::UnimplementedError(
                  fmt::format("this is no etcd of version 3.4 or later: {}", message))};
    default:
      return {.status = absl::UnavailableError(WhyUnavailable(code, message)),
              .try_next = true,
              .silent = code == absl::StatusCode::kDeadlineExceeded,
              .in_doubt = !NeverSent(message)};
  }
}

absl::Status CheckVersion(const std::string& version) {
  int major = 0;
  int minor = 0;
  const char* end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  bool good = first.ec == std::errc() && first.ptr != end && *first.ptr == '.';
  if (good) good = std::from_chars(first.ptr + 1, end, minor).ec == std::errc();
  if (good && (major > kOldestMajor || (major == kOldestMajor && minor >= kOldestMinor))) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(fmt::format("etcd {} is too old: {}.{} or later is needed",
                                              absl::CHexEscape(version), kOldestMajor,
                                              kOldestMinor));
}

}  // namespace spoke::ipam::etcd
