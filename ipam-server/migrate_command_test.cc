#include "ipam-server/migrate_command.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(StorePlace, ReadsBothKinds) {
  EXPECT_EQ(ParseStorePlace("sqlite:/var/lib/spoke/ipam.db")->file, "/var/lib/spoke/ipam.db");
  const auto plain = ParseStorePlace("etcd://10.0.0.1,[fd00::2]:3379");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->file.empty());
  EXPECT_EQ(plain->prefix, "/spoke/");
  ASSERT_THAT(plain->access.endpoints, SizeIs(2));
  EXPECT_EQ(plain->access.endpoints[1].ToString(), "http://[fd00::2]:3379");
  const auto secure = ParseStorePlace("etcds://etcd.example:2379/team-a");
  ASSERT_TRUE(secure.ok()) << secure.status();
  EXPECT_EQ(secure->prefix, "/team-a/");
  EXPECT_EQ(secure->access.endpoints[0].ToString(), "https://etcd.example:2379");
}

TEST(StorePlace, SaysWhatItMayBe) {
  for (const char* text : {"", "ipam.db", "sqlite:", "sqlite:ipam.db", "etcd:", "etcd://",
                           "http://10.0.0.1", "etcd://10.0.0.1:0", "etcd://a,a", "etcd://a b"}) {
    const auto place = ParseStorePlace(text);
    EXPECT_TRUE(absl::IsInvalidArgument(place.status())) << text;
    EXPECT_THAT(place.status().message(), HasSubstr("write sqlite:/PATH")) << text;
  }
}

}  // namespace
}  // namespace spoke::ipam
