#include "netagent/nftables/testing/nft_tables_contract.h"

#include <array>
#include <cstdio>

#include "fmt/core.h"
#include "netagent/nftables/kernel_nft_tables.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {
namespace {

// What a command prints.
std::string Output(const std::string& command) {
  std::string output;
  FILE* const pipe = ::popen(command.c_str(), "re");  // NOLINT(cert-env33-c): fixed text.
  if (pipe == nullptr) return output;
  std::array<char, 4096> part{};
  size_t got = 0;
  while ((got = std::fread(part.data(), 1, part.size(), pipe)) > 0) output.append(part.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

class KernelWorld final : public NftTablesWorld {
 public:
  static std::unique_ptr<NftTablesWorld> Make() {
    auto netns = testing_support::FreshNetns::Enter();
    if (netns == nullptr) return nullptr;
    return std::unique_ptr<NftTablesWorld>(new KernelWorld(std::move(netns)));
  }

  NftTables& tables() override { return *tables_; }
  void AddDevice(const std::string& name) override {
    Output(fmt::format("ip link add {} type veth peer name other-{}", name, name));
  }
  std::vector<std::string> DevicesOf(const nft::TableKey& table,
                                     const std::string& chain) override {
    EXPECT_EQ(table.family, nft::Family::kNetdev);
    // "type filter hook ingress devices = { a, b } priority ..."; one alone stands without braces.
    std::string text = Output(fmt::format("nft list chain netdev {} {}", table.name, chain));
    const size_t hook = text.find("hook ingress ");
    const size_t end = text.find(" priority", hook);
    if (hook == std::string::npos || end == std::string::npos) return {};
    text = text.substr(hook, end - hook);
    std::vector<std::string> devices;
    for (size_t i = text.find("spk"); i != std::string::npos; i = text.find("spk", i + 1)) {
      devices.push_back(text.substr(i, text.find_first_of("\", }", i) - i));
    }
    std::sort(devices.begin(), devices.end());
    return devices;
  }

 private:
  explicit KernelWorld(std::unique_ptr<testing_support::FreshNetns> netns)
      : netns_(std::move(netns)), tables_(KernelNftTables::Open().value()) {}

  std::unique_ptr<testing_support::FreshNetns> netns_;
  std::unique_ptr<KernelNftTables> tables_;
};

INSTANTIATE_TEST_SUITE_P(Kernel, NftTablesContract,
                         testing::Values(NftTablesWorldFactory{"Kernel", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::netagent
