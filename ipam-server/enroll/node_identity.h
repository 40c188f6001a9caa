// What a node's certificate proves beyond its name: its machine, and its labels. Pure, thread-safe.
//
// The server learns both from the cluster's API server when the node's agent enrolls, and writes
// them into the certificate as URIs of the subject's alternative names (RFC 5280, section 4.2.1.6).
// An agent can then not choose another machine's NIC, nor the pools and policies of other nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/enroll/enrollment_decision.h"
#include "ipam-server/ledger/node_record.h"

namespace spoke::ipam {

// The scheme of the URI that has a node's labels.
inline constexpr std::string_view kNodeScheme = "spoke-node:";

struct NodeIdentity {
  // The instance, as Hello has it; empty: the certificate names no machine of a cloud that we know.
  std::string instance;
  // The node's labels; nullopt: the certificate has none, such as one that an operator has made.
  std::optional<std::map<std::string, std::string>> labels;

  bool operator==(const NodeIdentity&) const = default;
};

// The URIs for a node's certificate: its provider id as Kubernetes has it, if it has one, and
// "spoke-node:NAME?KEY=VALUE&...".
std::vector<std::string> IdentityUris(const NodeFacts& node);

// What `uris` of a certificate for `node_name` say; URIs of other schemes are passed over.
// Errors: kInvalidArgument (labels of another node, or a URI of ours that is none).
absl::StatusOr<NodeIdentity> IdentityIn(const std::vector<std::string>& uris,
                                        std::string_view node_name);

// Makes `hello` say what is proved; an instance is if `proved` has one. Errors: kPermissionDenied
// (its agent names another instance).
absl::Status TakeIdentity(const NodeIdentity& proved, node_api::Hello& hello);

}  // namespace spoke::ipam
