#include "admin-cli/dashboard/access.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "fmt/core.h"

namespace spoke::ctl {
namespace {

constexpr std::string_view kCookie = "spoke_dashboard";

// Takes as long for a wrong text as for the right one of that length.
bool IsSecret(std::string_view text, std::string_view secret) {
  if (text.size() != secret.size() || secret.empty()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    difference |= static_cast<unsigned char>(text[i]) ^ static_cast<unsigned char>(secret[i]);
  }
  return difference == 0;
}

// The port may be any: what ssh forwards has another one at the browser's end.
bool IsLoopbackHost(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || port.find_first_not_of("0123456789") != std::string_view::npos) {
      return false;
    }
    host = host.substr(0, colon);
  }
  return host == "127.0.0.1" || absl::AsciiStrToLower(std::string(host)) == "localhost";
}

bool HasCookie(std::string_view cookies, std::string_view token) {
  const std::string wanted = fmt::format("{}=", kCookie);
  while (!cookies.empty()) {
    const size_t end = cookies.find(';');
    std::string_view cookie = cookies.substr(0, end);
    cookie.remove_prefix(std::min(cookie.find_first_not_of(' '), cookie.size()));
    if (cookie.starts_with(wanted) && IsSecret(cookie.substr(wanted.size()), token)) return true;
    if (end == std::string_view::npos) break;
    cookies.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

Admission Admit(const DashboardKeys& keys, const PageRequest& request) {
  if (!IsLoopbackHost(request.host)) return Admission::kWrongHost;
  if (request.method != "GET" && request.method != "HEAD") return Admission::kWrongMethod;
  if (!request.path.starts_with(RootOf(keys))) return Admission::kWrongPlace;
  if (request.path == RootOf(keys) && !request.token.empty()) {
    return IsSecret(request.token, keys.token) ? Admission::kLogIn : Admission::kWrongToken;
  }
  if (!request.fetch_site.empty() && request.fetch_site != "same-origin" &&
      request.fetch_site != "none") {
    return Admission::kWrongOrigin;
  }
  return HasCookie(request.cookie, keys.token) ? Admission::kShown : Admission::kWrongToken;
}

std::string_view PathBelow(const DashboardKeys& keys, std::string_view path) {
  const std::string root = RootOf(keys);
  if (!path.starts_with(root)) return "";
  return path.substr(root.size());
}

std::string CookieOf(const DashboardKeys& keys) {
  return fmt::format("{}={}; Path={}; HttpOnly; SameSite=Strict", kCookie, keys.token,
                     RootOf(keys));
}

std::string RootOf(const DashboardKeys& keys) { return fmt::format("/{}/", keys.place); }

}  // namespace spoke::ctl
