// Who may do what of the operators' API: roles, and one table with the least role for each call.
// Pure, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace spoke::ipam {

// Each may do what the one before it may.
enum class Role {
  kViewer,    // Looks, and tries changes without making them.
  kOperator,  // Acts on nodes, addresses and reservations.
  kAdmin,     // Changes policy, and does what cannot be undone.
};

// Returns "viewer", "operator" or "admin".
std::string_view NameOf(Role role);

// The organization (O=) of the certificates of a role: "spoke:viewers", "spoke:operators" or
// "spoke:admins". No certificate of a node has any.
std::string_view OrganizationOf(Role role);

// Returns whether the certificate is made for operators, whatever its role: such a one is no
// agent's.
bool IsForOperators(const std::vector<std::string>& organizations);

// Returns the highest role that the organizations of a certificate give; nullopt: none.
std::optional<Role> RoleOf(const std::vector<std::string>& organizations);

// Who makes a call.
struct Operator {
  std::string name;  // The certificate's common name, or "uid 0".
  Role role = Role::kViewer;
  std::string from;         // "10.0.0.7", or "unix socket".
  std::string serial = "";  // Of the certificate; empty: there is none at the socket.

  bool operator==(const Operator&) const = default;
};

// What is asked for: a call of AdminService, and how.
struct Asked {
  std::string_view method;  // "SetNodeMode"
  bool dry_run = false;     // It is only tried; whoever may look may do so.
  bool force = false;       // It overrides what the agent says, which takes an admin.
};

// Returns the least role for a call; nullopt: there is no such call.
std::optional<Role> LeastRole(std::string_view method);

// Errors: kPermissionDenied (the role does not reach; the message has the one that would).
absl::Status Authorize(const Operator& who, const Asked& asked);

}  // namespace spoke::ipam
