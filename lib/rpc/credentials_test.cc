#include "lib/rpc/credentials.h"

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::rpc {
namespace {

TEST(TlsFiles, PlainTextIsNeverChosenByOmission) {
  EXPECT_EQ(TlsFiles{}.Validate().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE((TlsFiles{.ca = "a", .certificate = "b"}).Validate().ok());
  EXPECT_FALSE(
      (TlsFiles{.ca = "a", .certificate = "b", .key = "c", .insecure = true}).Validate().ok());
  EXPECT_TRUE((TlsFiles{.ca = "a", .certificate = "b", .key = "c"}).Validate().ok());
  EXPECT_TRUE(TlsFiles{.insecure = true}.Validate().ok());
}

TEST(TlsFiles, AMissingFileIsNamed) {
  const testing_support::TempDir dir;
  const TlsFiles files{.ca = dir.File("ca.pem"), .certificate = "x", .key = "y"};
  const auto credentials = ServerCredentials(files);
  EXPECT_EQ(credentials.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(credentials.status().message()).find(files.ca), std::string::npos);
}

TEST(FromGrpc, KeepsTheCode) {
  EXPECT_EQ(FromGrpc(14, "connection refused"), absl::UnavailableError("connection refused"));
  EXPECT_TRUE(FromGrpc(0, "").ok());
}

}  // namespace
}  // namespace spoke::rpc
