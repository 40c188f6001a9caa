#include "netagent/cleanup/file_traces.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kConflist =
    R"({"cniVersion":"1.0.0","name":"n","plugins":[{"type":"spoke"},{"type":"portmap"}]})";

class FileTracesTest : public testing::Test {
 protected:
  FileTracesTest() {
    for (const char* directory : {"net.d", "bin", "share", "run/spoke/netagent/tls",
                                  "run/spoke/tombstones", "lib/spoke/netagent"}) {
      std::filesystem::create_directories(dir_.File(directory));
    }
    Write("share/conflist", kConflist);
    Write("share/spoke", "program");
  }
  void Write(const std::string& name, std::string_view content) {
    ASSERT_TRUE(os::WriteFileAtomic(dir_.File(name), content, os::Durability::kVisible).ok());
  }
  // Returns what is found and ours, or what is found and not, below the directory.
  std::vector<std::string> Ours(bool ours = true) const {
    std::vector<std::string> names;
    for (const TraceFile& file : FindFiles(paths_)) {
      if (file.foreign_because.empty() == ours) {
        names.push_back(file.path.substr(dir_.path().size() + 1));
      }
    }
    return names;
  }

  const testing_support::TempDir dir_;
  CleanupPaths paths_ = {.conflist = dir_.File("net.d/05-spoke.conflist"),
                         .conflist_source = dir_.File("share/conflist"),
                         .plugin = dir_.File("bin/spoke"),
                         .plugin_source = dir_.File("share/spoke"),
                         .state_dir = dir_.File("run/spoke/netagent"),
                         .lasting_dir = dir_.File("lib/spoke/netagent"),
                         .cni_socket = dir_.File("run/spoke/cni.sock"),
                         .health_socket = dir_.File("run/spoke/health.sock"),
                         .keep = {dir_.File("run/spoke/netagent/tls/operators.pem")}};
};

TEST_F(FileTracesTest, WhatTheAgentMakesIsFoundAndNothingElse) {
  for (const char* name : {"net.d/05-spoke.conflist",
                           "net.d/10-other.conflist",
                           "bin/bridge",
                           "run/spoke/netagent/clock",
                           "run/spoke/netagent/journal",
                           "run/spoke/netagent/journal.lock",
                           "run/spoke/netagent/nic",
                           "run/spoke/netagent/policy.tmp",
                           "run/spoke/netagent/store-token",
                           "lib/spoke/netagent/store-token",
                           "lib/spoke/netagent/other",
                           "run/spoke/netagent/notes",
                           "run/spoke/netagent/tls/node.pem",
                           "run/spoke/netagent/tls/operators.pem",
                           "run/spoke/tombstones/0123456789abcdef",
                           "run/spoke/tombstones/.1.tmp",
                           "run/spoke/tombstones/readme",
                           "run/spoke/cni.sock",
                           "run/spoke/cni.sock.stopped",
                           "run/spoke/health.sock",
                           "run/spoke/ipam-admin.sock"}) {
    Write(name, kConflist);
  }
  Write("bin/spoke", "program");
  Write("bin/spoke.tmp", "prog");
  EXPECT_THAT(
      Ours(),
      ElementsAre("net.d/05-spoke.conflist", "bin/spoke", "bin/spoke.tmp",
                  "run/spoke/netagent/clock", "run/spoke/netagent/journal",
                  "run/spoke/netagent/nic", "run/spoke/netagent/policy.tmp",
                  "run/spoke/netagent/store-token", "run/spoke/netagent/tls/node.pem",
                  "run/spoke/tombstones/.1.tmp", "run/spoke/tombstones/0123456789abcdef",
                  "lib/spoke/netagent/store-token", "lib/spoke/netagent", "run/spoke/cni.sock",
                  "run/spoke/cni.sock.stopped", "run/spoke/health.sock",
                  "run/spoke/netagent/journal.lock", "run/spoke/tombstones",
                  "run/spoke/netagent/tls", "run/spoke/netagent", "lib/spoke", "run/spoke"));
}

TEST_F(FileTracesTest, AnotherConfigurationOrPluginIsNotOurs) {
  Write("net.d/05-spoke.conflist", R"({"plugins":[{"type":"bridge"},{"type":"spoke"}]})");
  Write("bin/spoke", "another");
  EXPECT_THAT(Ours(false), ElementsAre("net.d/05-spoke.conflist", "bin/spoke"));
  // A configuration that somebody has edited still is ours.
  Write("net.d/05-spoke.conflist", R"({"plugins":[{"type":"spoke","mtu":1400}]})");
  EXPECT_THAT(Ours(false), ElementsAre("bin/spoke"));
}

TEST_F(FileTracesTest, WhatIsNotInstalledIsNotLookedAt) {
  Write("net.d/05-spoke.conflist", kConflist);
  Write("bin/spoke", "program");
  paths_.lasting_dir.clear();
  paths_.conflist = "";
  paths_.plugin = "";
  EXPECT_THAT(Ours(), ElementsAre("run/spoke/tombstones", "run/spoke/netagent/tls",
                                  "run/spoke/netagent", "run/spoke"));
}

TEST_F(FileTracesTest, DirectoriesGoWhenTheyAreEmptyAndStayOtherwise) {
  const TraceFile folder = {.path = dir_.File("run/spoke/tombstones"),
                            .role = FileRole::kDirectory};
  Write("run/spoke/tombstones/readme", "x");
  EXPECT_FALSE(RemoveFile(folder).value());
  EXPECT_TRUE(RemoveFile({.path = folder.path + "/readme"}).value());
  EXPECT_FALSE(RemoveFile({.path = folder.path + "/readme"}).value());
  EXPECT_TRUE(RemoveFile(folder).value());
  EXPECT_FALSE(RemoveFile(folder).value());
  const auto status = RemoveFile({.path = dir_.File("bin")}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("delete " + dir_.File("bin")));
}

TEST(NamesOurPlugin, IsSafeOnAnyText) {
  EXPECT_TRUE(NamesOurPlugin(kConflist));
  for (const char* text :
       {"", "{", "[]", "1", "{}", R"({"plugins":{}})", R"({"plugins":[]})", R"({"plugins":[1]})",
        R"({"plugins":[{}]})", R"({"plugins":[{"type":1}]})", R"({"type":"spoke"})",
        R"({"plugins":[{"type":"spoke2"}]})"}) {
    EXPECT_FALSE(NamesOurPlugin(text)) << text;
  }
}

}  // namespace
}  // namespace spoke::netagent
