#include "netagent/node/nic_name.h"

#include <set>

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

class NicNameTest : public testing::Test {
 protected:
  absl::StatusOr<std::string> Find() {
    return FindNic({.file = dir_.File("nic"),
                    .is_there = [this](const std::string& name) { return there_.contains(name); },
                    .find = [this] { return uplink_; }});
  }

  testing_support::TempDir dir_;
  std::set<std::string> there_ = {"ens3", "tun0"};
  absl::StatusOr<std::string> uplink_ = "ens3";
};

TEST_F(NicNameTest, IsKeptThoughTheDefaultRouteLeadsElsewhereOrIsGone) {
  EXPECT_EQ(Find().value(), "ens3");
  uplink_ = "tun0";
  EXPECT_EQ(Find().value(), "ens3");
  uplink_ = absl::NotFoundError("there is no default route");
  EXPECT_EQ(Find().value(), "ens3");
}

TEST_F(NicNameTest, IsLookedForAgainWhenTheDeviceIsGone) {
  EXPECT_EQ(Find().value(), "ens3");
  there_ = {"tun0"};
  uplink_ = absl::NotFoundError("there is no default route");
  EXPECT_EQ(Find().status(), uplink_.status());
  uplink_ = "tun0";
  EXPECT_EQ(Find().value(), "tun0");
  there_ = {"ens3", "tun0"};
  EXPECT_EQ(Find().value(), "tun0");
}

TEST_F(NicNameTest, AFileThatIsNoNameOnlyCostsASearch) {
  for (const std::string& text :
       {std::string(), std::string(4096, 'x'), std::string("no\0ne", 5)}) {
    ASSERT_TRUE(os::WriteFileAtomic(dir_.File("nic"), text, os::Durability::kVisible).ok());
    EXPECT_EQ(Find().value(), "ens3");
    EXPECT_EQ(os::ReadFile(dir_.File("nic"), 64).value(), "ens3");
  }
}

TEST_F(NicNameTest, NothingIsKeptWhereNothingCanBeWritten) {
  EXPECT_EQ(FindNic({.file = dir_.File("no/nic"),
                     .is_there = [](const std::string&) { return true; },
                     .find = [this] { return uplink_; }})
                .value(),
            "ens3");
}

}  // namespace
}  // namespace spoke::netagent
