#include "netagent/nftables/testing/nft_tables_contract.h"

#include "lib/nft/connection.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {
namespace {

class KernelWorld final : public NftTablesWorld {
 public:
  static std::unique_ptr<NftTablesWorld> Make() {
    auto netns = testing_support::FreshNetns::Enter();
    if (netns == nullptr) return nullptr;
    return std::unique_ptr<NftTablesWorld>(new KernelWorld(std::move(netns)));
  }

  nft::Tables& tables() override { return tables_; }

 private:
  explicit KernelWorld(std::unique_ptr<testing_support::FreshNetns> netns)
      : netns_(std::move(netns)), tables_(nft::Connection::Open().value()) {}

  std::unique_ptr<testing_support::FreshNetns> netns_;
  nft::Connection tables_;
};

INSTANTIATE_TEST_SUITE_P(Kernel, NftTablesContract,
                         testing::Values(NftTablesWorldFactory{"Kernel", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent
