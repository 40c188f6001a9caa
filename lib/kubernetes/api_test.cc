#include "lib/kubernetes/api.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::kubernetes {
namespace {

using testing::HasSubstr;

TEST(InClusterAccess, IsWhatKubernetesGivesAPod) {
  const testing_support::TempDir dir;
  const auto in_pod = [](const char* name) -> const char* {
    return std::string_view(name) == "KUBERNETES_SERVICE_HOST" ? "fd00::1" : "6443";
  };
  const auto without = InClusterAccess(in_pod, dir.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(without.status()));
  EXPECT_THAT(std::string(without.status().message()), HasSubstr("automountServiceAccountToken"));
  for (const auto& [name, text] : std::map<std::string, std::string>{
           {"ca.crt", "pem"}, {"token", "t"}, {"namespace", "spoke-system\n"}}) {
    ASSERT_TRUE(os::WriteFileAtomic(dir.File(name), text, os::Durability::kVisible).ok());
  }
  const auto access = InClusterAccess(in_pod, dir.path());
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->url, "https://[fd00::1]:6443");
  EXPECT_EQ(access->token_file, dir.File("token"));
  EXPECT_EQ(access->k8s_namespace, "spoke-system");
  const auto outside = InClusterAccess([](const char*) { return nullptr; }, dir.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(outside.status()));
  EXPECT_THAT(std::string(outside.status().message()), HasSubstr("run as a pod"));
}

TEST(Authorize, ReadsTheTokenThatKubeletRenews) {
  const testing_support::TempDir dir;
  const ClusterAccess access{.url = "https://a", .token_file = dir.File("token")};
  http::Request request;
  EXPECT_TRUE(absl::IsFailedPrecondition(Authorize(access, request)));
  for (const std::string token : {"one", "two"}) {
    ASSERT_TRUE(
        os::WriteFileAtomic(access.token_file, token + "\n", os::Durability::kVisible).ok());
    http::Request next;
    ASSERT_TRUE(Authorize(access, next).ok());
    EXPECT_EQ(next.headers.Find("Authorization"), "Bearer " + token);
  }
}

}  // namespace
}  // namespace spoke::kubernetes
