#include "lib/daemon/daemon_main.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <fstream>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::daemon {
namespace {

struct Config {
  bool debug = false;
};

absl::StatusOr<Config> Parse(std::string_view text, const std::string& file) {
  if (text != "good") return absl::InvalidArgumentError(file + ":1: bad");
  return Config{};
}

class DaemonMainTest : public testing::Test {
 protected:
  DaemonMainTest() { std::ofstream(path_) << "good"; }

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "spoke-test");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    return Main(
        static_cast<int>(argv.size()), argv.data(),
        {.about = "A test.",
         .config_path = path_,
         .statements = {{"--say", "Says it",
                         [this] {
                           said_ += "table,";
                           return std::string();
                         },
                         [this] {
                           said_ += "json,";
                           return std::string();
                         }}},
         .commands = {{.option = "--do",
                       .help = "Does it",
                       .flags = {{"--more", "More of it"}},
                       .run = WithConfig(&Parse,
                                         [this](const Config&, const CommandRequest& request) {
                                           did_ += request.flags.contains("--more") ? "more" : "do";
                                           did_ += request.json ? ",json;" : ";";
                                           return command_code_;
                                         })},
                      {.option = "--ask",
                       .help = "Asks",
                       .words = {"one", "other"},
                       .run = WithConfig(&Parse,
                                         [this](const Config&, const CommandRequest& request) {
                                           did_ += request.word + ";";
                                           return command_code_;
                                         })}}},
        &Parse, [this](const Config&, telemetry::Log&) {
          ++served_;
          if (throws_) throw std::runtime_error("a library's fault");
          return outcome_;
        });
  }

  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("config.yaml");
  absl::Status outcome_;
  bool throws_ = false;
  std::string said_;
  std::string did_;
  int command_code_ = 0;
  int served_ = 0;
};

TEST_F(DaemonMainTest, ServesWithAGoodFile) {
  EXPECT_EQ(Run({}), 0);
  EXPECT_EQ(served_, 1);
  outcome_ = absl::UnavailableError("port in use");
  EXPECT_EQ(Run({"--config", path_}), 1);
}

TEST_F(DaemonMainTest, CheckConfigChecksAndDoesNothingElse) {
  EXPECT_EQ(Run({"--check-config"}), 0);
  std::ofstream(path_) << "bad";
  EXPECT_EQ(Run({"--check-config"}), 2);
  EXPECT_EQ(served_, 0);
}

TEST_F(DaemonMainTest, AConfigurationMayBeCheckedWhereItsDirectoriesAreNot) {
  const auto check = [&](const std::string& text) {
    std::ofstream(path_) << text;
    std::vector<std::string> words = {"spoke-test", "--check-config"};
    std::vector<char*> argv = {words[0].data(), words[1].data()};
    return Main(
        2, argv.data(),
        {.about = "A test.",
         .config_path = path_,
         .check =
             [](std::string_view of, const std::string& file) {
               const absl::Status directory = NoteMissingDirectory("/nonexistent/spoke");
               return directory.ok() ? Parse(of, file).status() : directory;
             }},
        [](std::string_view, const std::string&) -> absl::StatusOr<Config> {
          return absl::NotFoundError("/nonexistent/spoke");
        },
        [](const Config&, telemetry::Log&) { return absl::OkStatus(); });
  };
  EXPECT_EQ(check("good"), 0);
  EXPECT_EQ(check("bad"), 2);
}

TEST_F(DaemonMainTest, WrongUsageAndBadFilesTouchNothing) {
  EXPECT_EQ(Run({"--nonsense"}), 2);
  EXPECT_EQ(Run({"--config", dir_.File("none.yaml")}), 2);
  std::ofstream(path_) << "bad";
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_EQ(served_, 0);
}

TEST_F(DaemonMainTest, AStatementNeedsNoConfigurationAndIsAllThatIsDone) {
  std::ofstream(path_) << "bad";
  EXPECT_EQ(Run({"--say"}), 0);
  EXPECT_EQ(Run({"--say", "-o", "json"}), 0);
  EXPECT_EQ(said_, "table,json,");
  EXPECT_EQ(Run({"--say", "-o", "poem"}), 2);
  EXPECT_EQ(said_, "table,json,");
  EXPECT_EQ(served_, 0);
}

TEST_F(DaemonMainTest, ACommandHasTheConfigurationAndIsAllThatIsDone) {
  EXPECT_EQ(Run({"--do"}), 0);
  command_code_ = 1;
  EXPECT_EQ(Run({"--do", "--more", "-o", "json"}), 1);
  EXPECT_EQ(did_, "do;more,json;");
  EXPECT_EQ(Run({"--more"}), 2);
  EXPECT_EQ(Run({"--do", "--say"}), 2);
  std::ofstream(path_) << "bad";
  EXPECT_EQ(Run({"--do"}), 2);
  EXPECT_EQ(Run({"--do", "--config", dir_.File("none.yaml")}), 2);
  EXPECT_EQ(did_, "do;more,json;");
  EXPECT_EQ(served_, 0);
}

TEST_F(DaemonMainTest, ACommandTakesOneOfItsWordsAndStandsAlone) {
  EXPECT_EQ(Run({"--ask", "other"}), 0);
  EXPECT_EQ(did_, "other;");
  EXPECT_EQ(Run({"--ask"}), 2);
  EXPECT_EQ(Run({"--ask", "third"}), 2);
  EXPECT_EQ(Run({"--ask", "one", "--do"}), 2);
  EXPECT_EQ(Run({"--ask", "one", "--more"}), 2);
  EXPECT_EQ(Run({"--ask", "one", "--check-config"}), 2);
  EXPECT_EQ(did_, "other;");
  EXPECT_EQ(served_, 0);
}

TEST_F(DaemonMainTest, WhatIsThrownIsAFailure) {
  throws_ = true;
  EXPECT_EQ(Run({}), 1);
}

// The protection is there before the configuration is read, and with it the keys.
TEST_F(DaemonMainTest, NoKeyComesIntoACoreDumpAndNoPrivilegeIsGained) {
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);
  EXPECT_EQ(Run({"--check-config"}), 0);
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), 0);
  rlimit core{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &core), 0);
  EXPECT_EQ(core.rlim_max, 0U);
  EXPECT_EQ(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
}

}  // namespace
}  // namespace spoke::daemon
