#include "netagent/fastpath/testing/fake_fast_path.h"

#include "netagent/fastpath/testing/fast_path_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public FastPathWorld {
 public:
  FastPath& Begin() override { return fast_; }
  std::string uplink() const override { return "nic0"; }
  TrafficPod Pod(std::vector<ip::Address> addresses) override {
    return {.host_link = "spk", .host_index = ++links_, .addresses = std::move(addresses)};
  }

 private:
  FakeFastPath fast_{{"nic0"}};
  uint32_t links_ = 10;
};

INSTANTIATE_TEST_SUITE_P(Fake, FastPathContract,
                         ::testing::Values(+[]() -> std::unique_ptr<FastPathWorld> {
                           return std::make_unique<FakeWorld>();
                         }));

}  // namespace
}  // namespace spoke::netagent
