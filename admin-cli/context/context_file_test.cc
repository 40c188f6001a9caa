#include "admin-cli/context/context_file.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;

ContextFile Two() {
  ContextFile file{.current = "prod"};
  file.contexts["prod"] = {.servers = {"a.example.org:7446", "[fd00::1]:7446"},
                           .ca = "prod-ca.pem",
                           .certificate = "prod.pem",
                           .key = "/keys/prod.key",
                           .server_name = "spoke-ipam-server"};
  file.contexts["here"] = {.servers = {"unix:/run/spoke/ipam-admin.sock"}};
  return file;
}

TEST(ContextFile, IsReadBackAsItWasPrinted) {
  for (const ContextFile& file : {ContextFile(), Two()}) {
    const auto read = ParseContexts(PrintContexts(file), "config.yaml");
    ASSERT_TRUE(read.ok()) << read.status() << "\n" << PrintContexts(file);
    EXPECT_EQ(*read, file);
  }
}

TEST(ContextFile, EachMistakeHasItsLine) {
  const auto read = ParseContexts(
      "current: other\n"
      "contexts:\n"
      "  prod:\n"
      "    servers: [\"a.example.org\", \"b:99999\"]\n"
      "    password: x\n"
      "  ../evil:\n"
      "    servers: []\n",
      "config.yaml");
  ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string text(read.status().message());
  for (const char* part :
       {"config.yaml:1: current: there is no context \"other\"",
        "config.yaml:4: contexts.prod.servers[0]: \"a.example.org\" is no server",
        "\"b:99999\" is no server", "config.yaml:5: contexts.prod.password",
        "\"../evil\" is no name of a context", "needs 1 to 16 servers"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(ContextFile, AServerOverTheNetworkNeedsACertificate) {
  const auto read = ParseContexts("contexts: {p: {servers: [\"a:1\"], ca: c}}\n", "f");
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("needs ca, certificate and key"));
}

TEST(ContextFile, IsWhereTheEnvironmentSays) {
  std::map<std::string, std::string> variables;
  const auto path = [&] {
    return ContextPath([&](const std::string& name) { return variables[name]; });
  };
  EXPECT_EQ(path(), "");
  variables["HOME"] = "/h";
  EXPECT_EQ(path(), "/h/.config/spoke/config.yaml");
  variables["XDG_CONFIG_HOME"] = "/x";
  EXPECT_EQ(path(), "/x/spoke/config.yaml");
  variables["SPOKE_CONFIG"] = "/y.yaml";
  EXPECT_EQ(path(), "/y.yaml");
}

TEST(ContextFile, IsWrittenForItsOwnerAndFoundAgain) {
  const testing_support::TempDir dir;
  const std::string path = dir.File("a/b/config.yaml");
  EXPECT_EQ(*ReadContexts(path), ContextFile()) << "there is none yet";
  ASSERT_TRUE(WriteContexts(path, Two()).ok());
  EXPECT_EQ(*ReadContexts(path), Two());
  EXPECT_EQ(WriteContexts("", Two()).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace spoke::ctl
