#include "netagent/egress/ip_masq_files.h"

#include <unistd.h>

#include <fstream>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

class IpMasqFilesTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.path() + "/" + name) << text;
  }
  void Remove(const std::string& name) { ::unlink((directory_.path() + "/" + name).c_str()); }
  IpMasqFilesWatch Watch(const std::string& path) {
    return IpMasqFilesWatch(
        path, false,
        [this](const IpMasqConfig& config) {
          if (answer_.ok()) in_force_ = config;
          return answer_;
        },
        log_);
  }
  std::string First() const {
    return in_force_ && !in_force_->non_masquerade.empty() ? in_force_->non_masquerade[0].ToString()
                                                           : "none";
  }

  testing_support::TempDir directory_;
  testing_support::RecordingLog log_;
  std::optional<IpMasqConfig> in_force_;
  absl::Status answer_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(IpMasqFilesTest, WithoutAFileTheDefaultsAreInForce) {
  IpMasqFilesWatch watch = Watch(directory_.path() + "/none");
  EXPECT_EQ(watch.Start(now_).non_masquerade.size(), 3U);
  EXPECT_TRUE(watch.problem().ok());
}

TEST_F(IpMasqFilesTest, AChangedFileIsInForceAfterItsInterval) {
  Write("config", "nonMasqueradeCIDRs: [9.0.0.0/8]\nresyncInterval: 10s\n");
  IpMasqFilesWatch watch = Watch(directory_.path() + "/config");
  EXPECT_EQ(watch.Start(now_).non_masquerade.size(), 1U);
  EXPECT_EQ(watch.NextWake(), now_ + absl::Seconds(10));
  Write("config", "nonMasqueradeCIDRs: [8.0.0.0/8]\nresyncInterval: 10s\n");
  watch.Tick(now_ + absl::Seconds(9));
  EXPECT_EQ(First(), "none");
  watch.Tick(now_ + absl::Seconds(10));
  EXPECT_EQ(First(), "8.0.0.0/8");
}

TEST_F(IpMasqFilesTest, AMistakeKeepsTheLastGoodOneAndIsSaidOnce) {
  Write("config", "nonMasqueradeCIDRs: [9.0.0.0/8]\n");
  IpMasqFilesWatch watch = Watch(directory_.path() + "/config");
  watch.Start(now_);
  Write("config", "nonMasqueradeCIDRs: [9.0.0.1/8]\n");
  for (int i = 0; i < 3; ++i) {
    now_ = watch.NextWake();
    watch.Tick(now_);
  }
  EXPECT_FALSE(watch.problem().ok());
  EXPECT_FALSE(in_force_.has_value());
  EXPECT_EQ(log_.Count("ip_masq_file_refused"), 1);
  Write("config", "nonMasqueradeCIDRs: [7.0.0.0/8]\n");
  watch.Tick(watch.NextWake());
  EXPECT_EQ(First(), "7.0.0.0/8");
  EXPECT_TRUE(watch.problem().ok());
}

TEST_F(IpMasqFilesTest, MergesADirectorysFiles) {
  Write("ip-masq-a", "nonMasqueradeCIDRs: [9.0.0.0/8]\n");
  Write("other", "nonMasqueradeCIDRs: [1.0.0.0/8]\n");
  IpMasqFilesWatch watch = Watch(directory_.path());
  EXPECT_EQ(watch.Start(now_).non_masquerade.size(), 1U);
  Write("ip-masq-b", "nonMasqueradeCIDRs: [8.0.0.0/8]\n");
  watch.Tick(watch.NextWake());
  ASSERT_TRUE(in_force_.has_value());
  EXPECT_EQ(in_force_->non_masquerade.size(), 2U);
  Remove("ip-masq-a");
  watch.Tick(watch.NextWake());
  EXPECT_EQ(First(), "8.0.0.0/8");
}

TEST_F(IpMasqFilesTest, WhatCannotBePutInForceIsTriedAgain) {
  IpMasqFilesWatch watch = Watch(directory_.path() + "/config");
  watch.Start(now_);
  Write("config", "nonMasqueradeCIDRs: [9.0.0.0/8]\n");
  answer_ = absl::UnavailableError("busy");
  watch.Tick(watch.NextWake());
  EXPECT_EQ(First(), "none");
  answer_ = absl::OkStatus();
  watch.Tick(watch.NextWake());
  EXPECT_EQ(First(), "9.0.0.0/8");
}

}  // namespace
}  // namespace spoke::netagent
