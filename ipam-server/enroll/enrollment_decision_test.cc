#include "ipam-server/enroll/enrollment_decision.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

const EnrollRules kRules{"spoke-ipam-server", "spoke-system", "spoke-netagent"};
const TokenFacts kGoodToken{.authenticated = true,
                            .user = "system:serviceaccount:spoke-system:spoke-netagent",
                            .audiences = {"spoke-ipam-server"},
                            .pod_name = "spoke-netagent-x7k2p",
                            .pod_uid = "uid-1"};
const PodFacts kGoodPod{.k8s_namespace = "spoke-system",
                        .name = "spoke-netagent-x7k2p",
                        .uid = "uid-1",
                        .node_name = "node-1",
                        .service_account = "spoke-netagent"};

void ExpectRefused(const absl::Status& status, absl::StatusCode code, std::string_view text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(text)));
}

TEST(Enrollment, TheAgentOfANodeGetsItsCertificate) {
  EXPECT_TRUE(CheckEnrollRequest("node-1", "8f2c1c5e-7d0b", "a.b.c").ok());
  EXPECT_TRUE(CheckEnrollRequest("node-1", "", "a.b.c").ok());
  EXPECT_TRUE(CheckToken(kGoodToken, kRules).ok());
  EXPECT_TRUE(CheckPod(kGoodToken, kGoodPod, "node-1", kRules).ok());
}

TEST(Enrollment, ACertificateTakesTheTokensPlace) {
  EXPECT_TRUE(CheckEnrollRequest("node-1", "", "", "PEM").ok());
  EXPECT_TRUE(CheckEnrollRequest("node-1", "", "a.b.c", "PEM").ok());
  ExpectRefused(CheckEnrollRequest("node-1", "", "", std::string(12'289, 'x')),
                absl::StatusCode::kInvalidArgument, "certificate");
  ExpectRefused(CheckEnrollRequest("node-1", "", "a b", "PEM"), absl::StatusCode::kInvalidArgument,
                "token");
}

TEST(Enrollment, ARequestThatCannotBeIsRefusedBeforeAnybodyIsAsked) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ExpectRefused(CheckEnrollRequest("", "", "a"), invalid, "node_name");
  ExpectRefused(CheckEnrollRequest("Node", "", "a"), invalid, "node_name");
  ExpectRefused(CheckEnrollRequest("spoke:operator", "", "a"), invalid, "node_name");
  ExpectRefused(CheckEnrollRequest("n", std::string(257, 'a'), "a"), invalid, "vm_id");
  ExpectRefused(CheckEnrollRequest("n", "a\nb", "a"), invalid, "vm_id");
  ExpectRefused(CheckEnrollRequest("n", "", ""), invalid, "it has 0");
  ExpectRefused(CheckEnrollRequest("n", "", "a\r\nX: y"), invalid, "token");
  ExpectRefused(CheckEnrollRequest("n", "", std::string(20'000, 'a')), invalid, "it has 20000");
}

TEST(Enrollment, ATokenThatIsNoGoodIsRefused) {
  const auto unauthenticated = absl::StatusCode::kUnauthenticated;
  TokenFacts token = kGoodToken;
  token.authenticated = false;
  token.error = "token has expired";
  ExpectRefused(CheckToken(token, kRules), unauthenticated, "no good: token has expired");
  token = kGoodToken;
  token.audiences = {"https://kubernetes.default.svc"};
  ExpectRefused(CheckToken(token, kRules), unauthenticated, "not for the audience spoke-ipam-serv");
  token.audiences = {};
  ExpectRefused(CheckToken(token, kRules), unauthenticated, "not for the audience");
}

TEST(Enrollment, OthersThanAgentsAreRefused) {
  const auto denied = absl::StatusCode::kPermissionDenied;
  for (const char* user :
       {"system:serviceaccount:default:spoke-netagent",
        "system:serviceaccount:spoke-system:default", "system:node:node-1", "admin", ""}) {
    TokenFacts token = kGoodToken;
    token.user = user;
    ExpectRefused(CheckToken(token, kRules), denied, "and agents are system:serviceaccount");
  }
  TokenFacts token = kGoodToken;
  token.pod_name = "";
  ExpectRefused(CheckToken(token, kRules), denied, "bound to no pod");
  token = kGoodToken;
  token.pod_uid = "";
  ExpectRefused(CheckToken(token, kRules), denied, "bound to no pod");
}

TEST(Enrollment, AnAgentGetsNoOtherNodesCertificate) {
  const auto denied = absl::StatusCode::kPermissionDenied;
  ExpectRefused(CheckPod(kGoodToken, kGoodPod, "node-2", kRules), denied,
                "runs on node node-1, and asks for node node-2");
  PodFacts pod = kGoodPod;
  pod.node_name = "";
  ExpectRefused(CheckPod(kGoodToken, pod, "node-1", kRules), denied, "runs on no node");
  // An empty name in the request does not fit a pod that is nowhere.
  EXPECT_FALSE(CheckEnrollRequest("", "", "a").ok());
  pod = kGoodPod;
  pod.service_account = "default";
  ExpectRefused(CheckPod(kGoodToken, pod, "node-1", kRules), denied, "runs as default");
  pod = kGoodPod;
  pod.uid = "uid-2";
  ExpectRefused(CheckPod(kGoodToken, pod, "node-1", kRules), absl::StatusCode::kUnauthenticated,
                "of an earlier pod spoke-system/spoke-netagent-x7k2p");
}

}  // namespace
}  // namespace spoke::ipam
