// The verbs of spokectl, one function each: ask the server, print the answer.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "admin-cli/table.h"

namespace spoke::ctl {

// What the command line said.
struct Options {
  std::string server = "unix:/run/spoke/ipam-admin.sock";
  Format format = Format::kTable;
  int timeout_seconds = 15;
  std::string node;  // Filters of `ip list`; empty: all.
  std::string pool;
  std::string state;
  std::string address;  // Of `ip show`.
};

// Each returns what to print. Errors: kUnavailable (no server there), kNotFound, kInvalidArgument
// and what else the server says.
absl::StatusOr<std::string> Status(const Options& options);
absl::StatusOr<std::string> PoolList(const Options& options);
absl::StatusOr<std::string> NodeList(const Options& options);
absl::StatusOr<std::string> IpList(const Options& options);
absl::StatusOr<std::string> IpShow(const Options& options);

}  // namespace spoke::ctl
