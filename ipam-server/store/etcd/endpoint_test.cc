#include "ipam-server/store/etcd/endpoint.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam::etcd {
namespace {

using testing::HasSubstr;

TEST(Endpoint, IsReadAsItIsWritten) {
  const std::vector<std::pair<std::string, Endpoint>> cases = {
      {"http://127.0.0.1:2379", {"127.0.0.1", 2379, false}},
      {"https://etcd-0.etcd:12379/", {"etcd-0.etcd", 12379, true}},
      {"https://Etcd.Example.com", {"etcd.example.com", 2379, true}},
      {"http://[fd00::1]:1", {"fd00::1", 1, false}},
      {"http://[fd00::1]", {"fd00::1", 2379, false}},
  };
  for (const auto& [text, want] : cases) {
    const auto endpoint = ParseEndpoint(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ(*endpoint, want) << text;
    EXPECT_EQ(ParseEndpoint(endpoint->ToString()).value(), want);
  }
}

TEST(Endpoint, AnythingElseIsRefusedWithItsReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "scheme"},
      {"etcd:2379", "scheme"},
      {"ftp://etcd", "scheme"},
      {"http://", "host"},
      {"http://etcd:0", "port"},
      {"http://etcd:65536", "port"},
      {"http://etcd:", "port"},
      {"http://a b", "host"},
      {"http://etcd/path", "host"},
      {"http://u@etcd", "host"},
      {"http://fd00::1:2379", "brackets"},
      {"http://[etcd]", "brackets"},
      {"http://[10.0.0.1]:1", "brackets"},
  };
  for (const auto& [text, why] : cases) {
    const absl::Status status = ParseEndpoint(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << text;
  }
}

TEST(Endpoint, AListHasOneSchemeAndNoRepetition) {
  const auto parse = [](const std::vector<std::string>& texts) {
    return ParseEndpoints(texts).status();
  };
  EXPECT_TRUE(parse({"http://a", "http://b"}).ok());
  EXPECT_THAT(std::string(parse({}).message()), HasSubstr("1 to"));
  EXPECT_THAT(std::string(parse({"http://a", "https://b"}).message()), HasSubstr("scheme"));
  EXPECT_THAT(std::string(parse({"http://a", "http://A:2379"}).message()), HasSubstr("twice"));
  EXPECT_THAT(std::string(parse(std::vector<std::string>(17, "http://a")).message()),
              HasSubstr("1 to"));
}

}  // namespace
}  // namespace spoke::ipam::etcd
