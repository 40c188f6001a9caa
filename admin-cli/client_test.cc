// Tests of the table of calls: each is one of AdminService's, with its messages, and none is
// missing.
#include "admin-cli/client.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

class ClientCallsTest : public testing::Test {
 protected:
  template <typename Request, typename Response>
  void Check(const Call<Request, Response>& call) {
    CheckOne(NameOf<Request>(call.method), *Request::descriptor(), *Response::descriptor(), false);
  }
  template <typename Request, typename Response>
  void Check(const Stream<Request, Response>& call) {
    CheckOne(NameOf<Request>(call.method), *Request::descriptor(), *Response::descriptor(), true);
  }

  const google::protobuf::ServiceDescriptor& service_ =
      *v1::GetStatusRequest::descriptor()->file()->FindServiceByName("AdminService");
  std::set<std::string> seen_;

 private:
  template <typename Request>
  static std::string NameOf(std::string_view method) {
    const std::string request = Request::descriptor()->name();
    return method.empty() ? request.substr(0, request.rfind("Request")) : std::string(method);
  }
  void CheckOne(const std::string& name, const google::protobuf::Descriptor& request,
                const google::protobuf::Descriptor& response, bool streams) {
    const auto* method = service_.FindMethodByName(name);
    ASSERT_NE(method, nullptr) << name;
    EXPECT_EQ(method->input_type(), &request) << name;
    EXPECT_EQ(method->output_type(), &response) << name;
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
