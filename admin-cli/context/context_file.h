// The file of contexts, ~/.config/spoke/config.yaml: which servers there are, and what they are
// shown.
//
//   current: prod
//   contexts:
//     prod:
//       servers: ["spoke-a.example.org:7447", "spoke-b.example.org:7447"]
//       ca: prod-ca.pem            # files beside this one, or absolute paths
//       certificate: prod.pem
//       key: prod.key
//       server_name: spoke-ipam-server  # what the server's certificate bears, if not the host's
//       name
//
// Pure, except ReadContexts() and WriteContexts().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::ctl {

// One Spoke.
struct Context {
  // Each host:port, or unix:/path of a socket; the one that leads is found by trying.
  std::vector<std::string> servers;
  std::string ca;  // PEM files: as the file has them. All three, except with sockets alone.
  std::string certificate;
  std::string key;
  std::string server_name;  // Empty: the host of each server.

  bool operator==(const Context&) const = default;
};

struct ContextFile {
  std::string current;  // Empty: none.
  std::map<std::string, Context> contexts;

  bool operator==(const ContextFile&) const = default;
};

// Whether `name` can be a context's: 1 to 63 letters, digits, '-', '_' and '.', no '.' first, since
// files are called by it. Errors: kInvalidArgument.
absl::Status CheckContextName(std::string_view name);

// Whether `server` is one that can be asked. Errors: kInvalidArgument.
absl::Status CheckServer(std::string_view server);

// Errors: kInvalidArgument, with a line "FILE:LINE: KEY: what is wrong" for each mistake.
absl::StatusOr<ContextFile> ParseContexts(std::string_view text, const std::string& file);

// Returns text that ParseContexts() reads back as the same.
std::string PrintContexts(const ContextFile& contexts);

// Returns where the file is: SPOKE_CONFIG, or else spoke/config.yaml in XDG_CONFIG_HOME or in
// ~/.config; empty: nobody knows. `variable` reads the environment.
std::string ContextPath(const std::function<std::string(const std::string&)>& variable);

// Reads the file; without one there are no contexts. Errors: as ParseContexts(), and as errno says.
absl::StatusOr<ContextFile> ReadContexts(const std::string& path);

// Replaces the file, and makes its folder. Errors: as errno says; kFailedPrecondition (`path` is
// empty).
absl::Status WriteContexts(const std::string& path, const ContextFile& contexts);

}  // namespace spoke::ctl
