#include "lib/node_api/node_data.h"

#include <algorithm>
#include <string_view>

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/node_api/fields.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

using base::CutText;

// Returns the end of `text`, of no more than `left` bytes, from the beginning of a line where it
// has one; and takes what that has from `left`.
std::string EndOf(std::string_view text, size_t& left) {
  if (text.size() > left) {
    text.remove_prefix(text.size() - left);
    const size_t line = text.find('\n');
    if (line != std::string_view::npos) text.remove_prefix(line + 1);
  }
  std::string kept = CutText(text, left);
  left -= kept.size();
  return kept;
}

}  // namespace

void ToWire(const NodeDataRequest& in, v1::NodeDataRequest& out) {
  out.set_id(in.id);
  for (const std::string& part : in.parts) out.add_parts(part);
}

absl::StatusOr<NodeDataRequest> FromWire(const v1::NodeDataRequest& in) {
  RETURN_IF_ERROR(CheckCount("parts", in.parts_size(), kMaxNodeDataParts));
  NodeDataRequest request{.id = in.id()};
  for (int i = 0; i < in.parts_size(); ++i) {
    if (absl::Status named = CheckName("part", in.parts(i), kMaxNameBytes); !named.ok()) {
      return At("parts", i, named);
    }
    request.parts.push_back(in.parts(i));
  }
  return request;
}

void ToWire(const NodeDataAnswer& in, v1::NodeData& out) {
  out.set_id(in.id);
  out.set_error(CutText(in.error, kMaxErrorBytes));
  size_t left = kMaxNodeDataBytes;
  const size_t count = std::min(in.parts.size(), static_cast<size_t>(kMaxNodeDataParts));
  for (size_t i = 0; i < count; ++i) {
    v1::NodeData::Part& to = *out.add_parts();
    to.set_name(in.parts[i].name);
    to.set_text(EndOf(in.parts[i].text, left));
  }
}

absl::StatusOr<NodeDataAnswer> FromWire(const v1::NodeData& in) {
  NodeDataAnswer answer{.id = in.id(), .error = CutText(in.error(), kMaxErrorBytes)};
  size_t left = kMaxNodeDataBytes;
  for (int i = 0; i < std::min(in.parts_size(), kMaxNodeDataParts); ++i) {
    const v1::NodeData::Part& part = in.parts(i);
    if (absl::Status named = CheckName("part", part.name(), kMaxNameBytes); !named.ok()) {
      return At("parts", i, named);
    }
    answer.parts.push_back({.name = part.name(), .text = EndOf(part.text(), left)});
  }
  return answer;
}

}  // namespace spoke::node_api
