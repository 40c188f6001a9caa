// How a token for Azure Resource Manager is asked for, and what the answer says. Pure.
//
// https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
// https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
// Nothing here puts a token, an assertion or a secret into an error.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/settings.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

// Returns text for people: "the managed identity with client id 1234".
std::string Describe(const Identity& identity);

// `credential` is the content of the identity's file; a managed identity has none.
// Errors: kFailedPrecondition (a file that is empty or too long, a tenant or client that is none).
absl::StatusOr<http::Request> BuildTokenRequest(const Identity& identity,
                                                const Endpoints& endpoints,
                                                std::string_view credential);

struct Token {
  std::string text;  // The text for "Authorization: Bearer".
  absl::Time expires;
  absl::Time refresh;  // The time from which a new one is to be had.
};

// Decodes a response with status 200 that came at `now`. A token lives as long as the more careful
// of expires_in, which counts from now, and expires_on, which is read by the clock of who sent it
// (Date) where that is known: ours may be wrong.
// Errors: kInvalidArgument (not the documented shape).
absl::StatusOr<Token> DecodeToken(const http::Response& response, absl::Time now);

// What a refusal says: {"error":"invalid_client","error_description":"..."}. One line.
std::string DescribeTokenError(const http::Response& response);

// "a=1&b=%2F", as HTML forms are sent.
std::string EncodeForm(const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace spoke::ipam::azure
