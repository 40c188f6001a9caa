#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/http/testing/fake_transport.h"
#include "lib/os/file.h"
#include "netagent/maintenance/azure_events.h"
#include "netagent/maintenance/file_events.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using node_api::MaintenanceKind;
using testing::HasSubstr;

constexpr const char* kReboot =
    R"({"Events": [{"EventId": "E1", "EventType": "Reboot", "Resources": ["pool_1"]}]})";

// The same for each source.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual MaintenanceSource& source() = 0;
  // Has the source say this; empty: nothing at all.
  virtual void Say(const std::string& document) = 0;
  // The document by which events were agreed to; empty: none was.
  virtual std::string agreed() = 0;
};

class AzureStage final : public Stage {
 public:
  AzureStage() {
    auto transport = std::make_unique<http::FakeTransport>([this](const http::Request& request) {
      requests_.push_back(request);
      return answer_;
    });
    source_ =
        std::make_unique<AzureEvents>("http://169.254.169.254", "pool_1", std::move(transport));
  }
  MaintenanceSource& source() override { return *source_; }
  void Say(const std::string& document) override {
    answer_ = http::Response{.status = 200, .body = document.empty() ? "{}" : document};
  }
  std::string agreed() override {
    return requests_.empty() || requests_.back().method != "POST" ? "" : requests_.back().body;
  }

  std::vector<http::Request> requests_;
  absl::StatusOr<http::Response> answer_ = http::Response{.status = 200, .body = "{}"};

 private:
  std::unique_ptr<AzureEvents> source_;
};

class FileStage final : public Stage {
 public:
  MaintenanceSource& source() override { return source_; }
  void Say(const std::string& document) override {
    if (document.empty()) {
      EXPECT_TRUE(::unlink(path_.c_str()) == 0 || errno == ENOENT);
    } else {
      ASSERT_TRUE(os::WriteFileAtomic(path_, document, os::Durability::kVisible).ok());
    }
  }
  std::string agreed() override {
    std::string text = os::ReadFile(path_ + ".start").value_or("");
    return text.empty() ? text : text.substr(0, text.size() - 1);
  }

 private:
  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("maintenance.json");
  FileEvents source_{path_, "pool_1"};
};

template <typename Of>
class MaintenanceSourceTest : public testing::Test {
 protected:
  Of stage_;
};
using Stages = testing::Types<AzureStage, FileStage>;
TYPED_TEST_SUITE(MaintenanceSourceTest, Stages);

TYPED_TEST(MaintenanceSourceTest, SaysWhatIsAnnounced) {
  MaintenanceSource& source = this->stage_.source();
  this->stage_.Say("");
  EXPECT_TRUE(source.Read()->events.empty());
  this->stage_.Say(kReboot);
  const auto said = source.Read();
  ASSERT_TRUE(said.ok()) << said.status();
  ASSERT_EQ(said->events.size(), 1U);
  EXPECT_EQ(said->events[0].id, "E1");
  EXPECT_EQ(said->events[0].kind, MaintenanceKind::kReboot);
  this->stage_.Say("");
  EXPECT_TRUE(source.Read()->events.empty());
}

TYPED_TEST(MaintenanceSourceTest, AgreesOnlyWhenAskedTo) {
  this->stage_.Say(kReboot);
  EXPECT_TRUE(this->stage_.source().Read().ok());
  EXPECT_EQ(this->stage_.agreed(), "");
  EXPECT_TRUE(this->stage_.source().Begin({"E1"}).ok());
  EXPECT_EQ(this->stage_.agreed(), R"({"StartRequests":[{"EventId":"E1"}]})");
}

TYPED_TEST(MaintenanceSourceTest, NamesWhatCannotBeRead) {
  this->stage_.Say(R"({"Events": 7})");
  const auto said = this->stage_.source().Read();
  EXPECT_TRUE(absl::IsInvalidArgument(said.status())) << said.status();
  EXPECT_THAT(said.status().message(), HasSubstr("Events: is no list"));
}

TEST(AzureEventsTest, AsksAsItIsDocumented) {
  AzureStage stage;
  ASSERT_TRUE(stage.source().Read().ok());
  ASSERT_EQ(stage.requests_.size(), 1U);
  EXPECT_EQ(stage.requests_[0].url,
            "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01");
  EXPECT_EQ(stage.requests_[0].headers.Find("Metadata"), "true");
}

TEST(AzureEventsTest, SaysWhetherItIsWorthAnotherQuestion) {
  AzureStage stage;
  for (const int status : {410, 429, 500, 503}) {
    stage.answer_ = http::Response{.status = status};
    EXPECT_TRUE(absl::IsUnavailable(stage.source().Read().status())) << status;
  }
  stage.answer_ = absl::DeadlineExceededError("no answer");
  EXPECT_TRUE(absl::IsUnavailable(stage.source().Read().status()));
  stage.answer_ = http::Response{.status = 400, .body = "Bad request"};
  EXPECT_TRUE(absl::IsFailedPrecondition(stage.source().Read().status()));
  EXPECT_THAT(stage.source().Begin({"E1"}).message(), HasSubstr("HTTP 400 Bad request"));
}

TEST(AzureEventsTest, ACallThatTakesTwoMinutesIsEndedWhenNobodyWaitsForIt) {
  AzureEvents events("http://x", "n", std::make_unique<http::FakeTransport>());
  std::thread interrupts([&] {
    absl::SleepFor(absl::Milliseconds(20));
    events.Interrupt();
  });
  EXPECT_TRUE(absl::IsCancelled(events.Read().status()));
  interrupts.join();
}

}  // namespace
}  // namespace spoke::netagent
