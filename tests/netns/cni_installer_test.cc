// Tests of the installer on file systems that are full or read-only: mounts in a namespace of the
// test's own.
#include "netagent/cni/cni_installer.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24);

// Runs `body` on a thread that has its own mounts.
template <typename Body>
void WithOwnMounts(const Body& body) {
  std::thread([&] {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0) << std::strerror(errno);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    body();
  }).join();
}

// This is a NetnsTest for its word on whether namespaces can be made.
class CniInstallerMountTest : public testing_support::NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    for (const std::string& path : {settings_.plugin_directory, settings_.conf_directory}) {
      ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
    }
    Write(settings_.plugin_source, std::string(64 << 10, 'x'));
    Write(settings_.conf_source, "{}");
  }
  static void Write(const std::string& path, std::string_view content) {
    ASSERT_TRUE(os::WriteFileAtomic(path, content, os::Durability::kVisible).ok()) << path;
  }
  static bool IsThere(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

  const testing_support::TempDir dir_;
  const CniInstallSettings settings_{.plugin_source = dir_.File("spoke"),
                                     .plugin_directory = dir_.File("bin"),
                                     .conf_source = dir_.File("source"),
                                     .conf_directory = dir_.File("net.d"),
                                     .conf_file = "10-spoke.conflist"};
  testing_support::RecordingLog log_;
};

TEST_F(CniInstallerMountTest, AFullDirectoryKeepsTheOldPluginUntilThereIsSpace) {
  WithOwnMounts([&] {
    const char* bin = settings_.plugin_directory.c_str();
    ASSERT_EQ(::mount("full", bin, "tmpfs", 0, "size=96k"), 0) << std::strerror(errno);
    CniInstaller installer(settings_, log_);
    installer.Tick(true, kNow);
    ASSERT_EQ(installer.Reason(), "");
    // The next one does not fit beside the old one.
    Write(settings_.plugin_source, std::string(64 << 10, 'y'));
    installer.Tick(true, kNow + absl::Minutes(1));
    EXPECT_THAT(installer.Reason(),
                HasSubstr(settings_.PluginPath() +
                          ".tmp: No space left on device; free space on its file system"));
    EXPECT_EQ(os::ReadFile(settings_.PluginPath()).value(), std::string(64 << 10, 'x'));
    EXPECT_FALSE(IsThere(settings_.PluginPath() + ".tmp"));
    ASSERT_EQ(::mount("full", bin, "tmpfs", MS_REMOUNT, "size=256k"), 0) << std::strerror(errno);
    installer.Tick(true, kNow + absl::Minutes(1) + CniInstaller::kPause);
    EXPECT_EQ(installer.Reason(), "");
    EXPECT_EQ(os::ReadFile(settings_.PluginPath()).value(), std::string(64 << 10, 'y'));
  });
}

TEST_F(CniInstallerMountTest, AReadOnlyDirectoryIsSaidAndNothingElseIsTouched) {
  WithOwnMounts([&] {
    const char* bin = settings_.plugin_directory.c_str();
    ASSERT_EQ(::mount("read-only", bin, "tmpfs", MS_RDONLY, nullptr), 0) << std::strerror(errno);
    CniInstaller installer(settings_, log_);
    installer.Tick(true, kNow);
    EXPECT_THAT(installer.Reason(), HasSubstr(settings_.PluginPath() +
                                              ".tmp: Read-only file system; let the agent write"));
    EXPECT_FALSE(IsThere(settings_.ConfPath()));
    ASSERT_EQ(::mount("read-only", bin, "tmpfs", MS_REMOUNT, nullptr), 0) << std::strerror(errno);
    installer.Tick(true, kNow + CniInstaller::kPause);
    EXPECT_EQ(installer.Reason(), "");
    EXPECT_TRUE(IsThere(settings_.PluginPath()));
    EXPECT_TRUE(IsThere(settings_.ConfPath()));
  });
}

}  // namespace
}  // namespace spoke::netagent
