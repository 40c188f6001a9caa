#include "ipam-server/cloud/azure/resources/operation.h"

#include <string>

#include "gtest/gtest.h"

namespace spoke::ipam::azure {
namespace {

constexpr std::string_view kArm = "https://management.azure.com";

struct Case {
  const char* status;
  OperationState want;
};

class OperationStateTest : public testing::TestWithParam<Case> {};

TEST_P(OperationStateTest, IsFinalForThreeWordsAlone) {
  const auto operation =
      DecodeOperation(std::string(R"({"name":"op","status":")") + GetParam().status + "\"}");
  ASSERT_TRUE(operation.ok()) << operation.status();
  EXPECT_EQ(operation->state, GetParam().want);
  EXPECT_EQ(operation->text, GetParam().status);
  EXPECT_EQ(operation->name, "op");
  EXPECT_EQ(operation->error, std::nullopt);
  EXPECT_EQ(IsFinalProvisioningState(GetParam().status),
            GetParam().want != OperationState::kRunning);
}

INSTANTIATE_TEST_SUITE_P(Words, OperationStateTest,
                         testing::Values(Case{"Succeeded", OperationState::kSucceeded},
                                         Case{"succeeded", OperationState::kSucceeded},
                                         Case{"Failed", OperationState::kFailed},
                                         Case{"Canceled", OperationState::kCanceled},
                                         Case{"InProgress", OperationState::kRunning},
                                         Case{"Running", OperationState::kRunning},
                                         Case{"Accepted", OperationState::kRunning},
                                         Case{"Updating", OperationState::kRunning},
                                         Case{"Cancelling", OperationState::kRunning}),
                         [](const auto& test) { return std::string(test.param.status); });

TEST(DecodeOperation, GivesTheErrorOfAFailure) {
  const auto operation = DecodeOperation(
      R"({"status":"Failed","error":{"code":"SubnetIsFull","message":"Subnet is full"}})");
  ASSERT_TRUE(operation.ok()) << operation.status();
  ASSERT_TRUE(operation->error.has_value());
  EXPECT_EQ(operation->error->kind, ErrorKind::kSubnetFull);
  // An error object beside a success means nothing.
  EXPECT_EQ(DecodeOperation(R"({"status":"Succeeded","error":{"code":"x"}})")->error, std::nullopt);
}

TEST(DecodeOperation, RefusesOtherShapes) {
  for (const char* body : {"", "[]", "{}", R"({"status":null})", R"({"status":7})", "<html>"}) {
    EXPECT_EQ(DecodeOperation(body).status().code(), absl::StatusCode::kInvalidArgument) << body;
  }
}

TEST(DecodeOperationHeaders, GivesWhereToAskAndWhen) {
  const auto headers =
      DecodeOperationHeaders({{"azure-asyncoperation", "https://management.azure.com/op?t=%2B"},
                              {"Location", "https://management.azure.com/result"},
                              {"Retry-After", "10"}},
                             kArm, absl::UnixEpoch());
  ASSERT_TRUE(headers.ok()) << headers.status();
  EXPECT_EQ(headers->operation_url, "https://management.azure.com/op?t=%2B");
  EXPECT_EQ(headers->location_url, "https://management.azure.com/result");
  EXPECT_EQ(headers->retry_after, absl::Seconds(10));
  const auto none = DecodeOperationHeaders({}, kArm, absl::UnixEpoch());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->operation_url + none->location_url, "");
  EXPECT_EQ(none->retry_after, std::nullopt);
}

TEST(DecodeOperationHeaders, NeverLeadElsewhere) {
  for (const char* name : {"Azure-AsyncOperation", "Location"}) {
    EXPECT_EQ(DecodeOperationHeaders({{name, "https://evil.example/op"}}, kArm, absl::UnixEpoch())
                  .status()
                  .code(),
              absl::StatusCode::kPermissionDenied);
  }
}

}  // namespace
}  // namespace spoke::ipam::azure
