// Tests that our messages may grow, and nothing of them may go: programs one version apart talk to
// each other, and what is stored is read by every later version.
#include <google/protobuf/text_format.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/compat/schema_breaks.h"

namespace spoke::compat {
namespace {

using google::protobuf::FileDescriptorSet;
using testing::ElementsAre;
using testing::IsEmpty;

FileDescriptorSet Read(const std::string& path) {
  FileDescriptorSet set;
  const auto bytes = os::ReadFile(path);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(set.ParseFromString(*bytes)) << path;
  EXPECT_GT(set.file_size(), 0) << path;
  return set;
}

// One message with these fields, an enum and a service.
FileDescriptorSet With(const std::string& fields, const std::string& rest = "") {
  FileDescriptorSet set;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "file { package: 'p' message_type { name: 'M' oneof_decl { name: 'o' } " + fields + " } " +
          rest + "}",
      &set));
  return set;
}

constexpr const char* kTwo =
    "field { name: 'a' number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32 }"
    "field { name: 'b' number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: '.p.M' }";

TEST(Schema, EachRecordedVersionIsUnderstood) {
  const FileDescriptorSet now = Read(SPOKE_SCHEMA);
  int versions = 0;
  for (const auto& folder :
       std::filesystem::directory_iterator(SPOKE_SOURCE_DIR "/tests/compat/testdata")) {
    ++versions;
    EXPECT_THAT(SchemaBreaks(Read(folder.path().string() + "/schema"), now), IsEmpty())
        << "against " << folder.path();
  }
  EXPECT_GE(versions, 1);
}

TEST(Schema, AdditionsBreakNothing) {
  const std::string more = "field { name: 'c' number: 3 label: LABEL_REPEATED type: TYPE_BYTES }";
  const std::string rest =
      "message_type { name: 'N' } enum_type { name: 'E' value { name: 'Z' number: 0 } }"
      "service { name: 'S' method { name: 'Do' input_type: '.p.M' output_type: '.p.N' } }";
  EXPECT_THAT(SchemaBreaks(With(kTwo), With(kTwo + more, rest)), IsEmpty());
}

TEST(Schema, WhatIsGoneIsABreak) {
  EXPECT_THAT(SchemaBreaks(With(kTwo), With("")),
              ElementsAre("p.M field 1 is gone; it was a of type TYPE_UINT32",
                          "p.M field 2 is gone; it was b of type TYPE_MESSAGE .p.M"));
  EXPECT_THAT(SchemaBreaks(With("", "message_type { name: 'N' }"), With("")),
              ElementsAre("p.N is gone; it was a message"));
  EXPECT_THAT(SchemaBreaks(With("", "enum_type { name: 'E' value { name: 'Z' number: 0 } }"),
                           With("", "enum_type { name: 'E' value { name: 'Z' number: 1 } }")),
              ElementsAre("p.E value 0 is gone; it was Z"));
}

TEST(Schema, AKnownRenamingIsNoBreakAndAnotherNameIs) {
  const auto named = [](const std::string& name) {
    return With("field { name: '" + name + "' number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32 }");
  };
  EXPECT_THAT(SchemaBreaks(named("lent"), named("in_use")), IsEmpty());
  EXPECT_THAT(SchemaBreaks(named("in_use"), named("lent")), testing::SizeIs(1));
  EXPECT_THAT(SchemaBreaks(named("lent"), named("used")), testing::SizeIs(1));
}

TEST(Schema, AnotherNumberTypeNameOrPlaceIsABreak) {
  const auto one = [](const std::string& text) { return With("field { " + text + " }"); };
  const FileDescriptorSet was = one("name: 'a' number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32");
  const auto breaks = [&](const std::string& text) { return SchemaBreaks(was, one(text)); };
  EXPECT_EQ(breaks("name: 'a' number: 7 label: LABEL_OPTIONAL type: TYPE_UINT32").size(), 1U);
  EXPECT_THAT(breaks("name: 'a' number: 1 label: LABEL_OPTIONAL type: TYPE_STRING"),
              ElementsAre("p.M field 1 is a of type TYPE_STRING now; it was a of type "
                          "TYPE_UINT32"));
  EXPECT_EQ(breaks("name: 'z' number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32").size(), 1U);
  EXPECT_EQ(breaks("name: 'a' number: 1 label: LABEL_REPEATED type: TYPE_UINT32").size(), 1U);
  EXPECT_EQ(
      breaks("name: 'a' number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32 oneof_index: 0").size(),
      1U);
}

TEST(Schema, AMethodThatCarriesSomethingElseIsABreak) {
  const auto with = [](const std::string& method) {
    return With("", "service { name: 'S' method { name: 'Do' " + method + " } }");
  };
  const FileDescriptorSet was = with("input_type: '.p.M' output_type: '.p.M'");
  EXPECT_EQ(SchemaBreaks(was, with("input_type: '.p.N' output_type: '.p.M'")).size(), 1U);
  EXPECT_EQ(SchemaBreaks(was, with("input_type: '.p.M' output_type: '.p.M' server_streaming: true"))
                .size(),
            1U);
  EXPECT_EQ(SchemaBreaks(was, With("")).size(), 1U);
}

}  // namespace
}  // namespace spoke::compat
