// The fake keeps the promises that the real back ends keep.
#include "netagent/iptables/testing/fake_iptables.h"

#include <memory>

#include "netagent/iptables/testing/iptables_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public IptablesWorld {
 public:
  Iptables& iptables() override { return iptables_; }
  void AddTheirs() override {
    iptables_.Add(ip::Family::kV4, "mangle",
                  {.chain = "FORWARD",
                   .text = "-s 192.0.2.0/24 -m comment --comment theirs -j ACCEPT",
                   .comment = "theirs"});
  }
  bool SendFromOutside() override {
    const PublishedRule input = PublishedRules(ip::Prefix::Parse("10.0.0.0/8").value())[0];
    iptables_.Count(input.chain, input.Text(), 4, 336);
    return true;
  }

 private:
  FakeIptables iptables_;
};

INSTANTIATE_TEST_SUITE_P(Fake, IptablesContract,
                         testing::Values(IptablesWorldFactory{
                             "Fake", [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent
