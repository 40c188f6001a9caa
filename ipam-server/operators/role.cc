#include "ipam-server/operators/role.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kOrganizationPrefix = "spoke:";
constexpr std::array kRoles = {Role::kAdmin, Role::kOperator, Role::kViewer};

constexpr Role kViewer = Role::kViewer;
constexpr Role kOperator = Role::kOperator;
constexpr Role kAdmin = Role::kAdmin;

// Every call of AdminService (proto/spoke/v1/admin.proto), in its order.
constexpr std::array kLeastRoles = std::to_array<std::pair<std::string_view, Role>>({
    {"GetStatus", kViewer},
    {"Unfreeze", kAdmin},
    {"GetRecovery", kViewer},
    {"ConfirmRecovery", kAdmin},
    {"ListPools", kViewer},
    {"ListNodes", kViewer},
    {"GetNode", kViewer},
    {"SetNodeMode", kOperator},
    {"RetryNode", kOperator},
    {"StartMaintenance", kOperator},
    {"GetNodeData", kViewer},
    {"ForgetNode", kAdmin},
    {"RevokeIdentity", kAdmin},
    {"UnrevokeIdentity", kAdmin},
    {"ListRevoked", kViewer},
    {"ListRoots", kViewer},
    {"RotateAuthority", kAdmin},
    {"ListAddresses", kViewer},
    {"GetAddress", kViewer},
    {"GetAddressHistory", kViewer},
    {"ReleaseAddress", kOperator},
    {"QuarantineAddress", kOperator},
    {"CreateReservation", kOperator},
    {"ListReservations", kViewer},
    {"DeleteReservation", kOperator},
    {"Apply", kAdmin},
    {"DeleteObjects", kAdmin},
    {"GetObjects", kViewer},
    {"GetRollout", kViewer},
    {"ResumeRollout", kOperator},
    {"UndoRollout", kAdmin},
    {"ListOperatorLog", kViewer},
    {"EstimateCuts", kViewer},
    {"Audit", kOperator},
    {"Explain", kViewer},
    {"WhatIf", kViewer},
    {"GetTop", kViewer},
    {"GetTraffic", kViewer},
    {"GetTrafficCourse", kViewer},
    {"GetBudgets", kViewer},
    {"VerifyPolicy", kOperator},
    {"GetReachability", kViewer},
    {"CheckNodes", kOperator},
    {"ListEvents", kViewer},
    {"Backup", kAdmin},
});

}  // namespace

std::string_view NameOf(Role role) {
  switch (role) {
    case Role::kViewer:
      return "viewer";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

std::string_view OrganizationOf(Role role) {
  switch (role) {
    case Role::kViewer:
      return "spoke:viewers";
    case Role::kOperator:
      return "spoke:operators";
    case Role::kAdmin:
      return "spoke:admins";
  }
  return "";
}

bool IsForOperators(const std::vector<std::string>& organizations) {
  return std::any_of(organizations.begin(), organizations.end(),
                     [](const std::string& organization) {
                       return organization.starts_with(kOrganizationPrefix);
                     });
}

std::optional<Role> RoleOf(const std::vector<std::string>& organizations) {
  for (const Role role : kRoles) {
    if (std::find(organizations.begin(), organizations.end(), OrganizationOf(role)) !=
        organizations.end()) {
      return role;
    }
  }
  return std::nullopt;
}

std::optional<Role> LeastRole(std::string_view method) {
  const auto* const row =
      std::find_if(kLeastRoles.begin(), kLeastRoles.end(),
                   [&](const auto& candidate) { return candidate.first == method; });
  if (row == kLeastRoles.end()) return std::nullopt;
  return row->second;
}

absl::Status Authorize(const Operator& who, const Asked& asked) {
  Role least = LeastRole(asked.method).value_or(kAdmin);
  if (asked.force) least = kAdmin;
  if (asked.dry_run) least = kViewer;
  if (who.role >= least) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "{} is {} here, and {} takes the role {}; nothing was changed. Ask for a certificate of {}",
      who.name, NameOf(who.role), asked.method, NameOf(least), OrganizationOf(least)));
}

}  // namespace spoke::ipam
