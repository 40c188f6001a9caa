#include "lib/config/health_field.h"

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::config {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::string> Read(const std::string& text) {
  const ConfigText config = ConfigText::Parse(text, "f.yaml");
  std::string address = "unix:/run/default.sock";
  ReadHealth(
      config.Root(),
      [](const std::string& directory) {
        return directory == "/none" ? absl::NotFoundError("no directory /none") : absl::OkStatus();
      },
      &address);
  const absl::Status status = config.Finish();
  if (!status.ok()) return status;
  return address;
}

TEST(ReadHealth, TakesASocketAPortOrOff) {
  EXPECT_EQ(Read("{}").value(), "unix:/run/default.sock");
  EXPECT_EQ(Read("health: unix:/run/x.sock").value(), "unix:/run/x.sock");
  EXPECT_EQ(Read("health: 127.0.0.1:9466").value(), "127.0.0.1:9466");
  EXPECT_EQ(Read("health: off").value(), "");
}

TEST(ReadHealth, SaysWhatIsWrong) {
  EXPECT_THAT(std::string(Read("health: /run/x.sock").status().message()),
              HasSubstr("f.yaml:1: health: must be unix:/an/absolute/path or host:port, not "
                        "'/run/x.sock'; or off"));
  EXPECT_THAT(std::string(Read("health: unix:/none/x.sock").status().message()),
              HasSubstr("no directory /none; create it first"));
}

absl::StatusOr<std::string> ReadHttp(const std::string& text) {
  const ConfigText config = ConfigText::Parse(text, "f.yaml");
  std::string address = "default";
  ReadHealthHttp(config.Root(), &address);
  const absl::Status status = config.Finish();
  if (!status.ok()) return status;
  return address;
}

TEST(ReadHealthHttp, TakesAPortOfThisMachineAloneOrOff) {
  EXPECT_EQ(ReadHttp("{}").value(), "default");
  EXPECT_EQ(ReadHttp("health_http: 127.0.0.1:9469").value(), "127.0.0.1:9469");
  EXPECT_EQ(ReadHttp("health_http: '[::1]:9469'").value(), "[::1]:9469");
  EXPECT_EQ(ReadHttp("health_http: off").value(), "");
  for (const char* wrong :
       {"0.0.0.0:9469", "10.0.0.1:9469", "localhost:9469", "127.0.0.1", "9469", "unix:/run/x"}) {
    EXPECT_THAT(std::string(ReadHttp(std::string("health_http: ") + wrong).status().message()),
                HasSubstr("f.yaml:1: health_http: must be a loopback address with a port"))
        << wrong;
  }
}

}  // namespace
}  // namespace spoke::config
