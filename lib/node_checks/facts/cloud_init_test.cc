#include "lib/node_checks/facts/cloud_init.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::node_checks {
namespace {

constexpr const char* kOffText =
    "datasource:\n  Azure:\n    apply_network_config_for_secondary_ips: false\n";
constexpr const char* kOnText =
    "datasource:\n  Azure:\n    apply_network_config_for_secondary_ips: true\n";

struct Case {
  std::string name;
  std::map<std::string, std::string> files;  // The files, besides cloud-init itself.
  SecondaryIps want;
  std::string decided_by = {};  // The file's path under the root.
};

class CloudInitTest : public testing::TestWithParam<Case> {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.File(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  testing_support::TempDir root_;
};

TEST_P(CloudInitTest, TheOptionIsFoundWhereverItIsSet) {
  Write("usr/bin/cloud-init", "");
  for (const auto& [path, text] : GetParam().files) Write(path, text);
  const CloudInitReading reading = ReadCloudInit(root_.path());
  EXPECT_EQ(reading.secondary_ips, GetParam().want);
  EXPECT_TRUE(reading.unreadable.empty()) << reading.unreadable[0];
  const std::string& file = GetParam().decided_by;
  EXPECT_EQ(reading.decided_by, file.empty() ? "" : root_.path() + "/" + file);
}

// A container may have the node's configuration, and not its programs.
TEST_F(CloudInitTest, ItsConfigurationTellsOfItWhereProgramsAreNotSeen) {
  Write("etc/cloud/cloud.cfg", "users:\n - default\n");
  EXPECT_EQ(ReadCloudInit(root_.path()).secondary_ips, SecondaryIps::kOn);
  Write("usr/bin/true", "");
  EXPECT_EQ(ReadCloudInit(root_.path()).secondary_ips, SecondaryIps::kNotInstalled);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CloudInitTest,
    testing::Values(
        Case{"NoFiles", {}, SecondaryIps::kOn},
        Case{"Default", {{"etc/cloud/cloud.cfg", "users:\n - default\n"}}, SecondaryIps::kOn},
        Case{"OtherAzureOptions",
             {{"etc/cloud/cloud.cfg.d/90_dpkg.cfg", "datasource_list: [ Azure ]\n"},
              {"etc/cloud/cloud.cfg.d/91.cfg", "datasource: {Azure: {disk_aliases: {a: b}}}\n"}},
             SecondaryIps::kOn},
        Case{"Off", {{"etc/cloud/cloud.cfg", kOffText}}, SecondaryIps::kOff, "etc/cloud/cloud.cfg"},
        Case{"OffInAPart",
             {{"etc/cloud/cloud.cfg", kOnText}, {"etc/cloud/cloud.cfg.d/99-spoke.cfg", kOffText}},
             SecondaryIps::kOff,
             "etc/cloud/cloud.cfg.d/99-spoke.cfg"},
        Case{
            "OnInALaterPart",
            {{"etc/cloud/cloud.cfg.d/10.cfg", kOffText}, {"etc/cloud/cloud.cfg.d/20.cfg", kOnText}},
            SecondaryIps::kOn,
            "etc/cloud/cloud.cfg.d/20.cfg"},
        Case{"APartOfAnotherName",
             {{"etc/cloud/cloud.cfg.d/99-spoke.cfg.dpkg-old", kOffText}},
             SecondaryIps::kOn},
        Case{"OldYamlsWordForFalse",
             {{"etc/cloud/cloud.cfg",
               "datasource: {Azure: {apply_network_config_for_secondary_ips: No}}\n"}},
             SecondaryIps::kOff,
             "etc/cloud/cloud.cfg"},
        Case{"MetadataNotUsedForTheNetwork",
             {{"etc/cloud/cloud.cfg", "datasource: {Azure: {apply_network_config: false}}\n"}},
             SecondaryIps::kOff,
             "etc/cloud/cloud.cfg"},
        Case{"NetworkLeftAlone",
             {{"etc/cloud/cloud.cfg.d/99.cfg", "network: {config: disabled}\n"}},
             SecondaryIps::kOff,
             "etc/cloud/cloud.cfg.d/99.cfg"},
        Case{"SwitchedOff", {{"etc/cloud/cloud-init.disabled", ""}}, SecondaryIps::kNotInstalled},
        Case{"AnchorsAndComments",
             {{"etc/cloud/cloud.cfg.d/05_logging.cfg",
               "_log:\n - &log_base |\n   [loggers]\n   keys=root\nlog_cfgs:\n"
               " - [ *log_base ]\n"},
              {"etc/cloud/cloud.cfg.d/06.cfg", "# nothing\n\n"},
              {"etc/cloud/cloud.cfg.d/07.cfg", kOffText}},
             SecondaryIps::kOff,
             "etc/cloud/cloud.cfg.d/07.cfg"}),
    [](const auto& test) { return test.param.name; });

TEST_F(CloudInitTest, ConfigurationThatItsProgramHasLeftBehindSaysNothing) {
  Write("usr/bin/true", "");
  Write("etc/cloud/cloud.cfg", kOnText);
  EXPECT_EQ(ReadCloudInit(root_.path()).secondary_ips, SecondaryIps::kNotInstalled);
}

TEST_F(CloudInitTest, AFileThatIsNoYamlIsNamedAndPassedOver) {
  Write("usr/bin/cloud-init", "");
  Write("etc/cloud/cloud.cfg", kOffText);
  Write("etc/cloud/cloud.cfg.d/50.cfg", "a: [apply_network_config\n");
  const CloudInitReading reading = ReadCloudInit(root_.path());
  EXPECT_EQ(reading.secondary_ips, SecondaryIps::kOff);
  ASSERT_EQ(reading.unreadable.size(), 1U);
  EXPECT_NE(reading.unreadable[0].message().find("50.cfg"), std::string::npos);
}

}  // namespace
}  // namespace spoke::node_checks
