// Tests of KernelLinks when the kernel refuses a step, or the agent dies before it: nothing is
// left.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "lib/netlink/link.h"
#include "netagent/claims.h"
#include "netagent/links/kernel_links.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kV4 = ip::Address::V4(0x0A000107);  // 10.0.1.7
constexpr ip::Address kV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);
// The most steps of any call.
constexpr int kMaxSteps = 30;

class LinksFaultTest : public NodeWorldTest {
 protected:
  void SetUp() override {
    NodeWorldTest::SetUp();
    if (node_ == nullptr) return;
    pod_ = std::make_unique<PodNetns>();
    const auto links = KernelLinks::Create().value();
    // An attachment with all there is.
    AttachOptions options;
    options.ordinal = 1;
    options.bandwidth = {.ingress_rate = units::BitRate(100'000'000),
                         .egress_rate = units::BitRate(10'000'000)};
    spec_ = PlanAttach({"pod", "net1"}, {kV4, kV6}, 1450, options).value();
    const uint32_t table = links->SetNicTable(node_->nic().mac).value();
    spec_.source_tables = {{kV4, table}, {kV6, table}};
    node_before_ = Snapshot(node_->socket());
    pod_before_ = Snapshot(pod_->socket());
  }

  static std::unique_ptr<KernelLinks> LinksWith(const std::string& fault) {
    KernelLinks::Settings settings;
    settings.fault_point = ParseFaultPoint(fault).value();
    return KernelLinks::Create(std::move(settings)).value();
  }

  void ExpectAllAsBefore() {
    EXPECT_EQ(Snapshot(node_->socket()), node_before_);
    EXPECT_EQ(Snapshot(pod_->socket()), pod_before_);
  }
  // Expects only what Detach() cannot reach: the pod's rules lead into a table that is empty.
  void ExpectOnlyPodRulesLeft() {
    EXPECT_EQ(Snapshot(node_->socket()), node_before_);
    std::vector<std::string> pod = Snapshot(pod_->socket());
    std::erase_if(pod, [](const std::string& line) {
      return line.rfind(fmt::format("rule {} ", claims::kPodRulePriority), 0) == 0;
    });
    EXPECT_EQ(pod, pod_before_);
  }

  std::unique_ptr<PodNetns> pod_;
  AttachSpec spec_;
  std::vector<std::string> node_before_;
  std::vector<std::string> pod_before_;
};

TEST_F(LinksFaultTest, AnAttachThatFailsAtAnyStepLeavesNothing) {
  // The steps of making it come first and are not in question.
  int made = 0;
  KernelLinks::Settings counting;
  counting.fault_point = [&made](std::string_view) {
    ++made;
    return absl::OkStatus();
  };
  KernelLinks::Create(std::move(counting)).value().reset();
  int failures = 0;
  for (int n = 1; n <= kMaxSteps; ++n) {
    SCOPED_TRACE(n);
    const auto links = LinksWith(fmt::format("fail * {}", made + n));
    const absl::Status status = Attach(*links, spec_, pod_->fd());
    if (status.ok()) break;
    ++failures;
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    ExpectAllAsBefore();
  }
  EXPECT_GE(failures, 4);
  EXPECT_LT(failures, kMaxSteps);
}

TEST_F(LinksFaultTest, ADetachThatFailsIsDoneByTheNext) {
  const auto links = LinksWith("fail detach.retire 1");
  ASSERT_TRUE(Attach(*links, spec_, pod_->fd()).ok());
  EXPECT_TRUE(absl::IsInternal(Detach(*links, spec_.host_link)));
  EXPECT_TRUE(netlink::GetLink(node_->socket(), spec_.host_link)->up);
  EXPECT_TRUE(Detach(*links, spec_.host_link).ok());
  EXPECT_TRUE(links->FinishDetaching().ok());
  ExpectOnlyPodRulesLeft();
}

TEST_F(LinksFaultTest, WhereverAnAgentDiesTheNextOneCleansUp) {
  for (int n = 1; n <= kMaxSteps; ++n) {
    SCOPED_TRACE(n);
    const pid_t agent = ::fork();
    ASSERT_GE(agent, 0);
    if (agent == 0) {
      const auto links = LinksWith(fmt::format("kill * {}", n));
      const bool done = Attach(*links, spec_, pod_->fd()).ok() &&
                        Detach(*links, spec_.host_link).ok() && links->FinishDetaching().ok();
      ::_exit(done ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(agent, &status, 0), agent);
    const bool finished = WIFEXITED(status);
    EXPECT_TRUE(!finished || WEXITSTATUS(status) == 0);
    // The agent does this with what its journal says was begun.
    const auto next = KernelLinks::Create().value();
    EXPECT_TRUE(Detach(*next, spec_.host_link).ok());
    EXPECT_TRUE(next->FinishDetaching().ok());
    ExpectOnlyPodRulesLeft();
    if (finished) {
      EXPECT_GT(n, 8);
      return;
    }
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
  }
  ADD_FAILURE() << "more steps than there should be";
}

}  // namespace
}  // namespace spoke::netagent
