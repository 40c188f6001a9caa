#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cni-plugin/agent/agent_client.h"
#include "gtest/gtest.h"
#include "proto/spoke/v1/cni.pb.h"
#include "tests/support/temp_dir.h"

namespace spoke::cni {
namespace {

namespace fs = std::filesystem;

Request Del(const std::string& id, uint64_t attempt = 1) {
  Request del;
  del.verb = Verb::kDel;
  del.container_id = id;
  del.ifname = "eth0";
  del.network_name = "spoke";
  del.attempt = attempt;
  return del;
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

unsigned ModeOf(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777U;
}

size_t CountIn(const std::string& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(Tombstone, TheAgentFindsTheDelUnderTheAttachmentsName) {
  const testing_support::TempDir dir;
  const std::string socket = dir.File("spoke/cni.sock");
  ASSERT_FALSE(LeaveTombstone(socket, Del("aaa")));
  const std::string folder = dir.File("spoke/tombstones");
  EXPECT_EQ(TombstoneFolder(socket), folder);
  const std::string path = folder + "/" + TombstoneName("aaa", "eth0");
  v1::CniRequest request;
  ASSERT_TRUE(request.ParseFromString(Read(path)));
  EXPECT_EQ(request.verb(), v1::CniRequest::VERB_DEL);
  EXPECT_EQ(request.container_id(), "aaa");
  EXPECT_EQ(request.ifname(), "eth0");
  EXPECT_EQ(request.network_name(), "spoke");
  EXPECT_EQ(ModeOf(folder), 0700U);
  EXPECT_EQ(ModeOf(path), 0600U);
}

// The names are FNV-1a, 64 bits, of "aaa\0eth0" and "a\0b": the agent looks for the same names.
TEST(Tombstone, NamesAreAsAgreed) {
  EXPECT_EQ(TombstoneName("aaa", "eth0"), "5e393ab872927be7");
  EXPECT_EQ(TombstoneName("a", "b"), "e5d29919042666b2");
  EXPECT_NE(TombstoneName("ab", "c"), TombstoneName("a", "bc"));
}

TEST(Tombstone, AnotherForTheSameAttachmentReplacesIt) {
  const testing_support::TempDir dir;
  const std::string socket = dir.File("cni.sock");
  ASSERT_FALSE(LeaveTombstone(socket, Del("aaa", 1)));
  ASSERT_FALSE(LeaveTombstone(socket, Del("aaa", 2)));
  ASSERT_FALSE(LeaveTombstone(socket, Del("bbb", 3)));
  EXPECT_EQ(CountIn(dir.File("tombstones")), 2U);
  v1::CniRequest request;
  ASSERT_TRUE(
      request.ParseFromString(Read(dir.File("tombstones/" + TombstoneName("aaa", "eth0")))));
  EXPECT_EQ(request.attempt(), 2U);
}

TEST(Tombstone, WhereItCannotBeWrittenNothingIsLeft) {
  const testing_support::TempDir dir;
  std::ofstream(dir.File("tombstones")) << "a file where the folder should be";
  const auto error = LeaveTombstone(dir.File("cni.sock"), Del("aaa"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, kTryAgainLater);
  // A folder is in the way of the file itself.
  fs::remove(dir.File("tombstones"));
  fs::create_directories(dir.File("tombstones/" + TombstoneName("aaa", "eth0") + "/x"));
  EXPECT_TRUE(LeaveTombstone(dir.File("cni.sock"), Del("aaa")));
  EXPECT_EQ(CountIn(dir.File("tombstones")), 1U);
}

}  // namespace
}  // namespace spoke::cni
