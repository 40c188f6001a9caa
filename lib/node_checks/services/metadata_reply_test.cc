// Tests of what the metadata service is asked, and of what its answers are taken for.
#include "lib/node_checks/services/metadata_reply.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

using testing::HasSubstr;

constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"apiVersions\":[\"2017-03-01\"]}";

TEST(MetadataUrl, NamesAnAddressAndAPort) {
  EXPECT_EQ(ParseMetadataUrl("http://169.254.169.254"),
            (MetadataService{ip::Address::V4(0xA9FEA9FE), 80, "169.254.169.254"}));
  EXPECT_EQ(ParseMetadataUrl("http://127.0.0.1:8080"),
            (MetadataService{ip::Address::V4(0x7F000001), 8080, "127.0.0.1:8080"}));
  EXPECT_EQ(ParseMetadataUrl("http://[::1]"),
            (MetadataService{ip::Address::V6(0, 1), 80, "[::1]"}));
  EXPECT_EQ(ParseMetadataUrl("http://[::1]:81"),
            (MetadataService{ip::Address::V6(0, 1), 81, "[::1]:81"}));
  for (const char* url :
       {"", "http://", "https://169.254.169.254", "http://metadata.example", "http://::1",
        "http://127.0.0.1:", "http://127.0.0.1:0", "http://127.0.0.1:65536", "http://127.0.0.1/a",
        "http://[127.0.0.1]", "http://[::1", "http://[]:80"}) {
    EXPECT_EQ(ParseMetadataUrl(url), std::nullopt) << url;
  }
}

TEST(MetadataRequest, HasTheHeaderThatTheServiceAsksFor) {
  EXPECT_EQ(MetadataRequest({ip::Address::V6(0, 1), 81, "[::1]:81"}),
            "GET /metadata/versions HTTP/1.1\r\nHost: [::1]:81\r\nMetadata: true\r\nUser-Agent: "
            "spoke\r\nConnection: close\r\n\r\n");
}

TEST(MetadataReply, TheVersionsAreTheAnswerAndAreWaitedFor) {
  EXPECT_EQ(JudgeMetadataReply(kAnswer, false), absl::OkStatus());
  for (size_t bytes = 0; bytes < kAnswer.find("\"2017"); ++bytes) {
    const auto so_far = JudgeMetadataReply(kAnswer.substr(0, bytes), false);
    EXPECT_TRUE(!so_far || so_far->ok()) << bytes;
    EXPECT_EQ(so_far.has_value(), bytes >= kAnswer.find(":[")) << bytes;
  }
}

TEST(MetadataReply, AServiceThatIsBusyWorks) {
  EXPECT_EQ(JudgeMetadataReply("HTTP/1.1 410 Gone\r\n", false), absl::OkStatus());
  EXPECT_EQ(JudgeMetadataReply("HTTP/1.1 429 Too Many Requests\r\n", false), absl::OkStatus());
}

TEST(MetadataReply, OtherAnswersAreFailures) {
  EXPECT_EQ(JudgeMetadataReply("HTTP/1.1 503 ", false), absl::UnavailableError("answers HTTP 503"));
  EXPECT_EQ(JudgeMetadataReply("HTTP/1.0 404 Not Found", false),
            absl::UnavailableError("answers HTTP 404"));
  EXPECT_TRUE(absl::IsUnavailable(*JudgeMetadataReply("", true)));
  EXPECT_TRUE(absl::IsUnavailable(*JudgeMetadataReply("HTTP/1.1 2", true)));
  // A captive portal, for one, answers 200 to everything.
  const auto portal = JudgeMetadataReply("HTTP/1.1 200 OK\r\n\r\n<html>\"log in\"", true);
  ASSERT_TRUE(portal);
  EXPECT_THAT(std::string(portal->message()), HasSubstr("something else than the versions"));
  for (const char* text : {"SSH-2.0-OpenSSH", "H2TP", "HTTP/1.1 2x0 OK", "HTTP/1.1-200 OK",
                           "HTTP/1.1 -20 OK", "HTTP/1.1 020 OK"}) {
    const auto said = JudgeMetadataReply(text, false);
    ASSERT_TRUE(said) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(*said)) << text;
  }
  // What a header says is not the answer.
  EXPECT_TRUE(absl::IsInvalidArgument(
      *JudgeMetadataReply("HTTP/1.1 200 OK\r\nx: \"apiVersions\"\r\n\r\n{}", true)));
}

}  // namespace
}  // namespace spoke::node_checks
