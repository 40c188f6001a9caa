#include "lib/os/subprocess.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::os {
namespace {

using testing::HasSubstr;

TEST(RunProgram, TellsOutputErrorsAndCode) {
  const auto result = RunProgram({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "err\n");
  EXPECT_EQ(result->exit_code, 3);
}

TEST(RunProgram, ArgumentsAreNotWordsOfAShell) {
  const auto result = RunProgram({"/bin/echo", "a b", "$HOME;", "\"c\""});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "a b $HOME; \"c\"\n");
}

TEST(RunProgram, VariablesAreAddedToTheCallers) {
  const auto result = RunProgram({"/bin/sh", "-c", "echo $CNI_COMMAND; test -n \"$PATH\""},
                                 {.variables = {"CNI_COMMAND=VERSION"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "VERSION\n");
  EXPECT_EQ(result->exit_code, 0);
}

TEST(RunProgram, ASignalsDeathIsToldAsShellsTellIt) {
  const auto result = RunProgram({"/bin/sh", "-c", "kill -KILL $$"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 128 + SIGKILL);
}

TEST(RunProgram, WhatTakesTooLongIsKilled) {
  const auto result = RunProgram({"/bin/sleep", "60"}, {.time = absl::Milliseconds(50)});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(RunProgram, WhatSaysTooMuchIsKilled) {
  const auto result = RunProgram({"/bin/sh", "-c", "while :; do echo aaaaaaaa; done"},
                                 {.time = absl::Seconds(20), .output_bytes = 1000});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(RunProgram, AProgramThatIsNotThereIsNotFound) {
  const auto result = RunProgram({"/no/such/program"});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("/no/such/program"));
}

TEST(RunProgram, TheChildBlocksNoSignals) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  const auto result = RunProgram({"/bin/sh", "-c", "grep SigBlk /proc/self/status"});
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "SigBlk:\t0000000000000000\n");
}

}  // namespace
}  // namespace spoke::os
