#include "netagent/dns/testing/fake_dns_listener.h"

#include "netagent/dns/testing/dns_listener_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public DnsListenerWorld {
 public:
  DnsListener& listener() override { return listener_; }
  void Send(Way way, const ip::Address& source, const std::string& text, uint16_t port) override {
    if (way != Way::kFromPod && port == 53) listener_.Pass(source, {text.begin(), text.end()});
  }

 private:
  FakeDnsListener listener_;
};

INSTANTIATE_TEST_SUITE_P(Fake, DnsListenerContract,
                         testing::Values(DnsListenerWorldFactory{
                             "Fake", [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& test) { return test.param.name; });

TEST(FakeDnsListener, FailsAsLongAsItIsToldTo) {
  FakeDnsListener listener;
  listener.failure = absl::InternalError("no");
  EXPECT_EQ(listener.Open({}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(listener.fd(), -1);
  listener.failure = absl::OkStatus();
  EXPECT_TRUE(listener.Open({}).ok());
  EXPECT_EQ(listener.opened, 2);
  listener.failure = absl::InternalError("no");
  EXPECT_EQ(listener.Take(1).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace spoke::netagent
