#include "ipam-server/core/enrollment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

const EnrollRules rules{"spoke-ipam-server", "spoke-system", "spoke-netagent"};
const TokenFacts good_token{.authenticated = true,
                            .user = "system:serviceaccount:spoke-system:spoke-netagent",
                            .audiences = {"spoke-ipam-server"},
                            .pod_name = "spoke-netagent-x7k2p",
                            .pod_uid = "uid-1"};
const PodFacts good_pod{.k8s_namespace = "spoke-system",
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
  EXPECT_TRUE(CheckToken(good_token, rules).ok());
  EXPECT_TRUE(CheckPod(good_token, good_pod, "node-1", rules).ok());
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
  TokenFacts token = good_token;
  token.authenticated = false;
  token.error = "token has expired";
  ExpectRefused(CheckToken(token, rules), unauthenticated, "no good: token has expired");
  token = good_token;
  token.audiences = {"https://kubernetes.default.svc"};
  ExpectRefused(CheckToken(token, rules), unauthenticated, "not for the audience spoke-ipam-serv");
  token.audiences = {};
  ExpectRefused(CheckToken(token, rules), unauthenticated, "not for the audience");
}

TEST(Enrollment, OthersThanAgentsAreRefused) {
  const auto denied = absl::StatusCode::kPermissionDenied;
  for (const char* user :
       {"system:serviceaccount:default:spoke-netagent",
        "system:serviceaccount:spoke-system:default", "system:node:node-1", "admin", ""}) {
    TokenFacts token = good_token;
    token.user = user;
    ExpectRefused(CheckToken(token, rules), denied, "and agents are system:serviceaccount");
  }
  TokenFacts token = good_token;
  token.pod_name = "";
  ExpectRefused(CheckToken(token, rules), denied, "bound to no pod");
  token = good_token;
  token.pod_uid = "";
  ExpectRefused(CheckToken(token, rules), denied, "bound to no pod");
}

TEST(Enrollment, AnAgentGetsNoOtherNodesCertificate) {
  const auto denied = absl::StatusCode::kPermissionDenied;
  ExpectRefused(CheckPod(good_token, good_pod, "node-2", rules), denied,
                "runs on node node-1, and asks for node node-2");
  PodFacts pod = good_pod;
  pod.node_name = "";
  ExpectRefused(CheckPod(good_token, pod, "node-1", rules), denied, "runs on no node");
  // An empty name in the request does not fit a pod that is nowhere.
  EXPECT_FALSE(CheckEnrollRequest("", "", "a").ok());
  pod = good_pod;
  pod.service_account = "default";
  ExpectRefused(CheckPod(good_token, pod, "node-1", rules), denied, "runs as default");
  pod = good_pod;
  pod.uid = "uid-2";
  ExpectRefused(CheckPod(good_token, pod, "node-1", rules), absl::StatusCode::kUnauthenticated,
                "of an earlier pod spoke-system/spoke-netagent-x7k2p");
}

}  // namespace
}  // namespace spoke::ipam
