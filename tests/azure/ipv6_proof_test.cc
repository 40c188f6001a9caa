// Tests of an agent on the simulated Azure: an IPv6 address that the server lists is assigned once
// the NIC has it.
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "netagent/attach/attachments.h"
#include "netagent/azure/imds.h"
#include "netagent/azure/wireserver.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
#include "netagent/verification/address_verifier.h"
#include "netagent/verification/testing/fake_host_list.h"
#include "tests/azure-sim/imds_model.h"
#include "tests/azure-sim/model_for_test.h"
#include "tests/azure-sim/wireserver_model.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using azure_sim::Json;
using testing::ElementsAre;
using testing::IsEmpty;

const ip::Address kSix = ip::Address::Parse("fd00:10::4").value();

class Ipv6ProofTest : public azure_sim::ModelTest {
 protected:
  void SetUp() override {
    azure_sim::SimSpec spec = azure_sim::SmallSpec(2, "10.0.0.0/24");
    spec.subnets[0].prefix_v6 = ip::Prefix::Parse("fd00:10::/64").value();
    Make(spec);
    imds_ = std::make_unique<azure_sim::ImdsModel>(model_->backend());
    wireserver_ = std::make_unique<azure_sim::WireserverModel>(model_->backend());
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    StartAgent();
  }
  void StartAgent() {
    ipv4_.reset();
    ipv6_.reset();
    const std::vector<Event> events = tmpfs_.events;
    attachments_.emplace(
        Attachments::Settings{
            .node_name = "node1", .nic = "eth0", .proof_required = {.ipv4 = true, .ipv6 = true}},
        Attachments::Edges{kernel_, server_, clock_, log_}, std::make_unique<FakeJournal>(tmpfs_));
    ASSERT_TRUE(attachments_->Start(events).ok());
    const auto edges = [this](HostList* host) {
      return AddressVerifier::Edges{
          .host = host, .clock = clock_, .log = log_, .post = [this](std::function<void()> work) {
            posted_.push_back(std::move(work));
          }};
    };
    ipv4_.emplace(edges(&host_), ip::Family::kV4, absl::Minutes(2), *attachments_);
    ipv6_.emplace(edges(&metadata_), ip::Family::kV6, absl::Minutes(2), *attachments_);
  }
  // Plays what the server says of the node's NIC, rightly or not.
  void ServerSays(const std::vector<std::string>& addresses) {
    node_api::DesiredState desired{.version = ++version_, .full = true};
    for (const std::string& address : addresses) {
      desired.added.push_back(
          {.range = ip::Prefix::Host(ip::Address::Parse(address).value()), .pool = "default"});
    }
    ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  }
  azure::Fetch FetchFrom(azure_sim::ImdsModel& model) {
    return [this, &model](const http::Request& request,
                          absl::Duration) -> absl::StatusOr<http::Response> {
      return model.Handle(request, Vm(0), now_);
    };
  }
  // Runs the verifiers, and lets the simulated Azure answer what they read.
  void RunFor(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Seconds(1)) {
      clock_.Advance(absl::Seconds(1));
      model_->Advance(now_);
      ipv4_->Tick();
      ipv6_->Tick();
      if (metadata_.reading()) {
        metadata_.Finish(azure::ReadImdsIpv6("http://169.254.169.254", FetchFrom(*imds_)));
      }
      if (host_.reading()) {
        host_.Finish(azure::ReadHostAddresses(
            "http://168.63.129.16",
            [this](const http::Request& request, absl::Duration) -> absl::StatusOr<http::Response> {
              return wireserver_->Handle(request, Vm(0), now_);
            },
            World().nics.at(0)->mac));
      }
      for (const auto& work : std::exchange(posted_, {})) work();
    }
  }
  static std::string Vm(int number) {
    return fmt::format("{}/virtualMachines/{}", azure_sim::kSet, number);
  }
  azure_sim::Instance& World() { return *model_->world().FindInstance(Vm(0)); }
  // Plays the server's request, and what it becomes on the NIC some time later.
  void PutOnNic(int number) {
    Json body = BodyWith(number, {"spoke-six"});
    body["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][0]
        ["properties"]["ipConfigurations"][1]["properties"]["privateIPAddressVersion"] = "IPv6";
    ASSERT_EQ(Put(number, body).status, 200);
  }
  std::vector<ip::Address> Unproven() const { return attachments_->assignments().Unproven(); }
  std::vector<ip::Address> Proven() const { return attachments_->assignments().Proven(); }

  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeKernel kernel_;
  FakeServerLink server_;
  FakeTmpfs tmpfs_;
  FakeHostList host_;
  FakeHostList metadata_;
  std::vector<std::function<void()>> posted_;
  std::unique_ptr<azure_sim::ImdsModel> imds_;
  std::unique_ptr<azure_sim::WireserverModel> wireserver_;
  std::optional<Attachments> attachments_;
  std::optional<AddressVerifier> ipv4_;
  std::optional<AddressVerifier> ipv6_;
  uint64_t version_ = 0;
};

// What an older backup says was on the NIC has gone to another machine since.
TEST_F(Ipv6ProofTest, WhatARestoredServerListsWronglyIsNotAssigned) {
  PutOnNic(1);
  ServerSays({kSix.ToString()});
  RunFor(absl::Minutes(10));
  EXPECT_THAT(Unproven(), ElementsAre(kSix));
  EXPECT_EQ(log_.Count("address_unproven"), 1);
  StartAgent();
  RunFor(absl::Minutes(10));
  EXPECT_THAT(Unproven(), ElementsAre(kSix)) << "nor after a restart";
}

TEST_F(Ipv6ProofTest, WhatTheNicHasIsAssignedOnceTheMetadataServiceShowsIt) {
  model_->knobs().imds_lag = absl::Seconds(30);
  PutOnNic(0);
  ServerSays({kSix.ToString()});
  RunFor(absl::Seconds(5));
  EXPECT_THAT(Unproven(), ElementsAre(kSix)) << "the operation is under way";
  RunFor(absl::Minutes(2));
  EXPECT_THAT(Unproven(), IsEmpty());
  EXPECT_THAT(Proven(), ElementsAre(kSix));

  // The node can do without the service from then on.
  model_->knobs().imds_gone = true;
  StartAgent();
  RunFor(absl::Minutes(5));
  EXPECT_THAT(Unproven(), IsEmpty());
}

TEST_F(Ipv6ProofTest, EachFamilyIsProvenByWhatListsIt) {
  PutOnNic(0);
  ServerSays({World().nics.at(0)->entries.at(0).range.base().ToString(), kSix.ToString()});
  RunFor(absl::Minutes(2));
  EXPECT_THAT(Unproven(), IsEmpty());
  EXPECT_GT(host_.readings, 0);
  EXPECT_GT(metadata_.readings, 0);
}

}  // namespace
}  // namespace spoke::netagent
