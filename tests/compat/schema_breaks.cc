#include "tests/compat/schema_breaks.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"

namespace spoke::compat {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::EnumDescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorSet;

// The names that 0.1.0 had and that mean the same under another name now. Numbers and types stay,
// so that what is stored and sent is read as before.
constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
    {"AttachmentWish", "AttachmentOptions"},
    {"BudgetLeases", "BudgetGrants"},
    {"EndLending", "EndAssignment"},
    {"InternetWish", "InternetOptions"},
    {"JournalCooling", "JournalCooldown"},
    {"JournalLending", "JournalAssignment"},
    {"JournalLent", "JournalAssigned"},
    {"Lease", "Grant"},
    {"Lending", "Assignment"},
    {"LendingReport", "AssignmentReport"},
    {"Outlook", "Forecast"},
    {"StoredLending", "StoredAssignment"},
    {"addresses_cooling", "addresses_cooldown"},
    {"addresses_lent", "addresses_in_use"},
    {"budget_leases", "budget_grants"},
    {"cooling", "cooldown"},
    {"cooling_ms", "cooldown_ms"},
    {"end_lending", "end_assignment"},
    {"idle", "available"},
    {"lease_s", "grant_s"},
    {"leased", "granted"},
    {"leases", "grants"},
    {"lending", "assignment"},
    {"lends_per_second", "assignments_per_second"},
    {"lent", "in_use"},
    {"outlook", "forecast"},
    {"wish", "options"},
};

bool IsOfAName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns `text` with each whole name that kRenamed has replaced by the present one.
std::string WithPresentNames(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = 0;
    while (length < text.size() && IsOfAName(text[length])) ++length;
    const std::string_view name = text.substr(0, length);
    const auto* const entry =
        std::find_if(std::begin(kRenamed), std::end(kRenamed),
                     [&](const auto& renamed) { return renamed.first == name; });
    out += entry == std::end(kRenamed) ? name : entry->second;
    text.remove_prefix(length);
    if (text.empty()) break;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

// A map from "spoke.v1.Hello field 3" to what it is: everything that has to stay.
using Schema = std::map<std::string, std::string>;

void AddEnum(const std::string& scope, const EnumDescriptorProto& type, Schema& out) {
  const std::string name = scope + "." + type.name();
  out[name] = "an enum";
  for (const auto& value : type.value()) {
    out[fmt::format("{} value {}", name, value.number())] = value.name();
  }
}

std::string Describe(const DescriptorProto& message, const FieldDescriptorProto& field) {
  std::string text =
      fmt::format("{} of type {}", field.name(), FieldDescriptorProto::Type_Name(field.type()));
  if (!field.type_name().empty()) text += " " + field.type_name();
  if (field.label() == FieldDescriptorProto::LABEL_REPEATED) text += ", repeated";
  if (field.has_oneof_index()) text += ", in " + message.oneof_decl(field.oneof_index()).name();
  return text;
}

// Adds a message with all that are defined in it.
void AddMessage(const std::string& scope, const DescriptorProto& outermost, Schema& out) {
  std::vector<std::pair<std::string, const DescriptorProto*>> todo = {{scope, &outermost}};
  while (!todo.empty()) {
    const DescriptorProto& message = *todo.back().second;
    const std::string name = todo.back().first + "." + message.name();
    todo.pop_back();
    out[name] = "a message";
    for (const FieldDescriptorProto& field : message.field()) {
      out[fmt::format("{} field {}", name, field.number())] = Describe(message, field);
    }
    for (const DescriptorProto& nested : message.nested_type()) todo.emplace_back(name, &nested);
    for (const EnumDescriptorProto& nested : message.enum_type()) AddEnum(name, nested, out);
  }
}

Schema Flatten(const FileDescriptorSet& files) {
  Schema out;
  for (const auto& file : files.file()) {
    for (const auto& message : file.message_type()) AddMessage(file.package(), message, out);
    for (const auto& type : file.enum_type()) AddEnum(file.package(), type, out);
    for (const auto& service : file.service()) {
      for (const auto& method : service.method()) {
        out[fmt::format("{}.{} method {}", file.package(), service.name(), method.name())] =
            fmt::format("{}{} to {}{}", method.client_streaming() ? "stream " : "",
                        method.input_type(), method.server_streaming() ? "stream " : "",
                        method.output_type());
      }
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> SchemaBreaks(const FileDescriptorSet& before,
                                      const FileDescriptorSet& now) {
  const Schema present = Flatten(now);
  std::vector<std::string> breaks;
  for (const auto& [old_what, old_was] : Flatten(before)) {
    const std::string what = WithPresentNames(old_what);
    const std::string was = WithPresentNames(old_was);
    const auto it = present.find(what);
    if (it == present.end()) {
      breaks.push_back(fmt::format("{} is gone; it was {}", what, was));
    } else if (it->second != was) {
      breaks.push_back(fmt::format("{} is {} now; it was {}", what, it->second, was));
    }
  }
  return breaks;
}

}  // namespace spoke::compat
