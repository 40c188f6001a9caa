// Whether a pod that asks for a node's certificate is that node's agent. Pure, thread-safe.
//
// What is known comes from the cluster's API server: a token tells the pod that it was made for
// (TokenReview), and the pod tells the node that the scheduler has bound it to. So a node's agent
// gets that node's certificate and no other, and nothing else in the cluster gets any.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace spoke::ipam {

struct EnrollRules {
  std::string audience;         // Whom tokens are for.
  std::string k8s_namespace;    // The namespace of agents' pods.
  std::string service_account;  // The agents' account.
};

// What the API server says of a token (authentication.k8s.io/v1, TokenReviewStatus).
struct TokenFacts {
  bool authenticated = false;
  std::string error;                   // Why it is not.
  std::string user;                    // "system:serviceaccount:NAMESPACE:NAME"
  std::vector<std::string> audiences;  // The audiences asked about for which it is good.
  std::string pod_name;                // Empty: the token is bound to no pod.
  std::string pod_uid;
  std::vector<std::string> groups = {};

  bool operator==(const TokenFacts&) const = default;
};

// What the API server says of a node (core/v1, Node).
struct NodeFacts {
  std::string name;
  // The id of its machine, as the cloud's controller has set it: "azure:///subscriptions/...";
  // empty: none has. It has only signs that a URI may have.
  std::string provider_id;
  std::map<std::string, std::string> labels;  // The labels in Kubernetes: no sign of them is one of
                                              // those that divide a URI.

  bool operator==(const NodeFacts&) const = default;
};

// What the API server says of a pod (core/v1, Pod).
struct PodFacts {
  std::string k8s_namespace;
  std::string name;
  std::string uid;
  std::string node_name;  // Empty: not scheduled yet.
  std::string service_account;

  bool operator==(const PodFacts&) const = default;
};

// Whether a request could be an agent's at all: before anybody is asked anything. Without a token
// it needs `certificate`, which it shows in place of one. Errors: kInvalidArgument (no name that a
// node may have, neither of the two, or something is too long).
absl::Status CheckEnrollRequest(std::string_view node_name, std::string_view vm_id,
                                std::string_view token, std::string_view certificate = "");

// Whether the token is an agent's and tells its pod. Errors: kUnauthenticated (no good, or for
// another audience), kPermissionDenied (another service account's, or bound to no pod).
absl::Status CheckToken(const TokenFacts& token, const EnrollRules& rules);

// Whether the pod of a token that CheckToken() takes runs on `node_name`. Errors: kUnauthenticated
// (the pod is another one of that name), kPermissionDenied (not the agents' service account, not
// scheduled, or on another node).
absl::Status CheckPod(const TokenFacts& token, const PodFacts& pod, std::string_view node_name,
                      const EnrollRules& rules);

}  // namespace spoke::ipam
