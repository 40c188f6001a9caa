#include "ipam-server/cloud/azure/token_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

constexpr size_t kMaxTokenLength = 65536;
// Managed identities get tokens for a day; nobody gets one for longer than a week.
constexpr absl::Duration kMaxLifetime = absl::Hours(24 * 7);
// A new token is had well before the old one ends, so that hours of trouble do no harm.
constexpr double kRefreshShare = 0.7;
// The metadata service may give the same token again: it must not be asked in a tight loop.
constexpr absl::Duration kMinRefresh = absl::Seconds(30);

bool IsVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

// A tenant is a part of a path: a GUID or a domain.
bool IsTenant(std::string_view text) {
  return !text.empty() && text.front() != '.' && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
  });
}

http::Request ManagedRequest(const Identity& identity, const Endpoints& endpoints) {
  std::vector<std::pair<std::string, std::string>> query = {
      {"api-version", "2018-02-01"}, {"resource", endpoints.resource_manager + "/"}};
  if (!identity.client_id.empty()) query.emplace_back("client_id", identity.client_id);
  return {.method = "GET",
          .url = fmt::format("{}/metadata/identity/oauth2/token?{}", endpoints.metadata,
                             EncodeForm(query)),
          .headers = {{"Metadata", "true"}}};
}

// A number, or a text of one: the metadata service writes all values as text.
std::optional<int64_t> NumberMember(const json& object, std::string_view name) {
  const json* member = json_text::FindMember(object, name);
  if (member == nullptr) return std::nullopt;
  if (member->is_number_integer()) {
    constexpr uint64_t kMax = uint64_t{1} << 62U;
    if (const auto* positive = member->get_ptr<const json::number_unsigned_t*>()) {
      if (*positive > kMax) return std::nullopt;
      return static_cast<int64_t>(*positive);
    }
    return *member->get_ptr<const json::number_integer_t*>();
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(json_text::StringMember(object, name), &number)) return std::nullopt;
  return number;
}

std::optional<absl::Time> DateOf(const http::Response& response) {
  const auto date = response.headers.Find("Date");
  absl::Time time;
  std::string error;
  if (!date || !absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", std::string(*date), &time, &error)) {
    return std::nullopt;
  }
  return time;
}

std::optional<absl::Duration> LifetimeOf(const json& body, const http::Response& response,
                                         absl::Time now) {
  std::optional<absl::Duration> lifetime;
  if (const auto seconds = NumberMember(body, "expires_in"); seconds && *seconds > 0) {
    lifetime = absl::Seconds(*seconds);
  }
  const auto expires_on = NumberMember(body, "expires_on");
  if (!expires_on) return lifetime;
  const absl::Duration left = absl::FromUnixSeconds(*expires_on) - DateOf(response).value_or(now);
  // Nobody sends a token that is over: then it is our clock that is wrong.
  if (left <= absl::ZeroDuration()) return lifetime;
  return lifetime ? std::min(*lifetime, left) : left;
}

}  // namespace

std::string Describe(const Identity& identity) {
  const std::string client = fmt::format("client id {}", json_text::Excerpt(identity.client_id));
  switch (identity.kind) {
    case Identity::Kind::kManaged:
      return identity.client_id.empty() ? std::string("the machine's own managed identity")
                                        : fmt::format("the managed identity with {}", client);
    case Identity::Kind::kWorkload:
      return fmt::format("the workload identity with {} of tenant {}", client,
                         json_text::Excerpt(identity.tenant));
    case Identity::Kind::kClientSecret:
      break;
  }
  return fmt::format("the application with {} of tenant {}", client,
                     json_text::Excerpt(identity.tenant));
}

absl::StatusOr<http::Request> BuildTokenRequest(const Identity& identity,
                                                const Endpoints& endpoints,
                                                std::string_view credential) {
  if (identity.kind == Identity::Kind::kManaged) return ManagedRequest(identity, endpoints);
  if (!IsTenant(identity.tenant) || identity.client_id.empty()) {
    return absl::FailedPreconditionError("it needs a tenant and a client id");
  }
  const absl::string_view trimmed =
      absl::StripAsciiWhitespace({credential.data(), credential.size()});
  if (trimmed.empty() || trimmed.size() > kMaxTokenLength) {
    return absl::FailedPreconditionError(
        fmt::format("its file holds {} characters that could be a credential", trimmed.size()));
  }
  std::vector<std::pair<std::string, std::string>> form = {
      {"grant_type", "client_credentials"},
      {"client_id", identity.client_id},
      {"scope", endpoints.resource_manager + "/.default"}};
  if (identity.kind == Identity::Kind::kWorkload) {
    form.emplace_back("client_assertion_type",
                      "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    form.emplace_back("client_assertion", std::string(trimmed));
  } else {
    form.emplace_back("client_secret", std::string(trimmed));
  }
  return http::Request{
      .method = "POST",
      .url = fmt::format("{}/{}/oauth2/v2.0/token", endpoints.authority, identity.tenant),
      .headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                  {"Accept", "application/json"}},
      .body = EncodeForm(form)};
}

absl::StatusOr<Token> DecodeToken(const http::Response& response, absl::Time now) {
  // The error leaves out the parser's words: they quote what may hold a token.
  const auto body = json_text::ParseJsonObject(response.body);
  if (!body.ok()) return absl::InvalidArgumentError("the answer is no JSON object");
  Token token;
  token.text = json_text::StringMember(*body, "access_token");
  if (token.text.empty() || token.text.size() > kMaxTokenLength || !IsVisible(token.text)) {
    return absl::InvalidArgumentError("the answer holds no token that could be sent");
  }
  const std::string type = json_text::StringMember(*body, "token_type");
  if (!type.empty() && !absl::EqualsIgnoreCase(type, "Bearer")) {
    return absl::InvalidArgumentError(
        fmt::format("the token is of type \"{}\", not Bearer", json_text::Excerpt(type)));
  }
  const auto lifetime = LifetimeOf(*body, response, now);
  if (!lifetime) return absl::InvalidArgumentError("the token does not say how long it lives");
  const absl::Duration bounded = std::min(*lifetime, kMaxLifetime);
  token.expires = now + bounded;
  token.refresh = now + std::max(kMinRefresh, bounded * kRefreshShare);
  return token;
}

std::string DescribeTokenError(const http::Response& response) {
  std::string text = fmt::format("HTTP {}", response.status);
  const auto body = json_text::ParseJsonObject(response.body);
  if (!body.ok()) return text;
  const std::string error = json_text::StringMember(*body, "error");
  const std::string description = json_text::StringMember(*body, "error_description");
  if (!error.empty()) text += fmt::format(", {}", json_text::Excerpt(error));
  if (!description.empty()) text += fmt::format(": {}", json_text::Excerpt(description));
  return text;
}

std::string EncodeForm(const std::vector<std::pair<std::string, std::string>>& fields) {
  const auto encode = [](std::string_view text) {
    std::string encoded;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
        encoded += c;
      } else {
        encoded += fmt::format("%{:02X}", byte);
      }
    }
    return encoded;
  };
  std::string form;
  for (const auto& [name, value] : fields) {
    if (!form.empty()) form += '&';
    form += encode(name) + '=' + encode(value);
  }
  return form;
}

}  // namespace spoke::ipam::azure
