#include "lib/telemetry/scrape_request.h"

#include <string_view>

#include "gtest/gtest.h"

namespace spoke::telemetry {
namespace {

TEST(ParseScrapeRequest, KnowsWhatIsAskedFor) {
  EXPECT_EQ(ParseScrapeRequest("GET /metrics HTTP/1.1\r\n").path, "/metrics");
  EXPECT_EQ(ParseScrapeRequest("GET /metrics?a=b HTTP/1.1").path, "/metrics");
  EXPECT_EQ(ParseScrapeRequest("GET /metricsx HTTP/1.1").path, "/metricsx");
  EXPECT_EQ(ParseScrapeRequest("GET /livez").path, "/livez");
  EXPECT_EQ(ParseScrapeRequest("POST /metrics HTTP/1.1").path, "");
  EXPECT_EQ(ParseScrapeRequest("GET  HTTP/1.1").path, "");
  EXPECT_EQ(ParseScrapeRequest("").path, "");
}

TEST(ParseScrapeRequest, FindsTheToken) {
  EXPECT_TRUE(ParseScrapeRequest("GET /metrics HTTP/1.1\r\nHost: a\r\n").token.empty());
  for (const char* head : {"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer abc\r\n\r\n",
                           "GET / HTTP/1.1\r\nauthorization:  bearer  abc \r\nHost: a\r\n\r\n",
                           "GET / HTTP/1.1\r\nAUTHORIZATION:BEARER abc"}) {
    EXPECT_EQ(ParseScrapeRequest(head).token, "abc") << head;
  }
  EXPECT_TRUE(ParseScrapeRequest("GET / HTTP/1.1\r\nAuthorization: Basic abc\r\n").token.empty());
  EXPECT_TRUE(ParseScrapeRequest("GET / HTTP/1.1\r\nX-Authorization: Bearer a\r\n").token.empty());
}

TEST(IsTokenOf, AnyLineOfTheFileWillDo) {
  const std::string_view file = "0123456789abcdef\n  fedcba9876543210  \r\nshort\n";
  EXPECT_TRUE(IsTokenOf(file, "0123456789abcdef"));
  EXPECT_TRUE(IsTokenOf(file, "fedcba9876543210"));
  EXPECT_FALSE(IsTokenOf(file, "0123456789abcdeF"));
  EXPECT_FALSE(IsTokenOf(file, "0123456789abcde"));
  EXPECT_FALSE(IsTokenOf(file, "short"));
  EXPECT_FALSE(IsTokenOf(file, ""));
  EXPECT_FALSE(IsTokenOf("", ""));
}

}  // namespace
}  // namespace spoke::telemetry
