#include "netagent/verification/address_verifier.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
#include "netagent/verification/testing/fake_host_list.h"
#include "netagent/verification/testing/fake_wire_probe.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class AddressVerifierTest : public testing::Test {
 protected:
  AddressVerifierTest() {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    Begin(&host_, &wire_);
  }
  void Begin(HostList* host, WireProbe* wire, ip::Family family = ip::Family::kV4) {
    verifier_.reset();
    const std::vector<Event> events = tmpfs_.events;
    attachments_.emplace(
        Attachments::Settings{
            .node_name = "node1", .nic = "eth0", .proof_required = {.ipv4 = true, .ipv6 = true}},
        Attachments::Edges{kernel_, server_, clock_, log_}, std::make_unique<FakeJournal>(tmpfs_));
    ASSERT_TRUE(attachments_->Start(events).ok());
    verifier_.emplace(
        AddressVerifier::Edges{
            .host = host,
            .wire = wire,
            .clock = clock_,
            .log = log_,
            .post = [this](std::function<void()> work) { posted_.push_back(std::move(work)); }},
        family, absl::Minutes(2), *attachments_);
  }
  void Grant(const std::vector<std::string>& addresses) {
    node_api::DesiredState desired{.version = 1, .full = true};
    for (const std::string& address : addresses)
      desired.added.push_back({.range = ip::Prefix::Host(A(address)), .pool = "default"});
    ASSERT_TRUE(attachments_->OnDesired(desired).ok());
    verifier_->Tick();
  }
  // Ends the reading that is under way, and runs what it posted.
  void Host(absl::StatusOr<std::set<ip::Address>> outcome) {
    ASSERT_TRUE(host_.reading());
    host_.Finish(std::move(outcome));
    RunPosted();
  }
  void RunPosted() {
    for (const auto& work : std::exchange(posted_, {})) work();
  }
  // Moves to the next thing that is due, and does it.
  void Step() {
    const auto wake = verifier_->NextWake();
    ASSERT_TRUE(wake.has_value());
    if (*wake > clock_.Now()) clock_.Advance(*wake - clock_.Now());
    verifier_->Tick();
  }
  std::vector<ip::Address> Unproven() { return attachments_->assignments().Unproven(); }

  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeKernel kernel_;
  FakeServerLink server_;
  FakeTmpfs tmpfs_;
  FakeHostList host_;
  FakeWireProbe wire_;
  std::vector<std::function<void()>> posted_;
  std::optional<Attachments> attachments_;
  std::optional<AddressVerifier> verifier_;
};

TEST_F(AddressVerifierTest, AnAddressIsProvenByTheHostsListAndAnAnswer) {
  wire_.delivered = {A("10.1.0.5"), A("10.1.0.6")};
  Grant({"10.1.0.5", "10.1.0.6"});
  EXPECT_THAT(wire_.sent, IsEmpty());
  Host(std::set{A("10.1.0.5")});
  EXPECT_THAT(wire_.sent, ElementsAre(A("10.1.0.5")));
  EXPECT_EQ(*verifier_->NextWake(), clock_.Now() + kAnswerLook);
  Step();
  EXPECT_THAT(Unproven(), ElementsAre(A("10.1.0.6")));
  EXPECT_EQ(verifier_->Explain(), "1 not listed by the host");
  EXPECT_EQ(log_.Count("addresses_proven"), 1);
  Step();
  Host(std::set{A("10.1.0.5"), A("10.1.0.6")});
  Step();
  EXPECT_THAT(Unproven(), IsEmpty());
  EXPECT_EQ(verifier_->NextWake(), std::nullopt);
  EXPECT_GT(wire_.rests, 0);
}

TEST_F(AddressVerifierTest, AProofSurvivesARestartWithoutHostAndFabric) {
  wire_.delivered = {A("10.1.0.5")};
  Grant({"10.1.0.5", "10.1.0.6"});
  Host(std::set{A("10.1.0.5")});
  Step();
  Begin(&host_, &wire_);
  verifier_->Tick();
  EXPECT_THAT(Unproven(), ElementsAre(A("10.1.0.6")));
}

TEST_F(AddressVerifierTest, AHostThatCannotBeReadIsSaidOnceAndTheAnswerProves) {
  Grant({"10.1.0.5"});
  Host(absl::UnavailableError("no wire server"));
  for (int i = 0; i < 20; ++i) {
    Step();
    if (host_.reading()) Host(absl::UnavailableError("no wire server"));
  }
  EXPECT_EQ(log_.Count("host_list_unreadable"), 1);
  EXPECT_THAT(Unproven(), ElementsAre(A("10.1.0.5")));
  wire_.delivered = {A("10.1.0.5")};
  for (int i = 0; i < 50 && !Unproven().empty(); ++i) {
    Step();
    if (host_.reading()) Host(absl::UnavailableError("no wire server"));
  }
  EXPECT_THAT(Unproven(), IsEmpty());
  EXPECT_EQ(log_.Count("host_list_readable"), 0);
}

TEST_F(AddressVerifierTest, WithoutAnAnswererTheHostsListProves) {
  Begin(&host_, nullptr);
  Grant({"10.1.0.5", "10.1.0.6"});
  Host(std::set{A("10.1.0.5")});
  EXPECT_THAT(Unproven(), ElementsAre(A("10.1.0.6")));
}

TEST_F(AddressVerifierTest, WithoutAHostToAskTheAnswerProves) {
  Begin(nullptr, &wire_);
  wire_.delivered = {A("10.1.0.5")};
  Grant({"10.1.0.5"});
  Step();
  EXPECT_THAT(Unproven(), IsEmpty());
}

TEST_F(AddressVerifierTest, EachFamilyIsProvenByItself) {
  Begin(&host_, nullptr, ip::Family::kV6);
  Grant({"10.1.0.5"});
  EXPECT_FALSE(host_.reading()) << "nothing of its family waits";
  EXPECT_EQ(verifier_->NextWake(), std::nullopt);
  Grant({"10.1.0.5", "fd00::5", "fd00::6"});
  Host(std::set{A("10.1.0.5"), A("fd00::6")});
  EXPECT_THAT(Unproven(), ElementsAre(A("10.1.0.5"), A("fd00::5")));
  EXPECT_EQ(verifier_->Explain(), "1 not listed by the host");
}

// After a restore the server may list what the NIC has not any more.
TEST_F(AddressVerifierTest, AnIpv6AddressThatTheNicDoesNotHaveIsNeverAssigned) {
  Begin(&host_, nullptr, ip::Family::kV6);
  Grant({"fd00::5"});
  Host(std::set<ip::Address>());
  const absl::Time until = clock_.Now() + absl::Hours(1);
  while (clock_.Now() < until) {
    Step();
    if (host_.reading()) Host(std::set<ip::Address>());
  }
  EXPECT_THAT(Unproven(), ElementsAre(A("fd00::5")));
  EXPECT_THAT(log_.lines(),
              testing::Contains(HasSubstr("address=fd00::5 missing=host_listing waited_s=120")));
}

TEST_F(AddressVerifierTest, WhatStaysUnprovenIsSaidOnceAndTriedOn) {
  Grant({"10.1.0.5", "10.1.0.6"});
  Host(std::set{A("10.1.0.5")});
  const absl::Time until = clock_.Now() + absl::Minutes(10);
  while (clock_.Now() < until) {
    Step();
    if (host_.reading()) Host(std::set{A("10.1.0.5")});
  }
  EXPECT_EQ(log_.Count("address_unproven"), 2);
  EXPECT_THAT(log_.lines(),
              testing::Contains(HasSubstr("address=10.1.0.6 missing=host_listing waited_s=120")));
  EXPECT_THAT(log_.lines(), testing::Contains(HasSubstr("address=10.1.0.5 missing=answer")));
  wire_.delivered = {A("10.1.0.5")};
  for (int i = 0; i < 50 && Unproven().size() > 1; ++i) Step();
  EXPECT_THAT(Unproven(), ElementsAre(A("10.1.0.6")));
}

TEST_F(AddressVerifierTest, ManyThatStayUnprovenAreSaidInFewLines) {
  std::vector<std::string> many;
  for (int i = 0; i < 64; ++i) many.push_back("10.1.0." + std::to_string(i + 4));
  Grant(many);
  Host(std::set<ip::Address>());
  clock_.Advance(absl::Minutes(2));
  verifier_->Tick();
  EXPECT_EQ(log_.Count("address_unproven"), 9);
  EXPECT_THAT(log_.lines(), testing::Contains(HasSubstr("others=56 missing=\"64 not listed")));
}

TEST_F(AddressVerifierTest, AWireThatFailsIsSaidOnceUntilItWorks) {
  wire_.failure = absl::UnavailableError("device is down");
  Grant({"10.1.0.5"});
  Host(std::set{A("10.1.0.5")});
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_EQ(log_.Count("wire_probe_failed"), 1);
  wire_.failure = absl::OkStatus();
  wire_.delivered = {A("10.1.0.5")};
  for (int i = 0; i < 50 && !Unproven().empty(); ++i) Step();
  EXPECT_THAT(Unproven(), IsEmpty());
}

TEST_F(AddressVerifierTest, AProofThatCannotBeJournalledIsKeptForLater) {
  wire_.delivered = {A("10.1.0.5")};
  Grant({"10.1.0.5"});
  tmpfs_.fail_after = 0;
  Host(std::set{A("10.1.0.5")});
  Step();
  EXPECT_THAT(Unproven(), ElementsAre(A("10.1.0.5")));
  const size_t probes = wire_.sent.size();
  verifier_->Tick();
  EXPECT_EQ(log_.Count("journal_write_failed"), 1);
  tmpfs_.fail_after = -1;
  Step();
  EXPECT_THAT(Unproven(), IsEmpty());
  EXPECT_EQ(wire_.sent.size(), probes);
}

TEST_F(AddressVerifierTest, AnAddressThatTheServerTakesBackIsForgotten) {
  Grant({"10.1.0.5"});
  Host(std::set{A("10.1.0.5")});
  Grant({});
  EXPECT_EQ(verifier_->NextWake(), std::nullopt);
}

TEST_F(AddressVerifierTest, AnOutcomeThatComesAfterTheEndFindsNobody) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(host_.reading());
  verifier_.reset();
  host_.Finish(std::set{A("10.1.0.5")});
  RunPosted();
  EXPECT_THAT(Unproven(), ElementsAre(A("10.1.0.5")));
}

}  // namespace
}  // namespace spoke::netagent
