#include "netagent/verification/testing/fake_neighbour_watch.h"

#include "netagent/verification/testing/neighbour_watch_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public NeighbourWatchWorld {
 public:
  FakeWorld() { watch_.own = {{2, 0, 0, 0, 0, 4}}; }
  NeighbourWatch& watch() override { return watch_; }
  ip::MacAddress other_mac() const override { return {{2, 0, 0, 0, 0, 1}}; }
  void Hold(const ip::Address& address) override { watch_.holders[address] = other_mac(); }
  void Announce(const ip::Address& address) override {
    watch_.Pass(FakeNeighbourWatch::Has(address, other_mac()));
  }
  void Probe(const ip::Address& address) override {
    watch_.Pass(FakeNeighbourWatch::Asks(address, other_mac()));
  }
  void Reflect(const ip::Address& address) override {
    watch_.Pass(FakeNeighbourWatch::Has(address, watch_.own));
  }
  bool WasTold(const ip::Address& address) override {
    return !watch_.answered.empty() && watch_.answered.back() == std::pair(address, other_mac());
  }

 private:
  FakeNeighbourWatch watch_;
};

INSTANTIATE_TEST_SUITE_P(Fake, NeighbourWatchContract,
                         testing::Values(NeighbourWatchWorldFactory{
                             "Fake", [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& test) { return test.param.name; });

TEST(FakeNeighbourWatch, FailsAsLongAsItIsToldTo) {
  FakeNeighbourWatch watch;
  watch.failure = absl::UnavailableError("down");
  EXPECT_FALSE(watch.Ask({NeighbourWatchWorld::kFree4, std::nullopt}).ok());
  EXPECT_FALSE(watch.Take().ok());
  watch.failure = absl::OkStatus();
  EXPECT_TRUE(watch.Ask({NeighbourWatchWorld::kFree4, std::nullopt}).ok());
}

}  // namespace
}  // namespace spoke::netagent
