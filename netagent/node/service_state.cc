#include "netagent/node/service_state.h"

#include <algorithm>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

bool HasAnyOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

std::string SessionReason(const ServiceFacts& facts) {
  if (!facts.no_certificate.empty()) {
    return fmt::format("no certificate for sessions with the server at {} yet: {}", facts.server,
                       facts.no_certificate);
  }
  if (facts.last_attempt.ok()) {
    return fmt::format("no session with the server at {} yet: it is being connected to",
                       facts.server);
  }
  const std::string_view message = base::MessageOf(facts.last_attempt);
  const std::string remedy = RemedyFor(facts.last_attempt);
  return fmt::format("no session with the server at {} since this agent started: {}{}{}",
                     facts.server, message, remedy.empty() ? "" : "; ", remedy);
}

}  // namespace

std::string RemedyFor(const absl::Status& attempt) {
  const std::string_view text = base::MessageOf(attempt);
  switch (attempt.code()) {
    case absl::StatusCode::kFailedPrecondition:
      return "";  // The text says itself what to do.
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return "give this node a certificate that bears its node_name (tls.certificate)";
    case absl::StatusCode::kUnimplemented:
      return "another program listens there: set `server` to spoke-ipam-server's agents' address";
    default:
      break;
  }
  // This goes before addresses: a failed handshake is told with the address it was tried at.
  if (HasAnyOf(text, {"certificate", "Peer name", "CERTIFICATE"})) {
    return "the two do not accept each other's certificate: check tls.ca, the certificates' end, "
           "and server_name, which the server's certificate must bear";
  }
  if (HasAnyOf(text, {"andshake", "SSL", "WRONG_VERSION", "Socket closed"})) {
    return "no TLS with what listens there: check `server` and `tls` on both sides";
  }
  if (HasAnyOf(text, {"DNS", "resolution", "Name or service not known"})) {
    return "the name in `server` is not known: correct it, or give an address";
  }
  if (HasAnyOf(text, {"refused"})) {
    return "nobody listens there: check that spoke-ipam-server runs, and `server`";
  }
  if (HasAnyOf(text, {"timed out", "Timeout", "imeout occurred", "unreachable", "No route"}) ||
      absl::IsDeadlineExceeded(attempt)) {
    return "nothing comes back from there: check `server`, and what filters lie between";
  }
  return "check `server` in the configuration, and the server's log";
}

std::vector<std::string> ReasonsNotReady(const ServiceFacts& facts) {
  std::vector<std::string> reasons = facts.node_findings;
  if (!facts.nic_state.ok()) {
    reasons.push_back(
        fmt::format("the device {} cannot be read: {}; check `nic`, and that it is up", facts.nic,
                    base::MessageOf(facts.nic_state)));
  }
  if (!facts.session_established) reasons.push_back(SessionReason(facts));
  if (!facts.cni_reason.empty()) reasons.push_back(facts.cni_reason);
  return reasons;
}

}  // namespace spoke::netagent
