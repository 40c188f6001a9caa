// Which server a command line means, and what spokectl shows it.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "admin-cli/client.h"
#include "admin-cli/command.h"
#include "admin-cli/context/context_file.h"

namespace spoke::ctl {

// The server where neither an option nor a context names one.
inline constexpr const char* kDefaultServer = "unix:/run/spoke/ipam-admin.sock";

// Returns what `arguments` mean: --server, with the certificate of the context; else the context of
// --context, or the current one; else kDefaultServer. `variable` reads the environment. Errors:
// kNotFound (no such context), kInvalidArgument (a file of contexts with mistakes, or a server over
// the network without a certificate), and as CheckCertificate().
absl::StatusOr<Target> TargetOf(const Arguments& arguments,
                                const std::function<std::string(const std::string&)>& variable,
                                absl::Time now);

// Returns kNotFound, with the contexts that there are and the nearest of them.
absl::Status NoSuchContext(const ContextFile& file, const std::string& name);

// Whether a server could take the certificate: what it would refuse is said here, since TLS itself
// does not say why. Errors: kFailedPrecondition (it has ended, has not begun, is for another key or
// signed by another authority; the message has the file and what to do), and as errno says.
absl::Status CheckCertificate(const rpc::TlsFiles& files, absl::Time now);

}  // namespace spoke::ctl
