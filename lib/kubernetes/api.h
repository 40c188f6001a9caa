// Calls to the API server of the cluster that this process is a pod of. Decides nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/http/message.h"

namespace spoke::kubernetes {

// How a pod reaches the API server and shows who it is.
struct ClusterAccess {
  std::string url;         // "https://10.96.0.1:443"
  std::string ca_file;     // Whom to trust.
  std::string token_file;  // Read for each call: the kubelet renews it.
  // The namespace of the pod itself; empty when it cannot be read.
  std::string k8s_namespace;
};

// What Kubernetes gives every pod with a service account: the variables KUBERNETES_SERVICE_HOST and
// _PORT, and the files in `directory`. `environment` gives a variable, or null. Errors:
// kFailedPrecondition (not in a pod, or in one without a service account's token).
absl::StatusOr<ClusterAccess> InClusterAccess(
    const std::function<const char*(const char* name)>& environment,
    const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

// Adds the header that shows who we are. The token is read anew each time, since the kubelet renews
// it. Errors: kFailedPrecondition (it cannot be read).
absl::Status Authorize(const ClusterAccess& access, http::Request& request);

// Thread-safe; each call is a connection of its own, and blocks.
class Api {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(5);
  static constexpr size_t kMaxAnswerBytes = size_t{2} << 20U;

  explicit Api(ClusterAccess access, absl::Duration patience = kPatience)
      : access_(std::move(access)), patience_(patience) {}

  // Returns any answer of the API server. `path` begins with a slash; `body` is JSON, or empty.
  // Errors: as http::Fetch(), and kFailedPrecondition (the token cannot be read).
  absl::StatusOr<http::Response> Call(const std::string& method, const std::string& path,
                                      std::string body = "") const;

 private:
  const ClusterAccess access_;
  const absl::Duration patience_;
};

}  // namespace spoke::kubernetes
