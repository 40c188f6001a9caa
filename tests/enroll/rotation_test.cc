// Months of a cluster whose authority changes its root again and again, in simulated time: whether
// an agent that may come back at all is ever without a chain that verifies, on either side.
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "ipam-server/authority/cluster_authority.h"
#include "ipam-server/enroll/renewal_decision.h"
#include "ipam-server/store/testing/memory_store.h"
#include "lib/os/clock.h"
#include "lib/tls/certificate.h"
#include "lib/tls/renewal.h"
#include "netagent/enroll/enrollment.h"
#include "netagent/enroll/trusted_roots.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke {
namespace {

constexpr absl::Duration kLife = absl::Hours(24);
constexpr absl::Duration kStep = absl::Hours(4);
constexpr int kDays = 110;
constexpr size_t kAgents = 5;

struct Agent {
  std::string name;
  std::string key;
  std::string certificate;
  std::string configured;  // The configured file; nobody changes it.
  std::string handed;
  double jitter = 0;
  absl::Time away_until = absl::InfinitePast();

  std::string trusted() const { return netagent::TrustedRoots(configured, handed); }
};

class Rotation : public testing::Test {
 protected:
  Rotation() {
    for (size_t i = 0; i < kAgents; ++i) {
      Agent& agent = agents_.emplace_back();
      agent.name = "node-" + std::to_string(i);
      agent.key = tls::MakeKey().value();
      agent.configured = authority_->trusted();
      agent.jitter = std::uniform_real_distribution<double>(0, 1)(random_);
      Sign(agent);
    }
  }

  std::string Issue(const std::string& key, const std::string& name, tls::Purpose purpose) {
    return tls::IssueCertificate(authority_->signing(), tls::PublicKeyOf(key).value(),
                                 {.common_name = name, .dns_names = {name}, .purpose = purpose},
                                 {clock_.Now() - ipam::kClockSkew, clock_.Now() + kLife})
        .value();
  }
  void Sign(Agent& agent) {
    agent.handed = netagent::HandedText(agent.configured, agent.trusted(), authority_->trusted());
    agent.certificate = Issue(agent.key, agent.name, tls::Purpose::kClient);
  }
  // The server looks at its roots, and at its own certificate.
  void Look() {
    if (authority_->Step(clock_.Now()).value() || server_.empty()) {
      server_ = Issue(server_key_, "server", tls::Purpose::kServer);
    }
  }
  // The agent sees the server, and renews its certificate by the one that it has.
  void Renew(Agent& agent) {
    ASSERT_TRUE(tls::CheckSignedBy(server_, agent.trusted()).ok())
        << agent.name << " does not know the server any more";
    const std::string csr = tls::MakeSigningRequest(agent.key, agent.name).value();
    const std::string proof = tls::ProveRenewal(agent.key, agent.name, csr).value();
    const tls::CertificateFacts facts = tls::ReadCertificate(agent.certificate).value();
    const absl::Status renewed = ipam::CheckRenewal(
        {.dns_names = facts.dns_names,
         .uris = facts.uris,
         .not_before = facts.not_before,
         .not_after = facts.not_after,
         .for_clients = facts.for_clients,
         .is_authority = facts.is_authority,
         .is_ours = tls::CheckSignedBy(agent.certificate, authority_->trusted()).ok(),
         .is_proved = tls::CheckRenewalProof(agent.certificate, agent.name, csr, proof).ok()},
        agent.name, clock_.Now());
    ASSERT_TRUE(renewed.ok()) << agent.name << ": " << renewed;
    Sign(agent);
  }
  void Live(Agent& agent) {
    const absl::Time now = clock_.Now();
    if (now < agent.away_until) return;
    const tls::CertificateFacts facts = tls::ReadCertificate(agent.certificate).value();
    if (now >= netagent::RenewAt(facts.not_before, facts.not_after, agent.jitter)) Renew(agent);
    // Both sides of a connection.
    ASSERT_TRUE(tls::CheckSignedBy(server_, agent.trusted()).ok()) << agent.name;
    ASSERT_TRUE(tls::CheckSignedBy(agent.certificate, authority_->trusted()).ok()) << agent.name;
    // Now and then it is cut off, for as long as its certificate may be renewed.
    if (std::uniform_int_distribution<int>(0, 59)(random_) != 0) return;
    const absl::Time last =
        tls::ReadCertificate(agent.certificate)->not_after + ipam::kRenewalGrace - kStep;
    agent.away_until = now + (last - now) * std::uniform_real_distribution<double>(0, 1)(random_);
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  const testing_support::TempDir dir_;
  testing_support::RecordingLog log_;
  os::SimClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  ipam::MemoryStore store_;
  const std::unique_ptr<ipam::ClusterAuthority> authority_ =
      ipam::ClusterAuthority::OpenStored(
          {.store = store_,
           .key = ipam::SealKey::From("0123456789abcdefghijklmnopqrstuv").value(),
           .directory = dir_.path()},
          kLife, clock_.Now(), log_)
          .value();
  const std::string server_key_ = tls::MakeKey().value();
  std::string server_;
  std::vector<Agent> agents_;
};

TEST_F(Rotation, NobodyIsEverWithoutAChainThatVerifies) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  const absl::Time end = clock_.Now() + absl::Hours(24 * kDays);
  std::set<std::string> signers;
  while (clock_.Now() < end) {
    Look();
    for (Agent& agent : agents_) {
      Live(agent);
      if (HasFatalFailure()) return;
    }
    // Whoever presses for the next rotation as soon as one is over.
    if (authority_->roots().size() == 1) {
      ASSERT_TRUE(authority_->Rotate(clock_.Now()).ok());
    }
    signers.insert(authority_->signing().certificate);
    clock_.Advance(kStep);
  }
  EXPECT_GE(signers.size(), 7U) << "roots that have signed";
}

TEST_F(Rotation, WhatTheFormerRootHasSignedCountsNoMoreInTheEnd) {
  Look();
  const std::string former = agents_.front().certificate;
  ASSERT_TRUE(authority_->Rotate(clock_.Now()).ok());
  for (int i = 0; i < 20 * 6; ++i) {
    clock_.Advance(kStep);
    Look();
  }
  EXPECT_EQ(authority_->roots().size(), 1U);
  EXPECT_FALSE(tls::CheckSignedBy(former, authority_->trusted()).ok());
}

}  // namespace
}  // namespace spoke
