// Tests of elements of maps in the kernel.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "netagent/bpf/maps.h"

namespace spoke::netagent {
namespace {

constexpr uint32_t kMost = 4096;

class ForEachElementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Make(BPF_MAP_TYPE_HASH, sizeof(uint64_t));
    if (map_.valid()) return;
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << std::strerror(errno);
    GTEST_SKIP() << "needs CAP_BPF: " << std::strerror(errno);
  }

  void Make(bpf_map_type type, uint32_t value_size) {
    map_ = os::UniqueFd(
        bpf_map_create(type, "test", sizeof(uint32_t), value_size, kMost, /*opts=*/nullptr));
  }

  template <typename Value>
  void Fill(uint32_t count) {
    for (uint32_t key = 0; key < count; ++key) {
      ASSERT_TRUE(Put(map_.get(), key, Value{key + 1}, "fill a map").ok());
    }
  }

  // Returns how often each key was seen; with values other than those of Fill() the test fails.
  template <typename Value>
  std::map<uint32_t, int> Seen(uint32_t at_once = kElementsAtOnce) {
    std::map<uint32_t, int> seen;
    const auto each = [&](const uint32_t& key, const Value& value) {
      ++seen[key];
      EXPECT_EQ(value, key + 1);
    };
    const absl::Status status =
        ForEachElement<uint32_t, Value>(map_.get(), "read a map", each, at_once);
    EXPECT_TRUE(status.ok()) << status;
    return seen;
  }

  static std::map<uint32_t, int> EachOnce(uint32_t count) {
    std::map<uint32_t, int> once;
    for (uint32_t key = 0; key < count; ++key) once[key] = 1;
    return once;
  }

  os::UniqueFd map_;
};

TEST_F(ForEachElementTest, SeesEachElementOnce) {
  for (const uint32_t count : {0U, 1U, 1500U, kMost}) {
    SCOPED_TRACE(count);
    Fill<uint64_t>(count);
    EXPECT_EQ(Seen<uint64_t>(), EachOnce(count));
  }
}

// Some of 4,096 elements in as many buckets are in one.
TEST_F(ForEachElementTest, ReadsABucketThatIsLargerThanWhatItAsksForAtOnce) {
  Fill<uint64_t>(kMost);
  EXPECT_EQ(Seen<uint64_t>(/*at_once=*/1), EachOnce(kMost));
}

// The kernel hands out the elements of maps of devices one at a time.
TEST_F(ForEachElementTest, ReadsMapsThatHaveNoBatches) {
  Make(BPF_MAP_TYPE_DEVMAP_HASH, sizeof(uint32_t));
  ASSERT_TRUE(map_.valid()) << std::strerror(errno);
  const uint32_t loopback = 1;
  ASSERT_TRUE(Put(map_.get(), uint32_t{0}, loopback, "fill a map").ok());
  EXPECT_EQ(Seen<uint32_t>(), EachOnce(1));
}

// Some of an array, and all of it.
TEST_F(ForEachElementTest, ReadsTheFirstOfAnArrayInTheirOrder) {
  Make(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t));
  ASSERT_TRUE(map_.valid()) << std::strerror(errno);
  Fill<uint32_t>(kMost);
  for (const uint32_t count : {0U, 1U, 250U, kMost}) {
    const auto values = ReadFirst<uint32_t>(map_.get(), count, 1, "read an array");
    ASSERT_TRUE(values.ok()) << values.status();
    ASSERT_EQ(values->size(), count);
    for (uint32_t key = 0; key < count; ++key) EXPECT_EQ((*values)[key], key + 1);
  }
}

TEST_F(ForEachElementTest, ReadsTheValuesOfAllProcessors) {
  Make(BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(uint64_t));
  ASSERT_TRUE(map_.valid()) << std::strerror(errno);
  const auto processors = static_cast<size_t>(libbpf_num_possible_cpus());
  std::vector<uint64_t> written;
  for (uint32_t key = 0; key < 3; ++key) {
    const std::vector<uint64_t> of_key(processors, key + 7);
    ASSERT_EQ(bpf_map_update_elem(map_.get(), &key, of_key.data(), BPF_ANY), 0);
    written.insert(written.end(), of_key.begin(), of_key.end());
  }
  const auto values = ReadFirst<uint64_t>(map_.get(), 3, processors, "read an array");
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, written);
}

TEST_F(ForEachElementTest, ReadsTheFirstOfAnArrayThatHasNoBatches) {
  Make(BPF_MAP_TYPE_DEVMAP, sizeof(uint32_t));
  ASSERT_TRUE(map_.valid()) << std::strerror(errno);
  const uint32_t loopback = 1;
  for (uint32_t key = 0; key < 2; ++key) {
    ASSERT_TRUE(Put(map_.get(), key, loopback, "fill a map").ok());
  }
  const auto values = ReadFirst<uint32_t>(map_.get(), 2, 1, "read an array");
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, (std::vector<uint32_t>{1, 1}));
  EXPECT_TRUE(absl::IsInternal(ReadFirst<uint32_t>(-1, 2, 1, "read an array").status()));
}

TEST_F(ForEachElementTest, SaysWhatItCannotRead) {
  const auto each = [](const uint32_t&, const uint32_t&) { ADD_FAILURE() << "nothing is there"; };
  for (const int map : {-1, map_.get()}) {  // One is no map, the other has other values.
    const absl::Status status = ForEachElement<uint32_t, uint32_t>(map, "read a map", each);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(status.message().substr(0, 12), "read a map: ");
  }
}

}  // namespace
}  // namespace spoke::netagent
