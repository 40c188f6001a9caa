#include "netagent/enroll/enroller.h"

#include <filesystem>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"
#include "lib/tls/renewal.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kLife = absl::Hours(24 * 30);

tls::Authority NewAuthority(absl::Time now) {
  tls::Authority authority{.certificate = "", .key = tls::MakeKey().value()};
  authority.certificate =
      tls::MakeAuthorityCertificate(authority.key, "test", {now, now + kLife * 100}).value();
  return authority;
}

class EnrollerTest : public testing::Test {
 protected:
  EnrollerTest() {
    Put(settings_.ca_file, authority_.certificate);
    Put(settings_.token_file, "token-1\n");
  }

  static void Put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(os::WriteFileAtomic(path, text, os::Durability::kVisible).ok());
  }
  std::string Read(const std::string& path) const { return os::ReadFile(path).value_or(""); }
  // Signs the request the way the server does.
  absl::StatusOr<EnrollAnswer> Sign(const EnrollAsk& ask) {
    asked_.push_back(ask);
    if (!failure_.ok()) return failure_;
    ASSIGN_OR_RETURN(const tls::PublicKey key, tls::ReadSigningRequest(ask.csr));
    EnrollAnswer answer{.certificate = "", .roots = roots_};
    ASSIGN_OR_RETURN(answer.certificate,
                     tls::IssueCertificate(authority_, key, {.dns_names = {certified_name_}},
                                           {clock_.Now(), clock_.Now() + kLife}));
    return answer;
  }
  Enroller::Edges Edges() {
    return {.ask = [this](const EnrollAsk& ask) { return Sign(ask); },
            .cancel = nullptr,
            .on_ready = [] { return absl::OkStatus(); },
            .clock = clock_,
            .log = log_};
  }

  const testing_support::TempDir dir_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  tls::Authority authority_ = NewAuthority(clock_.Now());
  std::string roots_;  // What the server hands out.
  const Enroller::Settings settings_{.files = {.ca = dir_.File("tls/roots.pem"),
                                               .certificate = dir_.File("tls/node.pem"),
                                               .key = dir_.File("tls/node.key")},
                                     .ca_file = dir_.File("ca.pem"),
                                     .token_file = dir_.File("token"),
                                     .node_name = "node-1",
                                     .vm_id = "vm-1"};
  std::vector<EnrollAsk> asked_;
  absl::Status failure_;
  std::string certified_name_ = "node-1";
};

TEST_F(EnrollerTest, GetsACertificateAndKeepsItUntilItsRenewal) {
  Enroller enroller(settings_, Edges());
  const auto first = enroller.KeepCertificate();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(*first);
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].token, "token-1");
  EXPECT_EQ(asked_[0].node_name, "node-1");
  EXPECT_EQ(asked_[0].vm_id, "vm-1");
  const std::string certificate = Read(settings_.files.certificate);
  const std::string key = Read(settings_.files.key);
  EXPECT_TRUE(tls::CheckKeyFits(certificate, key).ok());
  EXPECT_EQ(fs::status(dir_.File("tls")).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(settings_.files.key).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);

  clock_.Advance(kLife / 2 - absl::Hours(1));
  EXPECT_FALSE(enroller.KeepCertificate().value());
  // The kubelet has renewed the token meanwhile.
  Put(settings_.token_file, "token-2\n");
  clock_.Advance(kLife / 30 + absl::Hours(1));
  EXPECT_TRUE(enroller.KeepCertificate().value());
  EXPECT_EQ(asked_.back().token, "token-2");
  EXPECT_NE(Read(settings_.files.certificate), certificate);
  // A reader that has the one file from before and the other from after is no worse off.
  EXPECT_EQ(Read(settings_.files.key), key);
}

TEST_F(EnrollerTest, AsksAnewWhenTheAuthorityOrTheNodeIsAnother) {
  ASSERT_TRUE(Enroller(settings_, Edges()).KeepCertificate().value());
  // The agent that comes next finds what this one has left.
  EXPECT_FALSE(Enroller(settings_, Edges()).KeepCertificate().value());
  authority_ = NewAuthority(clock_.Now());
  Put(settings_.ca_file, authority_.certificate);
  EXPECT_TRUE(Enroller(settings_, Edges()).KeepCertificate().value());
  Enroller::Settings renamed = settings_;
  renamed.node_name = certified_name_ = "node-2";
  EXPECT_TRUE(Enroller(renamed, Edges()).KeepCertificate().value());
  Put(settings_.files.key, "?");
  EXPECT_TRUE(Enroller(renamed, Edges()).KeepCertificate().value());
}

TEST_F(EnrollerTest, DoesNotTakeWhatWouldNotWork) {
  Enroller enroller(settings_, Edges());
  ASSERT_TRUE(enroller.KeepCertificate().value());
  const std::string good = Read(settings_.files.certificate);
  clock_.Advance(kLife * 3 / 4);
  certified_name_ = "node-9";
  const auto other_name = enroller.KeepCertificate();
  EXPECT_TRUE(absl::IsFailedPrecondition(other_name.status()));
  EXPECT_THAT(std::string(other_name.status().message()),
              HasSubstr("the server's answer: the certificate does not bear the node's name"));
  certified_name_ = "node-1";
  authority_ = NewAuthority(clock_.Now());
  const auto other_authority = enroller.KeepCertificate();
  EXPECT_TRUE(absl::IsFailedPrecondition(other_authority.status()));
  EXPECT_THAT(std::string(other_authority.status().message()), HasSubstr("another authority"));
  EXPECT_EQ(Read(settings_.files.certificate), good);
}

TEST_F(EnrollerTest, ShowsTheCertificateThatItHas) {
  Enroller enroller(settings_, Edges());
  ASSERT_TRUE(enroller.KeepCertificate().value());
  EXPECT_EQ(asked_.back().certificate, "") << "it had none";
  const std::string first = Read(settings_.files.certificate);
  fs::remove(settings_.token_file);
  clock_.Advance(kLife + absl::Hours(1));
  ASSERT_TRUE(enroller.KeepCertificate().value()) << "the certificate vouches for it";
  const EnrollAsk& ask = asked_.back();
  EXPECT_EQ(ask.token, "");
  EXPECT_EQ(ask.certificate, first);
  EXPECT_TRUE(tls::CheckRenewalProof(first, "node-1", ask.csr, ask.proof).ok());
}

TEST_F(EnrollerTest, TrustsTheRootsThatTheServerHandsOut) {
  const tls::Authority next = NewAuthority(clock_.Now());
  roots_ = authority_.certificate + next.certificate;
  ASSERT_TRUE(Enroller(settings_, Edges()).KeepCertificate().value());
  EXPECT_EQ(Read(settings_.files.ca), roots_);
  // The next root signs; nobody has changed the configured file.
  authority_ = next;
  roots_ = next.certificate;
  clock_.Advance(kLife * 3 / 4);
  ASSERT_TRUE(Enroller(settings_, Edges()).KeepCertificate().value());
  EXPECT_THAT(Read(settings_.files.ca), HasSubstr(next.certificate));
  // Another authority in the configured file replaces all of them.
  authority_ = NewAuthority(clock_.Now());
  roots_ = authority_.certificate;
  Put(settings_.ca_file, authority_.certificate);
  ASSERT_TRUE(Enroller(settings_, Edges()).KeepCertificate().value());
  EXPECT_EQ(Read(settings_.files.ca), authority_.certificate);
}

TEST_F(EnrollerTest, NoRootsAreNotAllRoots) {
  Put(settings_.ca_file, "nothing");
  EXPECT_TRUE(absl::IsFailedPrecondition(Enroller(settings_, Edges()).KeepCertificate().status()));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(EnrollerTest, SaysWhichFileIsMissing) {
  fs::remove(settings_.token_file);
  const auto no_token = Enroller(settings_, Edges()).KeepCertificate();
  EXPECT_TRUE(absl::IsNotFound(no_token.status()));
  EXPECT_THAT(std::string(no_token.status().message()), HasSubstr(settings_.token_file));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(EnrollerTest, TriesAgainUntilItCanConnectAndComplainsOnce) {
  absl::Notification ready;
  absl::Notification tried;
  Enroller::Edges edges = Edges();
  edges.ask = [&](const EnrollAsk& ask) -> absl::StatusOr<EnrollAnswer> {
    if (asked_.size() == 3) tried.Notify();
    // Only the fourth attempt is answered.
    failure_ = asked_.size() < 3 ? absl::UnavailableError("nobody there") : absl::OkStatus();
    return Sign(ask);
  };
  edges.on_ready = [&] {
    ready.Notify();
    return absl::OkStatus();
  };
  Enroller::Settings settings = settings_;
  settings.backoff = {.initial = absl::Milliseconds(1), .max = absl::Milliseconds(2)};
  {
    Enroller enroller(settings, std::move(edges));
    enroller.Start();
    ASSERT_TRUE(tried.WaitForNotificationWithTimeout(kPatience));
    ASSERT_TRUE(ready.WaitForNotificationWithTimeout(kPatience));
  }
  EXPECT_EQ(asked_.size(), 4U);
  EXPECT_EQ(log_.Count("enroll_failed"), 1);
  EXPECT_EQ(log_.Count("enrolled"), 1);
  EXPECT_THAT(log_.lines()[0], HasSubstr("nobody there"));
  EXPECT_THAT(log_.lines()[0], HasSubstr("enroll.server"));
}

TEST_F(EnrollerTest, ConnectsWithAnOldCertificateWhileItCannotBeRenewed) {
  ASSERT_TRUE(Enroller(settings_, Edges()).KeepCertificate().value());
  clock_.Advance(kLife * 3 / 4);
  failure_ = absl::PermissionDeniedError("no");
  absl::Notification ready;
  Enroller::Edges edges = Edges();
  edges.on_ready = [&] {
    ready.Notify();
    return absl::OkStatus();
  };
  Enroller enroller(settings_, std::move(edges));
  enroller.Start();
  EXPECT_TRUE(ready.WaitForNotificationWithTimeout(kPatience));
}

TEST_F(EnrollerTest, EndsWhileItWaitsForAnAnswer) {
  absl::Notification asking;
  absl::Notification cancelled;
  Enroller::Edges edges = Edges();
  edges.ask = [&](const EnrollAsk&) -> absl::StatusOr<EnrollAnswer> {
    asking.Notify();
    cancelled.WaitForNotification();
    return absl::CancelledError("stopping");
  };
  edges.cancel = [&] { cancelled.Notify(); };
  Enroller enroller(settings_, std::move(edges));
  enroller.Start();
  EXPECT_TRUE(asking.WaitForNotificationWithTimeout(kPatience));
}

}  // namespace
}  // namespace spoke::netagent
