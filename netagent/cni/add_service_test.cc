// Tests of ADDs that wait: who is served when, what the server is told, and what those are told for
// whom nothing comes.
#include "netagent/cni/add_service.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

// Keeps what each client was answered.
class FakeChannel final : public ResponseChannel {
 public:
  absl::Status Send(uint64_t client, const cni::Response& response) override {
    if (gone_for_good.contains(client)) return absl::UnavailableError("gone");
    answers.emplace(client, response);
    order.push_back(client);
    return absl::OkStatus();
  }
  void Close(uint64_t client) override { closed.push_back(client); }
  void OnHangUp(uint64_t client, std::function<void()> gone) override {
    on_hang_up.insert_or_assign(client, std::move(gone));
  }

  std::map<uint64_t, cni::Response> answers;
  std::vector<uint64_t> order;
  std::vector<uint64_t> closed;
  std::map<uint64_t, std::function<void()>> on_hang_up;
  std::set<uint64_t> gone_for_good;
};

class AddServiceTest : public testing::Test {
 protected:
  AddServiceTest() {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    EXPECT_TRUE(attachments_.Start({}).ok());
    Begin(absl::Seconds(20));
  }
  void Begin(absl::Duration longest_wait) {
    adds_.emplace(longest_wait, AddService::Edges{.attachments = attachments_,
                                                  .server = server_,
                                                  .clock = clock_,
                                                  .log = log_,
                                                  .monotonic_ms = [this] { return monotonic_ms_; },
                                                  .random = [] { return uint64_t{0xabc}; },
                                                  .take_up_del =
                                                      [this](const AttachmentKey& key) {
                                                        return tombstone_ &&
                                                               attachments_.Del(key).ok();
                                                      }});
  }
  void Grant(const std::vector<std::string>& addresses, const std::string& pool = "default",
             const std::vector<std::string>& namespaces = {}) {
    node_api::DesiredState desired{.version = ++version_, .full = false};
    for (const std::string& address : addresses)
      desired.added.push_back({.range = ip::Prefix::Host(A(address)), .pool = pool});
    desired.pools = {{pool, "10.1.0.0/24", 251, 8, 243, namespaces}};
    ASSERT_TRUE(attachments_.OnDesired(desired).ok());
  }
  // Makes a request; `client` is the client's number and names the container.
  cni::Request Request(uint64_t client, const std::string& pod_namespace = "ns") const {
    cni::Request request;
    request.verb = cni::Verb::kAdd;
    request.container_id = "c" + std::to_string(client);
    request.ifname = "eth0";
    request.pod.pod_namespace = pod_namespace;
    request.pod.name = "pod" + std::to_string(client);
    return request;
  }
  void Handle(uint64_t client, const cni::Request& request) {
    adds_->Handle(request, kernel_.NewPodNetns(), Responder(channel_, client));
  }
  void Add(uint64_t client, const std::string& pod_namespace = "ns") {
    Handle(client, Request(client, pod_namespace));
  }
  // Does one round of the loop, after `later`.
  void Pass(absl::Duration later = absl::ZeroDuration()) {
    clock_.Advance(later);
    monotonic_ms_ += absl::ToInt64Milliseconds(later);
    attachments_.Tick();
    adds_->Tick();
  }
  std::string ErrorOf(uint64_t client) {
    const auto it = channel_.answers.find(client);
    return it == channel_.answers.end() ? "no answer" : it->second.error.message;
  }
  std::string AddressOf(uint64_t client) {
    const auto it = channel_.answers.find(client);
    if (it == channel_.answers.end()) return "no answer";
    if (it->second.outcome != cni::Response::Outcome::kAttachment) return it->second.error.message;
    return it->second.attachment.addresses.at(0).address;
  }

  FakeKernel kernel_;
  FakeServerLink server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  FakeChannel channel_;
  Attachments attachments_{{.node_name = "node1", .nic = "eth0"},
                           {kernel_, server_, clock_, log_},
                           std::make_unique<FakeJournal>(tmpfs_)};
  int64_t monotonic_ms_ = 1'000'000;
  uint64_t version_ = 0;
  bool tombstone_ = false;
  std::optional<AddService> adds_;  // Goes last: its responders go before the channel.
};

TEST_F(AddServiceTest, WhoWaitsIsServedInTheOrderOfArrivalWhenAddressesCome) {
  for (const uint64_t client : {1U, 2U, 3U}) Add(client);
  Pass();
  EXPECT_THAT(channel_.answers, IsEmpty());
  Grant({"10.1.0.5", "10.1.0.6"});
  Pass();
  EXPECT_THAT(channel_.order, ElementsAre(1, 2));
  EXPECT_EQ(AddressOf(1), "10.1.0.5/32");
  EXPECT_EQ(AddressOf(2), "10.1.0.6/32");
  EXPECT_EQ(adds_->waiting(), 1U);
}

TEST_F(AddServiceTest, AKernelThatIsOutOfMemoryIsSaidAtOnceAndNotTakenForAnEmptyPool) {
  Grant({"10.1.0.5"});
  kernel_.FailAttach(HostLinkName({"c1", "eth0"}), absl::ResourceExhaustedError("no memory"));
  Add(1);
  EXPECT_EQ(adds_->waiting(), 0U);
  EXPECT_THAT(ErrorOf(1), HasSubstr("no memory"));
  EXPECT_EQ(channel_.answers.at(1).error.code, cni::kTryAgainLater);
  EXPECT_THAT(channel_.answers.at(1).error.details, HasSubstr("see the agent's log"));
  EXPECT_THAT(channel_.answers.at(1).error.details, Not(HasSubstr("addresses come")));
}

TEST_F(AddServiceTest, EachAddCountsOnceByHowItEnded) {
  Grant({"10.1.0.5", "10.1.0.6"});
  Add(1);
  kernel_.FailAttach(HostLinkName({"c2", "eth0"}), absl::InternalError("refused"));
  Add(2);
  EXPECT_THAT(adds_->counts().outcomes, ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(adds_->counts().total.counts.front(), 1U) << "the clock stood still";
  EXPECT_EQ(adds_->counts().kernel.counts.front(), 1U);
  EXPECT_EQ(adds_->counts().wait, DurationCounts());
  Grant({"10.1.0.7"}, "a", {"team-a"});
  for (const uint64_t client : {3U, 4U, 5U, 6U}) Add(client, "team-a");
  channel_.on_hang_up.at(4)();
  ASSERT_TRUE(attachments_.Del({"c3", "eth0"}).ok());
  adds_->Forget({"c5", "eth0"});
  EXPECT_THAT(adds_->counts().outcomes, ElementsAre(2, 0, 1, 2));
  Pass(absl::Seconds(20));  // No longer does anybody wait.
  EXPECT_THAT(adds_->counts().outcomes, ElementsAre(2, 1, 1, 2)) << ErrorOf(6);
}

TEST_F(AddServiceTest, ANewcomerDoesNotOvertakeWhoWaits) {
  Add(1);
  Grant({"10.1.0.5"});
  Add(2);  // It comes in the same round of the loop.
  EXPECT_THAT(channel_.order, ElementsAre(1));
  EXPECT_EQ(adds_->waiting(), 1U);
}

TEST_F(AddServiceTest, AReleasedAddressGoesToWhoWaitsAfterItsCooldown) {
  Begin(absl::Seconds(60));
  Grant({"10.1.0.5"});
  Add(1);
  Add(2);
  ASSERT_TRUE(attachments_.Del({"c1", "eth0"}).ok());
  Pass(absl::Seconds(29));
  EXPECT_EQ(AddressOf(2), "no answer");
  Pass(absl::Seconds(1));
  EXPECT_EQ(AddressOf(2), "10.1.0.5/32");
}

TEST_F(AddServiceTest, AnEmptyPoolOfOneNamespaceHoldsUpNobodyOfAnother) {
  Grant({"10.1.0.5"}, "a", {"team-a"});
  Add(1, "team-a");
  Add(2, "team-a");
  Grant({}, "b", {"team-b"});
  Add(3, "team-b");
  Grant({"10.1.0.6"}, "b", {"team-b"});
  Pass();
  EXPECT_THAT(channel_.order, ElementsAre(1, 3));
}

TEST_F(AddServiceTest, ABurstIsOneDemandAndItsEndIsSaid) {
  Add(1);
  for (const uint64_t client : {2U, 3U}) Add(client);
  Add(4, "other");
  Pass();
  EXPECT_THAT(server_.demands, IsEmpty());
  ASSERT_TRUE(adds_->NextWake().has_value());
  Pass(AddService::kDemandDelay);
  ASSERT_THAT(server_.demands, SizeIs(1));
  EXPECT_THAT(server_.demands[0].waiting, ElementsAre(Pair("ns", 3U), Pair("other", 1U)));
  Pass(absl::Seconds(1));
  EXPECT_THAT(server_.demands, SizeIs(1));
  EXPECT_EQ(adds_->DemandForHello(), server_.demands[0]);
  Grant({"10.1.0.5", "10.1.0.6", "10.1.0.7", "10.1.0.8"});
  Pass();
  Pass(AddService::kDemandDelay);
  ASSERT_THAT(server_.demands, SizeIs(2));
  EXPECT_THAT(server_.demands[1].waiting, IsEmpty());
  EXPECT_EQ(adds_->NextWake(), std::nullopt);
}

TEST_F(AddServiceTest, WhoHangsUpLeavesTheLineAndGetsNothing) {
  Add(1);
  Add(2);
  channel_.on_hang_up.at(1)();
  Grant({"10.1.0.5"});
  Pass();
  EXPECT_THAT(channel_.order, ElementsAre(2));
  EXPECT_EQ(log_.Count("cni_add_given_up"), 1);
}

TEST_F(AddServiceTest, ADelOrARepetitionEndsTheWait) {
  Add(1);
  adds_->Forget({"c1", "eth0"});
  EXPECT_THAT(channel_.closed, ElementsAre(1));
  Add(2);
  cni::Request again = Request(2);
  Handle(3, again);  // The same container's: the plugin lost its connection and asks anew.
  EXPECT_THAT(channel_.closed, ElementsAre(1, 2));
  Grant({"10.1.0.5"});
  Pass();
  EXPECT_THAT(channel_.order, ElementsAre(3));
}

TEST_F(AddServiceTest, ShortlyBeforeItsDeadlineItIsToldWhyAndWhatTheServerSaid) {
  cni::Request request = Request(1);
  request.deadline_monotonic_ms = monotonic_ms_ + 5000;
  Handle(1, request);
  adds_->OnForecast({"enlarging the node", absl::Seconds(40)});
  Pass();
  Pass(AddService::kDemandDelay);
  EXPECT_EQ(adds_->NextWake(), absl::Milliseconds(monotonic_ms_ + 4690));
  Pass(absl::Milliseconds(4689));
  EXPECT_EQ(ErrorOf(1), "no answer");
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(channel_.answers.at(1).error.code, 11U);
  EXPECT_THAT(ErrorOf(1), HasSubstr("no address is attached to this node: node node1"));
  EXPECT_THAT(ErrorOf(1), HasSubstr("waited 4.7s; server: enlarging the node, expected in 36s"));
  EXPECT_NE(channel_.answers.at(1).error.details, "");
}

TEST_F(AddServiceTest, NobodyWaitsLongerThanConfiguredOrWithTooLittleTimeLeft) {
  Add(1);  // It has no deadline.
  Pass(absl::Milliseconds(19'999));
  EXPECT_EQ(ErrorOf(1), "no answer");
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(ErrorOf(1), HasSubstr("waited 20s"));

  cni::Request hurried = Request(2);
  hurried.deadline_monotonic_ms = monotonic_ms_ + 999;
  Handle(2, hurried);
  EXPECT_EQ(channel_.answers.at(2).error.code, 11U);

  cni::Request late = Request(3);
  late.deadline_monotonic_ms = monotonic_ms_;
  Handle(3, late);
  EXPECT_THAT(ErrorOf(3), HasSubstr("no longer waits"));

  Begin(absl::ZeroDuration());
  Add(4);
  EXPECT_THAT(ErrorOf(4), HasSubstr("no address is attached"));
}

TEST_F(AddServiceTest, NoMoreWaitThanThereIsRoomFor) {
  for (uint64_t client = 1; client <= AddService::kMaxWaiting; ++client) Add(client);
  EXPECT_EQ(adds_->waiting(), AddService::kMaxWaiting);
  Add(AddService::kMaxWaiting + 1);
  EXPECT_EQ(adds_->waiting(), AddService::kMaxWaiting);
  EXPECT_THAT(ErrorOf(AddService::kMaxWaiting + 1), HasSubstr("no address"));
}

TEST_F(AddServiceTest, APodThatNoPoolIsMeantForDoesNotWait) {
  Grant({"10.1.0.5"}, "a", {"team-a"});
  Add(1, "else");
  EXPECT_EQ(channel_.answers.at(1).error.code, 11U);
  EXPECT_THAT(ErrorOf(1), HasSubstr("no pool on this node is meant for namespace else"));
}

TEST_F(AddServiceTest, ARequestIsHeardAndOneForAnAddressInUseWaitsButDemandsNothing) {
  Grant({"10.1.0.5", "10.1.0.6"});
  cni::Request requesting = Request(1);
  requesting.options.mac = "0e:11:22:33:44:55";
  requesting.options.mtu = 1400;
  requesting.options.addresses = {"10.1.0.6/16"};
  Handle(1, requesting);
  EXPECT_EQ(AddressOf(1), "10.1.0.6/32");
  EXPECT_EQ(channel_.answers.at(1).attachment.pod_mac, "0e:11:22:33:44:55");
  EXPECT_EQ(channel_.answers.at(1).attachment.mtu, 1400U);
  cni::Request taken = Request(2);
  taken.options.addresses = {"10.1.0.6"};
  Handle(2, taken);
  Pass(AddService::kDemandDelay);
  EXPECT_EQ(adds_->waiting(), 1U);
  EXPECT_THAT(server_.demands, IsEmpty());
  Add(3);  // It takes what the one before did not ask for.
  EXPECT_EQ(AddressOf(3), "10.1.0.5/32");
}

TEST_F(AddServiceTest, OptionsThatMakeNoSenseAreAConfigurationErrorAndLeaveNothing) {
  Grant({"10.1.0.5"});
  const auto refused = [&](uint64_t client, const auto& options) {
    cni::Request request = Request(client);
    options(request.options);
    Handle(client, request);
    return channel_.answers.at(client).error.code;
  };
  EXPECT_EQ(refused(1, [](auto& options) { options.mac = "0e:11"; }), 7U);
  EXPECT_EQ(refused(2, [](auto& options) { options.mac = "01:00:5e:00:00:01"; }), 7U);
  EXPECT_EQ(refused(3, [](auto& options) { options.mtu = 60; }), 7U);
  EXPECT_EQ(refused(4, [](auto& options) { options.addresses = {"10.1.0.300"}; }), 7U);
  EXPECT_EQ(refused(5, [](auto& options) { options.addresses = {"10.1.0.5/99"}; }), 7U);
  EXPECT_EQ(refused(6, [](auto& options) { options.addresses = {"10.9.0.5"}; }), 7U);
  EXPECT_THAT(attachments_.assignments().Built(), IsEmpty());
  EXPECT_THAT(tmpfs_.events, SizeIs(2)) << "of the start and the grant";
  Add(7);
  EXPECT_EQ(AddressOf(7), "10.1.0.5/32");
}

TEST_F(AddServiceTest, ADelThatNobodyHasHeardMakesRoomForTheNextAdd) {
  Grant({"10.1.0.5", "10.1.0.6"});
  Add(1);
  Handle(2, Request(1));
  EXPECT_EQ(channel_.answers.at(2).error.code, 101U);
  tombstone_ = true;
  Handle(3, Request(1));
  EXPECT_EQ(AddressOf(3), "10.1.0.6/32");
}

TEST_F(AddServiceTest, AnAnswerThatIsLostIsSaidAndTheSameAttemptHearsItAgain) {
  Grant({"10.1.0.5"});
  channel_.gone_for_good.insert(1);
  cni::Request request = Request(1);
  request.attempt = 77;
  Handle(1, request);
  EXPECT_EQ(log_.Count("cni_answer_lost"), 1);
  Handle(2, request);
  EXPECT_EQ(AddressOf(2), "10.1.0.5/32");
}

TEST_F(AddServiceTest, EachAddLeavesATraceUnderTheRuntimesTraceId) {
  Grant({"10.1.0.5"});
  cni::Request request = Request(1);
  request.trace_parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  Handle(1, request);
  Add(2);
  Pass(absl::Seconds(5));
  adds_->OnTracesRequest({.id = 8, .pod_name = "pod2"});
  ASSERT_THAT(server_.trace_answers, SizeIs(1));
  ASSERT_THAT(server_.trace_answers[0].traces, SizeIs(1));
  EXPECT_EQ(server_.trace_answers[0].traces[0].error, "still waits for an address, for 5s now");
  server_.trace_answers.clear();
  Pass(absl::Seconds(15));
  adds_->OnTracesRequest({.id = 9});
  ASSERT_THAT(server_.trace_answers, SizeIs(1));
  const node_api::AttachTracesAnswer answer = server_.trace_answers[0];
  EXPECT_EQ(answer.id, 9U);
  ASSERT_THAT(answer.traces, SizeIs(2));
  const node_api::AttachTrace& failed = answer.traces[0];
  EXPECT_EQ(failed.trace_id, "0000000000000abc0000000000000abc");
  EXPECT_THAT(failed.error, HasSubstr("waited 20s"));
  ASSERT_THAT(failed.steps, SizeIs(3));
  EXPECT_EQ(failed.steps[1],
            (node_api::AttachStep{"wait", absl::ZeroDuration(), absl::Seconds(20)}));
  const node_api::AttachTrace& built = answer.traces[1];
  EXPECT_EQ(built.trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_THAT(built.addresses, ElementsAre(A("10.1.0.5")));
  std::vector<std::string_view> names;
  for (const node_api::AttachStep& step : built.steps) names.push_back(step.name);
  EXPECT_THAT(
      names, ElementsAre("receive", "plan", "journal_intent", "kernel", "journal_built", "answer"));
  adds_->OnTracesRequest({.id = 10, .pod_name = "pod1"});
  EXPECT_THAT(server_.trace_answers[1].traces, ElementsAre(built));
  EXPECT_THAT(log_.lines(), testing::Contains(HasSubstr("trace=0af7651916cd43dd8448eb211c80319c")));
}

TEST_F(AddServiceTest, WhoWaitsWhileTheServerIsAwayIsToldSoAndSinceWhen) {
  adds_->OnSession(absl::UnavailableError("connection refused"));
  Add(1);
  Pass(absl::Seconds(5));
  // Another attempt that fails is the same absence.
  adds_->OnSession(absl::UnavailableError("connection refused"));
  adds_->OnForecast({.reason = "enlarging the node", .eta = absl::Seconds(12)});
  Pass(absl::Seconds(15));
  EXPECT_THAT(ErrorOf(1), HasSubstr("the server has been away since 1971-01-01T00:00:00Z, for 20s "
                                    "now, and only it can give this node more addresses; "));
  EXPECT_THAT(ErrorOf(1), Not(HasSubstr("enlarging")));
  EXPECT_THAT(channel_.answers.at(1).error.details,
              HasSubstr("addresses come when the server is back"));
  adds_->OnSession(absl::OkStatus());
  Add(2);
  Pass(absl::Seconds(20));
  EXPECT_THAT(ErrorOf(2), Not(HasSubstr("away")));
}

}  // namespace
}  // namespace spoke::netagent
