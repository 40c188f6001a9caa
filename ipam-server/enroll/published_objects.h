// Puts objects of ours into the cluster: the authority, as the ConfigMap that agents mount, and as
// Secrets the operators' certificate and the token with which Prometheus asks for metrics.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/kubernetes/api.h"

namespace spoke::ipam {

// The names of the objects. Agents' manifests name the first, with its key ca.pem.
inline constexpr const char* kAuthorityConfigMap = "spoke-ca";
inline constexpr const char* kOperatorSecret = "spoke-operator";
inline constexpr const char* kMetricsSecret =
    "spoke-metrics";  // Agents mount it: its key is token.

// All are in PEM, except the token. Without a certificate of operators their Secret is left alone.
struct PublishedFiles {
  std::string authority;
  std::string operator_certificate;
  std::string operator_key;
  std::string metrics_token;
};

// Makes the three objects in `k8s_namespace` hold `files` and no other data: creates what is
// missing and replaces what differs; labels and annotations of others stay. True: something was
// written. Takes the rights to create configmaps and secrets, and to get and update these three.
// Errors: as kubernetes::StatusOfAnswer() and kubernetes::Api::Call(), of the first object that
// could not be written; the others were tried too, unless nobody answers.
absl::StatusOr<bool> Publish(const kubernetes::Api& api, const std::string& k8s_namespace,
                             const PublishedFiles& files);

// Returns the token of the Secret for metrics; empty: there is none, or none that an endpoint for
// metrics would take. Errors: as kubernetes::StatusOfAnswer() and kubernetes::Api::Call().
absl::StatusOr<std::string> PublishedMetricsToken(const kubernetes::Api& api,
                                                  const std::string& k8s_namespace);

// Whether the operators' Secret is there, such as from a time when it was published. Errors: as
// kubernetes::StatusOfAnswer() and kubernetes::Api::Call().
absl::StatusOr<bool> HasOperatorSecret(const kubernetes::Api& api,
                                       const std::string& k8s_namespace);

}  // namespace spoke::ipam
