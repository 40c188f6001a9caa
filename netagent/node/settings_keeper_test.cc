#include "netagent/node/settings_keeper.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

TEST(SettingsKeeper, MendsWhatIsFoundAndTriesWhatItMayNotOnce) {
  const testing_support::TempDir dir;
  std::filesystem::create_directories(dir.File("net/ipv4/conf/eth0"));
  std::ofstream(dir.File("net/ipv4/conf/eth0/rp_filter")) << "1\n";
  const node_checks::Report report{
      .findings = {{.id = "rp-filter", .settings = {{"net.ipv4.conf.eth0.rp_filter", "2"}}},
                   {.id = "neighbours", .settings = {{"net.ipv4.neigh.default.gc_thresh3", "9"}}},
                   {.id = "mtu"}}};
  SettingsKeeper keeper(dir.path());
  const NodeSetupReport first = keeper.Mend(report);
  EXPECT_EQ(first.changed,
            (std::vector<ChangedSetting>{{"net.ipv4.conf.eth0.rp_filter", "1", "2"}}));
  EXPECT_EQ(first.failed.size(), 1U) << "it is not in this namespace";
  EXPECT_EQ(os::ReadFile(dir.File("net/ipv4/conf/eth0/rp_filter")).value(), "2\n");

  // Somebody sets it back, and it is mended again; what was refused is not tried again.
  std::ofstream(dir.File("net/ipv4/conf/eth0/rp_filter")) << "1\n";
  const NodeSetupReport second = keeper.Mend(report);
  EXPECT_EQ(second.changed.size(), 1U);
  EXPECT_TRUE(second.failed.empty());
  EXPECT_TRUE(keeper.Mend({}).changed.empty());
}

}  // namespace
}  // namespace spoke::netagent
