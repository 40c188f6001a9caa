#include "ipam-server/policy/policy_file.h"

#include <utility>

#include "fmt/core.h"
#include "ipam-server/policy/kind.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::ConfigText;
using config::Mistake;
using config::Need;

enum class Depth { kWhole, kKeyOnly };

void ReadApiVersion(const ConfigMap& root) {
  if (!root.Has("apiVersion")) {
    return root.Error("apiVersion", fmt::format("is missing: write {}", kObjectApiVersion));
  }
  root.Custom("apiVersion", Need::kRequired, [](std::string_view text) {
    if (text == kObjectApiVersion) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("must be {}, the only one this server knows, not \"{}\"", kObjectApiVersion,
                    text.substr(0, 64)));
  });
}

// Returns the kind; nullptr: it cannot be told, and the mistake is recorded.
const Kind* ReadKind(const ConfigMap& root) {
  const Kind* kind = nullptr;
  if (!root.Has("kind")) {
    root.Error("kind", fmt::format("is missing: write one of {}", KnownKinds()));
    return nullptr;
  }
  root.Custom("kind", Need::kRequired, [&](std::string_view text) {
    kind = FindKind(text);
    if (kind != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is no kind this server knows: those are {}", text.substr(0, 64), KnownKinds()));
  });
  return kind;
}

std::string ReadName(const ConfigMap& root) {
  std::string name;
  root.Map("metadata", Need::kRequired).Custom("name", Need::kRequired, [&](std::string_view text) {
    RETURN_IF_ERROR(CheckLabel(text));
    name = text;
    return absl::OkStatus();
  });
  return name;
}

// Reads one document into `out`. Without a kind and a name there is no object, only mistakes.
void ReadDocument(const ConfigText& document, const std::string& file, Depth depth,
                  ParsedFiles& out) {
  const ConfigMap root = document.Root();
  ReadApiVersion(root);
  const Kind* kind = ReadKind(root);
  std::string name = ReadName(root);
  std::shared_ptr<const Spec> spec;
  root.Has("spec");  // The key is known, whether it is read or not.
  if (kind != nullptr && depth == Depth::kWhole) {
    const ConfigMap map = root.Map("spec", Need::kRequired);
    if (map.present()) spec = kind->read(map, name);
  }
  const std::vector<Mistake> mistakes = document.Mistakes();
  for (const Mistake& mistake : mistakes) {
    out.problems.push_back({file, mistake.line, mistake.path, mistake.message});
  }
  for (const Mistake& warning : document.Warnings()) {
    out.warnings.push_back({file, warning.line, warning.path, warning.message});
  }
  if (kind == nullptr || name.empty()) return;
  if (!mistakes.empty()) spec = nullptr;
  out.objects.push_back({.key = {.kind = std::string(kind->name), .name = std::move(name)},
                         .spec = std::move(spec),
                         .file = file,
                         .name_line = root.Map("metadata", Need::kOptional).LineOf("name"),
                         .spec_line = root.LineOf("spec")});
}

ParsedFiles Parse(std::span<const PolicyFileText> files, Depth depth) {
  ParsedFiles out;
  for (const PolicyFileText& file : files) {
    out.files.push_back(file.name);
    if (file.text.size() > kMaxPolicyFileBytes) {
      out.problems.push_back(
          {file.name, 1, "",
           fmt::format(
               "the file has {} bytes, and a policy file may have {}: split it into several",
               file.text.size(), kMaxPolicyFileBytes)});
      continue;
    }
    for (const ConfigText& document : ConfigText::ParseAll(file.text, file.name)) {
      ReadDocument(document, file.name, depth, out);
    }
  }
  if (files.empty()) {
    out.problems.push_back({"", 0, "", "no policy file was given: name one, or a directory"});
  }
  return out;
}

}  // namespace

ParsedFiles ParsePolicyFiles(std::span<const PolicyFileText> files) {
  return Parse(files, Depth::kWhole);
}

absl::StatusOr<std::vector<ObjectKey>> ParseObjectKeys(std::span<const PolicyFileText> files) {
  ParsedFiles parsed = Parse(files, Depth::kKeyOnly);
  RETURN_IF_ERROR(ToStatus(std::move(parsed.problems), parsed.files));
  std::vector<ObjectKey> keys;
  keys.reserve(parsed.objects.size());
  for (SourcedObject& object : parsed.objects) keys.push_back(std::move(object.key));
  return keys;
}

absl::StatusOr<std::shared_ptr<const Spec>> ParseSpec(const ObjectKey& key, std::string_view json) {
  const Kind* kind = FindKind(key.kind);
  if (kind == nullptr) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is no kind this server knows: those are {}", key.kind.substr(0, 64), KnownKinds()));
  }
  RETURN_IF_ERROR(base::Annotate(CheckLabel(key.name), "the name"));
  // JSON of ours is YAML, so that what is stored and what is applied meet the same rules.
  const ConfigText document = ConfigText::Parse(json, "spec");
  std::shared_ptr<const Spec> spec;
  if (document.Root().present()) spec = kind->read(document.Root(), key.name);
  RETURN_IF_ERROR(document.Finish());
  return spec;
}

}  // namespace spoke::ipam
