// A spec for tests of what knows no kinds: it claims, goes to nodes and is used as it is told.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/object_set.h"

namespace spoke::ipam {

struct FakeSpec : public Spec {
  std::string ToJson() const override { return text; }
  std::vector<Claim> Claims() const override { return claims; }
  std::optional<NodeEntry> ForNodes(const ObjectKey& /*key*/) const override {
    if (!for_nodes) return std::nullopt;
    return NodeEntry{.value = text, .wanted = wanted};
  }
  absl::Status CheckChange(const Spec* next, const ObjectUse& use) const override {
    if (use.held == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(next == nullptr ? "used: it cannot go"
                                                         : "used: it cannot change");
  }

  std::string text = "{}";
  std::vector<Claim> claims;
  bool for_nodes = true;
  NodeLabels wanted;
};

inline std::shared_ptr<FakeSpec> MakeSpec(std::string text) {
  auto spec = std::make_shared<FakeSpec>();
  spec->text = std::move(text);
  return spec;
}

inline Claim BlockClaim(const std::string& share, const std::string& cidr, int line = 0) {
  const auto prefix = ip::Prefix::Parse(cidr);
  EXPECT_TRUE(prefix.ok()) << prefix.status();
  return {.space = "s",
          .share = share,
          .what = *prefix,
          .role = "the block",
          .path = "spec.block",
          .line = line};
}

inline SourcedObject FromFile(const std::string& name, std::shared_ptr<const Spec> spec,
                              int line = 1) {
  return {.key = {.kind = "Fake", .name = name},
          .spec = std::move(spec),
          .file = "f",
          .name_line = line,
          .spec_line = line};
}

inline ParsedFiles Files(std::vector<SourcedObject> objects) {
  return {.files = {"f"}, .objects = std::move(objects), .problems = {}};
}

}  // namespace spoke::ipam
