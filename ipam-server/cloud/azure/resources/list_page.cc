#include "ipam-server/cloud/azure/resources/list_page.h"

#include <fmt/core.h>

#include <utility>

#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {

using nlohmann::json;

absl::StatusOr<ListPage> DecodeListPage(std::string_view body) {
  ASSIGN_OR_RETURN(json page, json_text::ParseJsonObject(body));
  const auto value = page.find("value");
  if (value == page.end() || !value->is_array()) {
    return absl::InvalidArgumentError(fmt::format(
        "a page of a list has no \"value\" that is a list: \"{}\"", json_text::Excerpt(body)));
  }
  ListPage decoded;
  if (const json* next = json_text::FindMember(page, "nextLink")) {
    if (!next->is_string()) {
      return absl::InvalidArgumentError("the nextLink of a page of a list is no text");
    }
    decoded.next_link = *next->get_ptr<const std::string*>();
  }
  decoded.items.reserve(value->size());
  for (json& item : *value) {
    if (!item.is_object()) return absl::InvalidArgumentError("an item of a list is no object");
    decoded.items.push_back(std::move(item));
  }
  return decoded;
}

}  // namespace spoke::ipam::azure
