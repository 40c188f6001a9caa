#include "ipam-server/cloud/azure/resources/arm_error.h"

#include <string>
#include <utility>

#include "fmt/core.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"

namespace spoke::ipam::azure {
namespace {

ArmError Decode(int status, std::string body, http::Headers headers = {}) {
  return DecodeArmError({status, std::move(headers), std::move(body)}, absl::UnixEpoch());
}

std::string Body(const std::string& code, const std::string& message = "") {
  return nlohmann::json{{"error", {{"code", code}, {"message", message}}}}.dump();
}

struct Case {
  const char* name;
  int status;
  std::string body;
  ErrorKind want;
};

class ArmErrorKindTest : public testing::TestWithParam<Case> {};

TEST_P(ArmErrorKindTest, SaysWhatToDo) {
  EXPECT_EQ(Decode(GetParam().status, GetParam().body).kind, GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Codes, ArmErrorKindTest,
    testing::Values(
        Case{"Throttled", 429, Body("SubscriptionRequestsThrottled"), ErrorKind::kThrottled},
        Case{"ThrottledWithoutBody", 429, "", ErrorKind::kThrottled},
        Case{"CallLimit", 429, Body("RateLimitExceeded"), ErrorKind::kThrottled},
        Case{"AnotherOperation", 429, Body("RetryableError"), ErrorKind::kAnotherOperation},
        Case{"AnotherOperation409", 409, Body("AnotherOperationInProgress"),
             ErrorKind::kAnotherOperation},
        Case{"Superseded", 0, Body("CanceledAndSupersededDueToAnotherOperation"),
             ErrorKind::kPreempted},
        Case{"Preempted", 409,
             Body("Conflict", "Operation execution has been preempted by a more recent operation."),
             ErrorKind::kPreempted},
        Case{"Precondition", 412, Body("PreconditionFailed"), ErrorKind::kPrecondition},
        Case{"PreconditionWithoutBody", 412, "", ErrorKind::kPrecondition},
        Case{"Token", 401, Body("ExpiredAuthenticationToken"), ErrorKind::kUnauthenticated},
        Case{"Forbidden", 403, Body("AuthorizationFailed"), ErrorKind::kForbidden},
        Case{"ForbiddenByHtml", 403, "<html>no</html>", ErrorKind::kForbidden},
        Case{"Locked", 409, Body("ScopeLocked"), ErrorKind::kLocked},
        Case{"OtherConflict", 409, Body("OperationNotAllowed"), ErrorKind::kRefused},
        Case{"ConflictOfAnUnknownKind", 409, Body("SomethingNew"), ErrorKind::kRefused},
        Case{"ConflictWithoutBody", 409, "", ErrorKind::kRefused},
        Case{"Race", 409,
             Body("Conflict", "The request failed due to conflict with a concurrent request."),
             ErrorKind::kConflict},
        Case{"Property", 409, Body("PropertyChangeNotAllowed"), ErrorKind::kRefused},
        Case{"Provider", 409, Body("MissingSubscriptionRegistration"), ErrorKind::kRefused},
        Case{"NoProvider", 400, Body("NoRegisteredProviderFound"), ErrorKind::kRefused},
        Case{"GroupGoes", 409, Body("ResourceGroupBeingDeleted"), ErrorKind::kRefused},
        Case{"NoCapacity", 409, Body("OverconstrainedAllocationRequest"), ErrorKind::kRefused},
        Case{"Protected", 409, Body("InstanceProtectedFromScaleSetActions"), ErrorKind::kRefused},
        Case{"ExtensionInOperation", 0, Body("VMExtensionProvisioningError"), ErrorKind::kRefused},
        Case{"Denied", 403, Body("DenyAssignmentAuthorizationFailed"), ErrorKind::kForbidden},
        Case{"Limit", 400, Body("SecondaryIpConfigurationCountPerVMSSVMExceeded"),
             ErrorKind::kLimit},
        Case{"Instance", 400,
             Body("InvalidParameter",
                  "The provided instanceId 84 is not an active Virtual AzureState "
                  "Scale Set VM instanceId."),
             ErrorKind::kInstanceGone},
        Case{"InstanceById", 404,
             Body("NotFound",
                  "Resource /subscriptions/s/resourceGroups/g/providers/"
                  "Microsoft.Compute/virtualMachineScaleSets/p/virtualMachines/3 not "
                  "found."),
             ErrorKind::kInstanceGone},
        Case{"ScaleSet", 404,
             Body("ResourceNotFound",
                  "The Resource 'Microsoft.Compute/virtualMachineScaleSets/p' under resource group "
                  "'g' was not found."),
             ErrorKind::kResourceGone},
        Case{"Subscription", 404, Body("SubscriptionNotFound"), ErrorKind::kGroupGone},
        Case{"BadRequest", 400, Body("InvalidParameter"), ErrorKind::kBadRequest},
        Case{"OtherRequestError", 415, "", ErrorKind::kBadRequest},
        Case{"Timeout", 408, "", ErrorKind::kTransient},
        Case{"Gateway", 502, "<html>Bad Gateway</html>", ErrorKind::kTransient},
        Case{"Unavailable", 503, "upstream", ErrorKind::kTransient},
        Case{"InternalInOperation", 0, Body("InternalExecutionError"), ErrorKind::kTransient},
        Case{"Success", 200, "{}", ErrorKind::kUnknown},
        Case{"UnknownInOperation", 0, Body("SomethingNew"), ErrorKind::kUnknown}),
    [](const auto& test) { return test.param.name; });

TEST(DecodeArmError, ReadsBothEnvelopes) {
  for (const char* body : {R"({"error":{"code":"C","message":"M","target":"T"}})",
                           R"({"code":"C","message":"M","target":"T"})",
                           "\xEF\xBB\xBF{\"code\":\"C\",\"message\":\"M\",\"target\":\"T\"}"}) {
    const ArmError error = Decode(400, body);
    EXPECT_EQ(error.code, "C") << body;
    EXPECT_EQ(error.message, "M") << body;
    EXPECT_EQ(error.target, "T") << body;
  }
}

TEST(DecodeArmError, ReadsErrorsInsideErrorsAndInsideText) {
  const ArmError nested = Decode(
      409,
      R"({"error":{"code":"DeploymentFailed","details":[{"code":"Conflict","message":)"
      R"("{\"error\":{\"code\":\"ResourceFailure\",\"details\":[{\"code\":\"SubnetIsFull\"}]}}"}]}})");
  EXPECT_EQ(nested.kind, ErrorKind::kSubnetFull);
  EXPECT_EQ(nested.details,
            (std::vector<std::string>{"Conflict", "ResourceFailure", "SubnetIsFull"}));
}

TEST(DecodeArmError, IsBoundedWhateverIsNested) {
  std::string body = R"({"code":"Deep"})";
  for (int i = 0; i < 20; ++i) body = R"({"code":"Deep","innererror":)" + body + "}";
  EXPECT_LT(Decode(500, body).details.size(), 10U);
  nlohmann::json wide = {{"code", "Wide"}};
  for (int i = 0; i < 1000; ++i) wide["details"].push_back({{"code", "One"}});
  EXPECT_LE(Decode(500, wide.dump()).details.size(), 16U);
}

TEST(DecodeArmError, FindsHowLongToWait) {
  EXPECT_EQ(Decode(429, "", {{"Retry-After", "17"}}).retry_after, absl::Seconds(17));
  EXPECT_EQ(Decode(429, Body("X", "The call can be retried in 11 seconds.")).retry_after,
            absl::Seconds(11));
  EXPECT_EQ(Decode(429, Body("X", "Please try again after '6' seconds.")).retry_after,
            absl::Seconds(6));
  EXPECT_EQ(Decode(429, Body("X", "The call can be retried in a while.")).retry_after,
            std::nullopt);
}

TEST(DecodeArmError, KeepsWhatAGatewaySays) {
  EXPECT_EQ(Decode(502, "<html>\nBad Gateway</html>").message, "<html> Bad Gateway</html>");
  EXPECT_EQ(Decode(400, R"({"error":"invalid_client","error_description":"AADSTS7000215"})").code,
            "invalid_client");
}

TEST(Describe, IsALineForOperators) {
  const ArmError error =
      Decode(400, R"({"error":{"code":"SubnetIsFull","message":"Subnet S\nis full."}})",
             {{"x-ms-request-id", "r-1"}});
  EXPECT_EQ(Describe(error), "SubnetIsFull: Subnet S is full. (HTTP 400, request r-1)");
  EXPECT_EQ(Describe(DecodeOperationError({{"code", "Oops"}})), "Oops");
  EXPECT_EQ(Describe(Decode(503, "")), "an error (HTTP 503)");
  EXPECT_LT(Describe(Decode(400, Body(std::string(9999, 'c'), std::string(9999, 'm')))).size(),
            600U);
  EXPECT_EQ(ToString(error.kind), "subnet-full");
}

TEST(Describe, TheActionThatIsMissingIsNotCutOff) {
  const std::string action = "Microsoft.Network/networkInterfaces/write";
  const std::string message = "The client '" + std::string(600, 'c') +
                              "' does not have authorization to perform action '" + action + "'";
  EXPECT_NE(Describe(Decode(403, Body("AuthorizationFailed", message))).find(action),
            std::string::npos);
}

TEST(ArmError, TheTableForOperatorsSaysWhatIsDone) {
  const auto table = os::ReadFile(SPOKE_SOURCE_DIR "/docs/AZURE_ERRORS.md");
  ASSERT_TRUE(table.ok()) << table.status();
  size_t rows = 0;
  for (const CodeRule& rule : CodeRules()) {
    const std::string row =
        fmt::format("| `{}{}` | {} |", rule.code, rule.whole ? "" : "…", ToString(rule.kind));
    EXPECT_NE(table->find(row), std::string::npos) << row;
    EXPECT_NE(table->find(fmt::format("\n| {} | ", ToString(rule.kind))), std::string::npos)
        << "nothing says what is done about " << ToString(rule.kind);
    ++rows;
  }
  size_t said = 0;
  for (size_t at = table->find("\n| `"); at != std::string::npos;
       at = table->find("\n| `", at + 1)) {
    ++said;
  }
  EXPECT_EQ(said, rows) << "the table has codes that are not known";
}

}  // namespace
}  // namespace spoke::ipam::azure
