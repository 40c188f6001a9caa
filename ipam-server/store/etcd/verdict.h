// What a failed call of etcd's means: for the caller, and for the next endpoint. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace spoke::ipam::etcd {

struct Verdict {
  absl::Status status;
  bool try_next = false;      // Another member may answer.
  bool silent = false;        // There was no answer in time.
  bool in_doubt = false;      // The call may have happened, or may yet happen.
  bool authenticate = false;  // With a new token this member may answer.
};

// Judges a call by its gRPC code and message. Codes of `status`: kUnavailable; kPermissionDenied
// (authentication, or what the user may not do); kResourceExhausted (the database is full);
// kInvalidArgument; kNotFound (no such lease); kOutOfRange (the revision has been compacted);
// kDataLoss (a member is damaged); kUnimplemented (no etcd, or too old a one).
Verdict Judge(int grpc_code, const std::string& message);

// Errors: kUnimplemented for the version of a member before 3.4, or what is no version.
absl::Status CheckVersion(const std::string& version);

}  // namespace spoke::ipam::etcd
