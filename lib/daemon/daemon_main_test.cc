#include "lib/daemon/daemon_main.h"

#include <fstream>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::daemon {
namespace {

struct Config {
  bool debug = false;
  int number = 0;
};

class DaemonMainTest : public testing::Test {
 protected:
  DaemonMainTest() { std::ofstream(path_) << "good"; }

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "spoke-test");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    const Statement say{"--say", "Says it",
                        [this] {
                          said_ += "table,";
                          return std::string();
                        },
                        [this] {
                          said_ += "json,";
                          return std::string();
                        }};
    const auto note = [this](const Config& config, const Asked& asked) {
      said_ += fmt::format("{} {} {},", config.number, asked.word, asked.json);
      return exit_code_;
    };
    return Main<Config>(
        static_cast<int>(argv.size()), argv.data(),
        {.about = "A test.", .config_path = path_, .statements = {say}},
        {.parse = [](std::string_view text, const std::string& file) -> absl::StatusOr<Config> {
           if (text != "good") return absl::InvalidArgumentError(file + ":1: bad");
           return Config{.number = 7};
         },
         .serve =
             [this](const Config&, telemetry::Log&) {
               ++served_;
               if (throws_) throw std::runtime_error("a library's fault");
               return outcome_;
             },
         .commands = {{{"--probe", "Asks", {"readiness", "liveness"}}, note},
                      {{"--sweep", "Sweeps"}, note}}});
  }

  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("config.yaml");
  absl::Status outcome_;
  bool throws_ = false;
  std::string said_;
  int served_ = 0;
  int exit_code_ = 0;
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
  EXPECT_EQ(Run({"--probe", "liveness"}), 0);
  EXPECT_EQ(said_, "7 liveness false,");
  exit_code_ = 1;
  EXPECT_EQ(Run({"--sweep", "-o", "json", "--config", path_}), 1);
  EXPECT_EQ(said_, "7 liveness false,7  true,");
  EXPECT_EQ(served_, 0);
}

TEST_F(DaemonMainTest, ACommandThatIsWrongDoesNothing) {
  EXPECT_EQ(Run({"--probe"}), 2);
  EXPECT_EQ(Run({"--probe", "mood"}), 2);
  EXPECT_EQ(Run({"--sweep", "--probe", "liveness"}), 2);
  EXPECT_EQ(Run({"--check-config", "--sweep"}), 2);
  std::ofstream(path_) << "bad";
  EXPECT_EQ(Run({"--sweep"}), 2);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(served_, 0);
}

TEST_F(DaemonMainTest, WhatIsThrownIsAFailure) {
  throws_ = true;
  EXPECT_EQ(Run({}), 1);
}

}  // namespace
}  // namespace spoke::daemon
