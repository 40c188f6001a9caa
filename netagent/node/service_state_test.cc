#include "netagent/node/service_state.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ServiceFacts Well() { return {.server = "ipam:7443", .session_established = true, .nic = "eth0"}; }

TEST(ServiceState, IsReadyOnceASessionWasThereAndNothingBlocks) {
  EXPECT_THAT(ReasonsNotReady(Well()), IsEmpty());
}

TEST(ServiceState, AServerThatGoesAwayLaterChangesNothing) {
  ServiceFacts facts = Well();
  facts.last_attempt = absl::UnavailableError("Socket closed");
  EXPECT_THAT(ReasonsNotReady(facts), IsEmpty());
}

TEST(ServiceState, BeforeTheFirstSessionItSaysWhatTheLastAttemptMet) {
  ServiceFacts facts = Well();
  facts.session_established = false;
  EXPECT_THAT(ReasonsNotReady(facts),
              ElementsAre("no session with the server at ipam:7443 yet: it is being connected to"));
  facts.last_attempt = absl::UnavailableError(
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.4:7443: Failed to "
      "connect to remote host: Connection refused");
  EXPECT_THAT(
      ReasonsNotReady(facts),
      ElementsAre("no session with the server at ipam:7443 since this agent started: failed to "
                  "connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.4:7443: Failed to "
                  "connect to remote host: Connection refused; nobody listens there: check that "
                  "spoke-ipam-server runs, and `server`"));
}

TEST(ServiceState, AVersionSkewIsSaidAsItIs) {
  ServiceFacts facts = Well();
  facts.session_established = false;
  facts.last_attempt = absl::FailedPreconditionError("a and b: upgrade a first, to 0.2 or 0.3");
  EXPECT_THAT(ReasonsNotReady(facts),
              ElementsAre("no session with the server at ipam:7443 since this agent started: a and "
                          "b: upgrade a first, to 0.2 or 0.3"));
}

TEST(ServiceState, WithoutACertificateThatIsTheReason) {
  ServiceFacts facts = Well();
  facts.session_established = false;
  facts.no_certificate = "the token is of another pod; restart it";
  EXPECT_THAT(ReasonsNotReady(facts),
              ElementsAre("no certificate for sessions with the server at ipam:7443 yet: the token "
                          "is of another pod; restart it"));
  facts.session_established = true;
  EXPECT_THAT(ReasonsNotReady(facts), IsEmpty());
}

TEST(ServiceState, AllReasonsAreThereWithWhatBlocksPodsFirst) {
  ServiceFacts facts = Well();
  facts.session_established = false;
  facts.nic_state = absl::NotFoundError("no such device");
  facts.cni_reason = "the directory /opt/cni/bin is full";
  facts.node_findings = {"nf_tables is missing", "rp_filter is strict"};
  EXPECT_THAT(ReasonsNotReady(facts),
              ElementsAre("nf_tables is missing", "rp_filter is strict",
                          HasSubstr("device eth0 cannot be read: no such device"),
                          HasSubstr("no session"), "the directory /opt/cni/bin is full"));
}

// The texts are what gRPC 1.51 and the server say.
TEST(ServiceState, EachKindOfFailureHasItsRemedy) {
  const std::pair<absl::Status, const char*> cases[] = {
      {absl::UnavailableError("failed to connect to all addresses; last error: UNKNOWN: "
                              "ipv4:10.0.0.4:7443: Ssl handshake failed: SSL_ERROR_SSL: "
                              "error:0A000086:SSL routines::certificate verify failed"),
       "do not accept each other's certificate"},
      {absl::UnavailableError("failed to connect to all addresses; last error: UNKNOWN: Peer name "
                              "ipam is not in peer certificate"),
       "server_name"},
      {absl::UnavailableError("failed to connect to all addresses; last error: UNKNOWN: "
                              "ipv4:10.0.0.4:7443: Ssl handshake failed: SSL_ERROR_SSL: "
                              "error:0A00010B:SSL routines::wrong version number"),
       "no TLS with what listens there"},
      {absl::UnavailableError(
           "DNS resolution failed for ipam:7443: C-ares status is not "
           "ARES_SUCCESS qtype=A name=ipam is_balancer=0: Domain name not found"),
       "not known"},
      {absl::UnavailableError("failed to connect to all addresses; last error: UNKNOWN: "
                              "ipv4:10.0.0.4:7443: connection attempt timed out before receiving "
                              "SETTINGS frame"),
       "filters"},
      {absl::PermissionDeniedError("the certificate does not bear the node name node1"),
       "node_name"},
      {absl::UnimplementedError(""), "another program"},
      {absl::InternalError("what else"), "check `server`"}};
  for (const auto& [status, remedy] : cases) {
    EXPECT_THAT(RemedyFor(status), HasSubstr(remedy)) << status;
  }
}

}  // namespace
}  // namespace spoke::netagent
