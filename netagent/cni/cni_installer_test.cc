#include "netagent/cni/cni_installer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "nlohmann/json.hpp"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24);
constexpr std::string_view kContent = R"({"cniVersion":"1.0.0","name":"spoke","plugins":[]})";

struct stat InfoOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info;
}

class CniInstallerTest : public testing::Test {
 protected:
  CniInstallerTest() {
    EXPECT_EQ(::mkdir(settings_.plugin_directory.c_str(), 0755), 0);
    EXPECT_EQ(::mkdir(settings_.conf_directory.c_str(), 0755), 0);
    Write(settings_.conf_source, kContent);
    Write(settings_.plugin_source, plugin_);
  }
  void Write(const std::string& path, std::string_view content) {
    ASSERT_TRUE(os::WriteFileAtomic(path, content, os::Durability::kVisible).ok());
  }
  static bool IsThere(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

  const testing_support::TempDir dir_;
  const std::string plugin_ = std::string(
                                  "\x7f"
                                  "ELF\0",
                                  5) +
                              std::string(100'000, 'x');
  const CniInstallSettings settings_{.plugin_source = dir_.File("spoke"),
                                     .plugin_directory = dir_.File("bin"),
                                     .conf_source = dir_.File("source"),
                                     .conf_directory = dir_.File("net.d"),
                                     .conf_file = "10-spoke.conflist"};
  const std::string program_ = settings_.PluginPath();
  const std::string conf_ = settings_.ConfPath();
  // Makes a plugin in the directory that says which versions it speaks, and counts how often.
  void WriteChained(const std::string& name, std::string_view versions) {
    const std::string path = settings_.plugin_directory + "/" + name;
    ASSERT_TRUE(
        os::WriteFileAtomic(path,
                            fmt::format("#!/bin/sh\n[ \"$CNI_COMMAND\" = VERSION ] || exit 1\n"
                                        "echo >>{}\necho '{{\"supportedVersions\":{}}}'\n",
                                        asked_, versions),
                            os::Durability::kVisible, 0755)
            .ok());
  }
  size_t TimesAsked() const {
    const auto asked = os::ReadFile(asked_);
    return asked.ok() ? asked->size() : 0;
  }

  const std::string asked_ = dir_.File("asked");
  testing_support::RecordingLog log_;
  ChainedVersions chained_;
};

TEST_F(CniInstallerTest, BothAreInstalledOnceThePodsCanBeServedAndNotBefore) {
  CniInstaller installer(settings_, log_);
  installer.Tick(false, kNow);
  EXPECT_FALSE(IsThere(program_));
  EXPECT_FALSE(IsThere(conf_));
  EXPECT_THAT(installer.Reason(), HasSubstr("waits for the node to have addresses"));
  installer.Tick(true, kNow);
  EXPECT_EQ(os::ReadFile(program_).value(), plugin_);
  EXPECT_EQ(InfoOf(program_).st_mode & 07777U, 0755U);
  EXPECT_EQ(os::ReadFile(conf_).value(), kContent);
  EXPECT_EQ(InfoOf(conf_).st_mode & 07777U, 0644U);
  EXPECT_EQ(installer.Reason(), "");
  EXPECT_EQ(log_.Count("cni_file_installed"), 2);
  EXPECT_EQ(log_.Count("cni_in_place"), 1);
}

TEST_F(CniInstallerTest, WithoutADirectoryForItThePluginIsNotCopied) {
  CniInstallSettings settings = settings_;
  settings.plugin_directory = "";
  settings.plugin_source = "/nowhere/spoke";
  CniInstaller installer(settings, log_);
  installer.Tick(true, kNow);
  EXPECT_EQ(installer.Reason(), "");
  EXPECT_FALSE(IsThere(program_));
  EXPECT_TRUE(IsThere(conf_));
}

TEST_F(CniInstallerTest, TheSameContentIsLeftAloneAndOtherContentReplaced) {
  EXPECT_EQ(InstallPlugin(settings_).value(), CniFileFound::kNothing);
  EXPECT_EQ(InstallConflist(settings_, chained_).value(), CniFileFound::kNothing);
  const ino_t program = InfoOf(program_).st_ino;
  const ino_t conf = InfoOf(conf_).st_ino;
  EXPECT_EQ(InstallPlugin(settings_).value(), CniFileFound::kRight);
  EXPECT_EQ(InstallConflist(settings_, chained_).value(), CniFileFound::kRight);
  EXPECT_EQ(InfoOf(program_).st_ino, program);
  EXPECT_EQ(InfoOf(conf_).st_ino, conf);
  // The newer plugin has the same length.
  std::string newer = plugin_;
  newer.back() = 'y';
  Write(settings_.plugin_source, newer);
  Write(settings_.conf_source, R"({"name":"other"})");
  EXPECT_EQ(InstallPlugin(settings_).value(), CniFileFound::kAnother);
  EXPECT_EQ(InstallConflist(settings_, chained_).value(), CniFileFound::kAnother);
  EXPECT_EQ(os::ReadFile(program_).value(), newer);
  EXPECT_EQ(os::ReadFile(conf_).value(), R"({"name":"other"})");
  ASSERT_EQ(::chmod(program_.c_str(), 0644), 0);
  EXPECT_EQ(InstallPlugin(settings_).value(), CniFileFound::kAnother);
  EXPECT_EQ(InfoOf(program_).st_mode & 07777U, 0755U);
}

TEST_F(CniInstallerTest, WhatSomebodyRemovesIsBackAtOnce) {
  CniInstaller installer(settings_, log_);
  absl::Time now = kNow;
  installer.Tick(true, now);
  ASSERT_GE(installer.fd(), 0);
  // What the agent itself has done concerns nobody.
  installer.OnReadable();
  installer.Tick(true, now += CniInstaller::kAtOnce);
  installer.OnReadable();
  for (const std::string& path : {program_, conf_}) {
    installer.Tick(true, now += absl::Seconds(5));
    now += CniInstaller::kAtOnce;
    EXPECT_GT(installer.NextWake(true), now);
    ASSERT_EQ(::unlink(path.c_str()), 0);
    installer.OnReadable();
    EXPECT_LE(installer.NextWake(true), now);
    installer.Tick(true, now);
    EXPECT_TRUE(IsThere(path)) << path;
    installer.OnReadable();
  }
  EXPECT_EQ(log_.Count("cni_file_restored"), 2);
  // Somebody who removes it again and again is not followed more than once a second.
  ASSERT_EQ(::unlink(conf_.c_str()), 0);
  installer.OnReadable();
  installer.Tick(true, now + CniInstaller::kAtOnce / 2);
  EXPECT_FALSE(IsThere(conf_));
  installer.Tick(true, now + CniInstaller::kAtOnce);
  EXPECT_TRUE(IsThere(conf_));
}

TEST_F(CniInstallerTest, AnUninstallIsRespected) {
  CniInstaller installer(settings_, log_);
  installer.Tick(true, kNow);
  for (const std::string& path :
       {settings_.conf_source, settings_.plugin_source, conf_, program_}) {
    ASSERT_EQ(::unlink(path.c_str()), 0);
  }
  installer.OnReadable();
  installer.Tick(true, kNow + absl::Minutes(1));
  EXPECT_FALSE(IsThere(conf_));
  EXPECT_FALSE(IsThere(program_));
}

TEST_F(CniInstallerTest, WhatSomebodyRemovesOrSpoilsIsPutBackWithinAMinute) {
  CniInstaller installer(settings_, log_);
  installer.Tick(true, kNow);
  ASSERT_EQ(::unlink(program_.c_str()), 0);
  Write(conf_, "{}");
  installer.Tick(false, kNow + absl::Seconds(59));
  EXPECT_FALSE(IsThere(program_));
  // The files are put back whether or not the agent can serve: pods that are there need it to go.
  installer.Tick(false, kNow + CniInstaller::kLookAgain);
  EXPECT_EQ(os::ReadFile(program_).value(), plugin_);
  EXPECT_EQ(os::ReadFile(conf_).value(), kContent);
  EXPECT_EQ(log_.Count("cni_file_restored"), 2);
}

TEST_F(CniInstallerTest, TheConfigurationComesNoEarlierThanThePlugin) {
  ASSERT_EQ(::rmdir(settings_.plugin_directory.c_str()), 0);
  CniInstaller installer(settings_, log_);
  installer.Tick(true, kNow);
  EXPECT_FALSE(IsThere(conf_));
  EXPECT_THAT(installer.Reason(), HasSubstr(program_ + ".tmp: No such file or directory; create"));
  // The failure is said once, and tried every ten seconds.
  installer.Tick(true, kNow + absl::Seconds(9));
  installer.Tick(true, kNow + absl::Seconds(10));
  EXPECT_EQ(log_.Count("cni_install_failed"), 1);
  ASSERT_EQ(::mkdir(settings_.plugin_directory.c_str(), 0755), 0);
  installer.Tick(true, kNow + absl::Seconds(19));
  EXPECT_NE(installer.Reason(), "");
  installer.Tick(true, kNow + absl::Seconds(20));
  EXPECT_EQ(installer.Reason(), "");
  EXPECT_TRUE(IsThere(conf_));
}

TEST_F(CniInstallerTest, SourcesThatAreWrongLeaveTheOldFiles) {
  CniInstaller installer(settings_, log_);
  installer.Tick(true, kNow);
  Write(settings_.conf_source, "{ not json");
  installer.Tick(true, kNow + absl::Minutes(1));
  EXPECT_EQ(os::ReadFile(conf_).value(), kContent);
  EXPECT_THAT(installer.Reason(), HasSubstr("is not a JSON object; put the package's file back"));
  Write(settings_.plugin_source, "");
  installer.Tick(true, kNow + absl::Minutes(2));
  EXPECT_EQ(os::ReadFile(program_).value(), plugin_);
  EXPECT_THAT(installer.Reason(), HasSubstr("spoke is empty"));
}

TEST_F(CniInstallerTest, ACopyThatWasInterruptedIsDoneAgain) {
  Write(program_ + ".tmp", plugin_.substr(0, 1000) + std::string(200'000, 'z'));
  Write(conf_ + ".tmp", "{\"na");
  CniInstaller installer(settings_, log_);
  installer.Tick(true, kNow);
  EXPECT_EQ(os::ReadFile(program_).value(), plugin_);
  EXPECT_EQ(os::ReadFile(conf_).value(), kContent);
  EXPECT_FALSE(IsThere(program_ + ".tmp"));
  EXPECT_FALSE(IsThere(conf_ + ".tmp"));
}

constexpr std::string_view kChain =
    R"({"cniVersion":"1.0.0","cniVersions":["0.4.0","1.0.0","1.1.0"],"name":"spoke",)"
    R"("plugins":[{"type":"spoke"},{"type":"portmap"}]})";

TEST_F(CniInstallerTest, AChainSpeaksTheVersionsThatAllItsPluginsSpeak) {
  Write(settings_.conf_source, kChain);
  CniInstaller installer(settings_, log_);
  WriteChained("portmap", R"(["0.4.0","1.0.0"])");
  installer.Tick(true, kNow);
  const auto json = nlohmann::json::parse(os::ReadFile(conf_).value());
  EXPECT_EQ(json["cniVersions"], nlohmann::json({"0.4.0", "1.0.0"}));
  EXPECT_EQ(json["cniVersion"], "1.0.0");
  EXPECT_EQ(json["plugins"].size(), 2U);
  // The file is right, and the plugin need not be asked again.
  installer.Tick(true, kNow + absl::Minutes(1));
  EXPECT_EQ(log_.Count("cni_file_restored"), 0);
  EXPECT_EQ(TimesAsked(), 1U);
  // The plugin is replaced by a newer one.
  WriteChained("portmap", R"(["0.4.0","1.0.0","1.1.0"])");
  installer.Tick(true, kNow + absl::Minutes(2));
  EXPECT_EQ(os::ReadFile(conf_).value(), kChain);
  EXPECT_EQ(TimesAsked(), 2U);
}

TEST_F(CniInstallerTest, WithAPluginThatSaysNothingTheChainOffersNoChoiceOfVersions) {
  Write(settings_.conf_source, kChain);
  CniInstaller installer(settings_, log_);
  installer.Tick(true, kNow);
  auto json = nlohmann::json::parse(os::ReadFile(conf_).value());
  EXPECT_FALSE(json.contains("cniVersions")) << "portmap is not there";
  EXPECT_EQ(json["cniVersion"], "1.0.0");
  EXPECT_EQ(installer.Reason(), "");
  WriteChained("portmap", "7");
  installer.Tick(true, kNow + absl::Minutes(1));
  json = nlohmann::json::parse(os::ReadFile(conf_).value());
  EXPECT_FALSE(json.contains("cniVersions")) << "portmap's answer has no list";
  WriteChained("portmap", R"(["1.1.0","1.0.0","0.4.0","9.9.9"])");
  installer.Tick(true, kNow + absl::Minutes(2));
  EXPECT_EQ(os::ReadFile(conf_).value(), kChain);
}

TEST_F(CniInstallerTest, WithoutSettingsNothingIsWritten) {
  CniInstaller installer(std::nullopt, log_);
  installer.Tick(true, kNow);
  EXPECT_EQ(installer.Reason(), "");
  EXPECT_TRUE(log_.lines().empty());
}

}  // namespace
}  // namespace spoke::netagent
