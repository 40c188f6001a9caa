#include "ipam-server/store/etcd/leader_record.h"

#include "gtest/gtest.h"

namespace spoke::ipam::etcd {
namespace {

TEST(LeaderRecord, ComesBackAsItWas) {
  for (const LeaderRecord& record :
       {LeaderRecord{"server-a", "10.0.0.1:7446"}, LeaderRecord{"server-a", ""},
        LeaderRecord{"", "[fd00::1]:7446"}, LeaderRecord{}}) {
    EXPECT_EQ(DecodeLeader(EncodeLeader(record)), record);
  }
}

TEST(LeaderRecord, IsTheNameAloneWhereThereIsNoAddress) {
  EXPECT_EQ(EncodeLeader({"server-a", ""}), "server-a");
}

TEST(LeaderRecord, ANameOfTwoLinesDoesNotBecomeAnAddress) {
  EXPECT_EQ(DecodeLeader(EncodeLeader({"a\n10.6.6.6:1", ""})), (LeaderRecord{"a 10.6.6.6:1", ""}));
}

}  // namespace
}  // namespace spoke::ipam::etcd
