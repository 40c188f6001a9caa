#include "netagent/azure/kept_identity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent::azure {
namespace {

using testing::HasSubstr;

const ip::MacAddress kMac = ip::MacAddress::Parse("00:0d:3a:31:45:48").value();

class KeptIdentityTest : public testing::Test {
 protected:
  absl::StatusOr<Identity> Learn(const ip::MacAddress& mac = kMac) {
    return LearnIdentity(imds_, file_, "eth0", mac, log_);
  }

  os::SimClock clock_;
  testing_support::TempDir dir_;
  testing_support::RecordingLog log_;
  std::string file_ = dir_.File("instance.json");
  std::string document_ =
      os::ReadFile(SPOKE_SOURCE_DIR "/netagent/azure/testdata/imds_instance.json").value();
  int requests_ = 0;
  Imds imds_{"http://imds",
             [this](const http::Request&, absl::Duration) -> absl::StatusOr<http::Response> {
               ++requests_;
               return http::Response{.status = document_.empty() ? 503 : 200, .body = document_};
             },
             clock_, [this](absl::Duration pause) { clock_.Advance(pause); }};
};

TEST_F(KeptIdentityTest, TheServiceIsAskedOnceABoot) {
  const auto first = Learn();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->vm_id, "55b8499d-9b42-4f85-843f-24ff69f4a643");
  document_.clear();  // The service fails from now on.
  const auto second = Learn();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, *first);
  EXPECT_EQ(requests_, 1);
}

TEST_F(KeptIdentityTest, AFileOfAnotherNicIsNotBelieved) {
  std::string other = document_;
  other.replace(other.find("000D3A314548"), 12, "000D3A000000");
  ASSERT_TRUE(os::WriteFileAtomic(file_, other, os::Durability::kVisible).ok());
  EXPECT_TRUE(Learn().ok());
  EXPECT_EQ(requests_, 1);
  EXPECT_EQ(log_.Count("imds_file_unusable"), 1);
  EXPECT_EQ(os::ReadFile(file_).value(), document_);
}

TEST_F(KeptIdentityTest, ADamagedFileIsReplaced) {
  ASSERT_TRUE(os::WriteFileAtomic(file_, "{", os::Durability::kVisible).ok());
  EXPECT_TRUE(Learn().ok());
  EXPECT_EQ(log_.Count("imds_file_unusable"), 1);
  EXPECT_TRUE(Learn().ok());
  EXPECT_EQ(requests_, 1);
}

TEST_F(KeptIdentityTest, AFileThatCannotBeWrittenIsNoObstacle) {
  file_ = dir_.File("missing/instance.json");
  EXPECT_TRUE(Learn().ok());
  EXPECT_EQ(log_.Count("imds_file_unusable"), 1);
}

TEST_F(KeptIdentityTest, WithoutFileAndServiceThereIsNoIdentity) {
  document_.clear();
  const auto identity = Learn();
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(identity.status().message()), HasSubstr("HTTP 503"));
}

TEST_F(KeptIdentityTest, AnIdentityOfAnotherNicIsNotKept) {
  EXPECT_EQ(Learn(ip::MacAddress::Parse("02:00:00:00:00:09").value()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::IsNotFound(os::ReadFile(file_).status()));
}

}  // namespace
}  // namespace spoke::netagent::azure
