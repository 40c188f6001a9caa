// Tests of the table of calls: each is one of AdminService's, with its messages, and none is
// missing.
#include "admin-cli/client.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/schema.h"

namespace spoke::ctl {
namespace {

class ClientCallsTest : public testing::Test {
 protected:
  template <typename Request, typename Response>
  void Check(const Call<Request, Response>& call) {
    CheckOne(NameOf<Request>(call.method), Request(), Response(), false);
  }
  template <typename Request, typename Response>
  void Check(const Stream<Request, Response>& call) {
    CheckOne(NameOf<Request>(call.method), Request(), Response(), true);
  }

  const google::protobuf::ServiceDescriptor& service_ = testing_support::AdminServiceDescriptor();
  std::set<std::string> seen_;

 private:
  template <typename Request>
  static std::string NameOf(std::string_view method) {
    std::string request = Request().GetTypeName();
    request.erase(0, request.rfind('.') + 1);
    return method.empty() ? request.substr(0, request.rfind("Request")) : std::string(method);
  }
  void CheckOne(const std::string& name, const google::protobuf::MessageLite& request,
                const google::protobuf::MessageLite& response, bool streams) {
    const auto* method = service_.FindMethodByName(name);
    ASSERT_NE(method, nullptr) << name;
    EXPECT_EQ(method->input_type()->full_name(), request.GetTypeName()) << name;
    EXPECT_EQ(method->output_type()->full_name(), response.GetTypeName()) << name;
    EXPECT_EQ(method->server_streaming(), streams) << name;
    EXPECT_TRUE(seen_.emplace(name).second) << name;
  }
};

TEST_F(ClientCallsTest, EveryCallOfTheServiceIsThereWithItsMessages) {
  const auto check = [this](const auto&... calls) { (Check(calls), ...); };
  check(kGetStatus, kGetRecovery, kConfirmRecovery, kUnfreeze, kListPools, kGetNode, kSetNodeMode,
        kRetryNode, kStartMaintenance, kGetNodeData, kForgetNode, kRevokeIdentity,
        kUnrevokeIdentity, kListRevoked, kListRoots, kRotateAuthority, kGetAddress,
        kGetAddressHistory, kReleaseAddress, kQuarantineAddress, kCreateReservation,
        kListReservations, kDeleteReservation, kApply, kDeleteObjects, kGetObjects, kGetRollout,
        kResumeRollout, kUndoRollout, kListOperatorLog, kEstimateCuts, kExplain, kWhatIf, kGetTop,
        kGetTraffic, kGetTrafficCourse, kGetBudgets, kListNodes, kListAddresses, kAudit,
        kVerifyPolicy, kGetReachability, kCheckNodes, kListEvents, kBackup);
  EXPECT_EQ(static_cast<int>(seen_.size()), service_.method_count());
}

}  // namespace
}  // namespace spoke::ctl
