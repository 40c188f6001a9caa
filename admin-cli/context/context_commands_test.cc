// Tests of contexts: which server a command line means, and what is wrong with a certificate.
#include "absl/time/time.h"
#include "admin-cli/context/target.h"
#include "admin-cli/testing/command_fixture.h"
#include "lib/tls/authority.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;

class ContextTest : public CommandTest {
 protected:
  ContextTest() {
    Change(FillCluster);
    variables_["SPOKE_SERVER"] = "";
    variables_["SPOKE_CONFIG"] = dir_.File("config.yaml");
  }

  // Writes an authority's certificate, and one that it has signed, for `validity`.
  rpc::TlsFiles Certificates(const std::string& name, const tls::Validity& validity) {
    tls::Authority authority{.certificate = "", .key = tls::MakeKey().value()};
    const absl::Time now = absl::FromUnixMillis(kNowMs);
    authority.certificate =
        tls::MakeAuthorityCertificate(authority.key, "test",
                                      {now - absl::Hours(9000), now + absl::Hours(9000)})
            .value();
    const std::string key = tls::MakeKey().value();
    const std::string certificate = tls::IssueCertificate(authority, tls::PublicKeyOf(key).value(),
                                                          {.common_name = "alice"}, validity)
                                        .value();
    return {.ca = WriteFile(name + "-ca.pem", authority.certificate),
            .certificate = WriteFile(name + ".pem", certificate),
            .key = WriteFile(name + ".key", key)};
  }
  tls::Validity From(absl::Duration begin, absl::Duration end) const {
    const absl::Time now = absl::FromUnixMillis(kNowMs);
    return {now + begin, now + end};
  }
};

TEST_F(ContextTest, OneIsMadeUsedAndForgotten) {
  EXPECT_THAT(Run("context list").err, HasSubstr("there are no contexts"));
  EXPECT_EQ(Run("context set here --at " + target_).code, 0);
  EXPECT_EQ(Run("context set other --at unix:/nowhere.sock").code, 0);
  EXPECT_THAT(Run("context list").out, HasSubstr("*        here"));
  EXPECT_THAT(Run("pool list").out, HasSubstr("default"));
  EXPECT_EQ(Run("pool list --context other").code, 3);
  variables_["SPOKE_CONTEXT"] = "other";
  EXPECT_EQ(Run("pool list").code, 3);
  EXPECT_EQ(Run("pool list --context here").code, 0);
  variables_["SPOKE_CONTEXT"] = "";
  EXPECT_EQ(Run("context use other").code, 0);
  EXPECT_EQ(Run("pool list").code, 3);
  EXPECT_EQ(Run("pool list --server " + target_).code, 0) << "an option says more than a file";
  EXPECT_EQ(Run("context delete other").code, 0);
  EXPECT_EQ(Json("context list")[0]["current"], false);
  EXPECT_EQ(Run("context delete other").code, 4);
  EXPECT_EQ(Run("context use other").code, 4);
}

TEST_F(ContextTest, WhoeverMistypesOneIsToldTheNearest) {
  EXPECT_EQ(Run("context set production --at " + target_).code, 0);
  for (const char* line : {"pool list --context prodution", "context use prodution",
                           "context delete prodution", "budget list --context prodution"}) {
    const Outcome outcome = Run(line);
    EXPECT_EQ(outcome.code, 4) << line;
    EXPECT_THAT(outcome.err, HasSubstr("there are production; did you mean production?")) << line;
  }
}

TEST_F(ContextTest, WhatIsWrongIsSaidAndNotWritten) {
  const Outcome unknown = Run("pool list --context prod");
  EXPECT_EQ(unknown.code, 4);
  EXPECT_THAT(unknown.err, HasSubstr("there is no context \"prod\", nor any other"));
  EXPECT_THAT(Run("budget list --context prod").err, HasSubstr("there is no context"));
  const Outcome without = Run("context set prod --at a:7446");
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("needs ca, certificate and key"));
  EXPECT_EQ(Run("context set ../x --at unix:/a").code, 2);
  EXPECT_THAT(Run("context list").err, HasSubstr("there are no contexts"));
  const Outcome bare = Run("pool list --server a:7446");
  EXPECT_EQ(bare.code, 2);
  EXPECT_THAT(bare.err, HasSubstr("a:7446 is asked with a certificate"));
  EXPECT_THAT(Run("pool list --server nonsense").err, HasSubstr("is no server"));
  WriteFile("config.yaml", "contexts: 7\n");
  const Outcome broken = Run("pool list");
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, testing::StartsWith("spokectl: the file of contexts has mistakes:\n"));
  EXPECT_THAT(broken.err, HasSubstr("config.yaml:1: "));
  EXPECT_THAT(broken.err, testing::Not(HasSubstr("nothing was changed")));
  EXPECT_EQ(Run("pool list --server " + target_).code, 0) << "it needs no context";
}

TEST_F(ContextTest, TheNextServerIsAskedWhenOneDoesNotLetUsIn) {
  EXPECT_EQ(Run("context set two --at unix:" + dir_.File("nobody.sock") + " --at " + target_).code,
            0);
  const Outcome listed = Run("pool list");
  EXPECT_EQ(listed.code, 0) << listed.err;
}

TEST_F(ContextTest, EachWrongCertificateHasAMessageOfItsOwn) {
  const absl::Time now = absl::FromUnixMillis(kNowMs);
  const rpc::TlsFiles good = Certificates("good", From(-absl::Hours(1), absl::Hours(1)));
  EXPECT_TRUE(CheckCertificate(good, now).ok()) << CheckCertificate(good, now);
  const auto message = [&](const rpc::TlsFiles& files) {
    return std::string(CheckCertificate(files, now).message());
  };
  EXPECT_THAT(message(Certificates("old", From(-absl::Hours(2), -absl::Hours(1)))),
              HasSubstr("the certificate of alice ended on 2023-11-14T21:23:20Z"));
  EXPECT_THAT(message(Certificates("new", From(absl::Hours(1), absl::Hours(2)))),
              HasSubstr("begins on"));
  rpc::TlsFiles foreign = Certificates("foreign", From(-absl::Hours(1), absl::Hours(1)));
  foreign.ca = good.ca;
  EXPECT_THAT(message(foreign), HasSubstr("signed by another authority"));
  rpc::TlsFiles mixed = good;
  mixed.key = foreign.key;
  EXPECT_THAT(message(mixed), HasSubstr("does not go with"));
  rpc::TlsFiles missing = good;
  missing.certificate = dir_.File("nothing.pem");
  EXPECT_EQ(CheckCertificate(missing, now).code(), absl::StatusCode::kNotFound);
}

TEST_F(ContextTest, AnEndedCertificateStopsTheCallBeforeItIsMade) {
  const rpc::TlsFiles old = Certificates("old", From(-absl::Hours(2), -absl::Hours(1)));
  EXPECT_EQ(Run("context set prod --at 127.0.0.1:1 --ca " + old.ca + " --certificate " +
                old.certificate + " --key " + old.key)
                .code,
            0);
  const Outcome refused = Run("pool list");
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("get a new one: spokectl login"));
  EXPECT_EQ(Run("context list").code, 0) << "what asks nobody needs no certificate";
}

}  // namespace
}  // namespace spoke::ctl
