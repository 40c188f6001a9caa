#include "lib/kubernetes/node_objects.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "fmt/core.h"
#include "lib/base/dns_name.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::kubernetes {
namespace {

using json_text::FindMember;
using nlohmann::json;

absl::Status Strange(std::string_view where, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", where, what));
}

// A text; empty where there is none.
absl::StatusOr<std::string> TextIn(const json& object, const char* name) {
  const json* member = FindMember(object, name);
  if (member == nullptr) return std::string();
  if (!member->is_string()) return Strange(name, "no text");
  const auto& text = member->get_ref<const std::string&>();
  if (text.size() > kMaxTextBytes) return Strange(name, "too long");
  return text;
}

// A list within a limit; nullptr where there is none.
absl::StatusOr<const json*> ListIn(const json& object, const char* name, size_t most) {
  const json* member = FindMember(object, name);
  if (member == nullptr) return nullptr;
  if (!member->is_array() || member->size() > most) return Strange(name, "no list, or too long");
  return member;
}

// An object; an empty one where there is none.
absl::StatusOr<const json*> ObjectIn(const json& object, const char* name) {
  static const json none = json::object();
  const json* member = FindMember(object, name);
  if (member == nullptr) return &none;
  if (!member->is_object()) return Strange(name, "no object");
  return member;
}

absl::Status TakeTaints(const json& spec, Node& out) {
  ASSIGN_OR_RETURN(const json* list, ListIn(spec, "taints", kMaxTaints));
  if (list == nullptr) return absl::OkStatus();
  for (const json& item : *list) {
    if (!item.is_object()) return Strange("taints", "no list of objects");
    Taint taint;
    ASSIGN_OR_RETURN(taint.key, TextIn(item, "key"));
    ASSIGN_OR_RETURN(taint.value, TextIn(item, "value"));
    ASSIGN_OR_RETURN(taint.effect, TextIn(item, "effect"));
    out.taints.push_back(std::move(taint));
  }
  return absl::OkStatus();
}

absl::Status TakeConditions(const json& status, Node& out) {
  ASSIGN_OR_RETURN(const json* list, ListIn(status, "conditions", kMaxConditions));
  if (list == nullptr) return absl::OkStatus();
  for (const json& item : *list) {
    if (!item.is_object()) return Strange("conditions", "no list of objects");
    Condition condition;
    ASSIGN_OR_RETURN(condition.type, TextIn(item, "type"));
    if (!condition.type.starts_with(kOwnConditions)) continue;
    ASSIGN_OR_RETURN(condition.status, TextIn(item, "status"));
    ASSIGN_OR_RETURN(condition.reason, TextIn(item, "reason"));
    ASSIGN_OR_RETURN(condition.message, TextIn(item, "message"));
    out.conditions.push_back(std::move(condition));
  }
  return absl::OkStatus();
}

absl::StatusOr<Node> NodeIn(const json& object) {
  if (!object.is_object()) return Strange("Node", "no object");
  ASSIGN_OR_RETURN(const json* metadata, ObjectIn(object, "metadata"));
  Node node;
  ASSIGN_OR_RETURN(node.name, TextIn(*metadata, "name"));
  if (!base::IsDnsName(node.name)) return Strange("metadata.name", "no node's name");
  ASSIGN_OR_RETURN(node.uid, TextIn(*metadata, "uid"));
  ASSIGN_OR_RETURN(node.resource_version, TextIn(*metadata, "resourceVersion"));
  if (node.resource_version.empty()) return Strange("metadata.resourceVersion", "missing");
  ASSIGN_OR_RETURN(const json* spec, ObjectIn(object, "spec"));
  RETURN_IF_ERROR(TakeTaints(*spec, node));
  ASSIGN_OR_RETURN(const json* status, ObjectIn(object, "status"));
  RETURN_IF_ERROR(TakeConditions(*status, node));
  return node;
}

absl::StatusOr<json> ParseKind(std::string_view text, std::string_view kind) {
  auto parsed = json_text::ParseJsonObject(text);
  if (!parsed.ok()) return Strange(kind, "the API server's answer is no JSON object");
  if (json_text::StringMember(*parsed, "kind") != kind) {
    return Strange(kind, "the API server's answer is of another kind");
  }
  return parsed;
}

std::optional<WatchEvent::Kind> KindOf(std::string_view type) {
  using Kind = WatchEvent::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds = {
      {{"ADDED", Kind::kAdded},
       {"MODIFIED", Kind::kModified},
       {"DELETED", Kind::kDeleted},
       {"BOOKMARK", Kind::kBookmark},
       {"ERROR", Kind::kError}}};
  for (const auto& [name, kind] : kKinds) {
    if (name == type) return kind;
  }
  return std::nullopt;
}

std::optional<uint64_t> NumberIn(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

const Taint* Node::FindTaint(std::string_view key) const {
  for (const Taint& taint : taints) {
    if (taint.key == key) return &taint;
  }
  return nullptr;
}

const Condition* Node::FindCondition(std::string_view type) const {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

absl::StatusOr<Node> ParseNode(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseKind(text, "Node"));
  return NodeIn(object);
}

absl::StatusOr<NodePage> ParseNodeList(std::string_view text) {
  ASSIGN_OR_RETURN(const json list, ParseKind(text, "NodeList"));
  ASSIGN_OR_RETURN(const json* metadata, ObjectIn(list, "metadata"));
  NodePage page;
  ASSIGN_OR_RETURN(page.resource_version, TextIn(*metadata, "resourceVersion"));
  if (page.resource_version.empty()) return Strange("metadata.resourceVersion", "missing");
  ASSIGN_OR_RETURN(page.next, TextIn(*metadata, "continue"));
  const json* items = FindMember(list, "items");
  if (items == nullptr) return page;
  if (!items->is_array()) return Strange("items", "no list");
  for (const json& item : *items) {
    // One that cannot be read must not hide all others.
    if (auto node = NodeIn(item); node.ok()) {
      page.nodes.push_back(*std::move(node));
    } else {
      ++page.unreadable;
    }
  }
  return page;
}

absl::StatusOr<WatchEvent> ParseWatchEvent(std::string_view line) {
  const auto parsed = json_text::ParseJsonObject(line);
  if (!parsed.ok()) return Strange("watch", "an event is no JSON object");
  const auto kind = KindOf(json_text::StringMember(*parsed, "type"));
  if (!kind) return Strange("watch", "an event has no type that is known");
  WatchEvent event{.kind = *kind};
  ASSIGN_OR_RETURN(const json* object, ObjectIn(*parsed, "object"));
  if (*kind == WatchEvent::Kind::kError) {
    event.code = json_text::IntMember(*object, "code").value_or(0);
    event.message = json_text::Excerpt(json_text::StringMember(*object, "message"));
    return event;
  }
  if (*kind == WatchEvent::Kind::kBookmark) {
    ASSIGN_OR_RETURN(const json* metadata, ObjectIn(*object, "metadata"));
    ASSIGN_OR_RETURN(event.node.resource_version, TextIn(*metadata, "resourceVersion"));
    if (event.node.resource_version.empty()) return Strange("bookmark", "without a version");
    return event;
  }
  ASSIGN_OR_RETURN(event.node, NodeIn(*object));
  return event;
}

bool IsOlder(std::string_view a, std::string_view b) {
  const auto left = NumberIn(a);
  const auto right = NumberIn(b);
  return left && right && *left < *right;
}

}  // namespace spoke::kubernetes
