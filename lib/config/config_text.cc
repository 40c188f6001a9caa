#include "lib/config/config_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::config {

struct ConfigDocument {
  std::string file;
  YamlNode root;
  bool readable = false;
  std::vector<Mistake> mistakes;
  std::vector<Mistake> warnings;
};

namespace {

// The longest key that is compared, in bytes; nobody mistypes a longer one.
constexpr size_t kMaxComparedKey = 64;
constexpr size_t kMaxListedKeys = 12;

std::string_view NameOf(YamlKind kind) {
  switch (kind) {
    case YamlKind::kEmpty:
      return "empty";
    case YamlKind::kText:
      return "a single value";
    case YamlKind::kList:
      return "a list";
    case YamlKind::kMap:
      return "a map";
  }
  return "unknown";
}

// Says why `node` is not what was wanted; `want` completes "must be ...".
std::string WrongKind(const YamlNode& node, std::string_view want) {
  if (node.kind == YamlKind::kEmpty) {
    return fmt::format("has no value: it must be {}; remove the key to get the default", want);
  }
  return fmt::format("must be {}, not {}", want, NameOf(node.kind));
}

// Levenshtein distance, one row at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// The known key that `key` is probably meant to be: a third of it may be wrong.
std::optional<std::string> Closest(const std::string& key, const std::set<std::string>& known) {
  if (key.size() > kMaxComparedKey) return std::nullopt;
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(key.size() / 3, 1) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(key, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string UnknownKey(const std::string& key, const std::set<std::string>& known) {
  if (const auto meant = Closest(key, known)) {
    return fmt::format("unknown key; did you mean {}?", Quoted(*meant));
  }
  if (known.empty()) return "unknown key; none is known here";
  std::string list;
  size_t listed = 0;
  for (const std::string& name : known) {
    if (listed++ == kMaxListedKeys) {
      list += ", ...";
      break;
    }
    list += (list.empty() ? "" : ", ") + name;
  }
  return fmt::format("unknown key; known here: {}", list);
}

// Takes down the keys nobody asked for, in every map that was read. Recursion ends at
// kMaxConfigDepth.
// NOLINTNEXTLINE(misc-no-recursion)
void FindUnknown(const YamlNode& node, const std::string& path, std::vector<Mistake>* mistakes) {
  for (size_t i = 0; i < node.items.size(); ++i) {
    FindUnknown(node.items[i], JoinPath(path, i), mistakes);
  }
  if (!node.opened) return;
  for (const YamlEntry& entry : node.entries) {
    const std::string entry_path = JoinPath(path, entry.key);
    if (!node.asked.contains(entry.key)) {
      mistakes->push_back({entry.line, entry_path, UnknownKey(entry.key, node.asked)});
    } else {
      FindUnknown(entry.value, entry_path, mistakes);
    }
  }
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

std::string Render(std::string_view file, const Mistake& mistake) {
  if (mistake.path.empty()) return fmt::format("{}:{}: {}", file, mistake.line, mistake.message);
  return fmt::format("{}:{}: {}: {}", file, mistake.line, mistake.path, mistake.message);
}

// A message of somebody else's, forced onto one line.
std::string OneLine(std::string message) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return message;
}

// Takes down a root that is no map; `what` is what has that root.
void RequireMap(ConfigDocument& document, std::string_view what) {
  const YamlNode& root = document.root;
  if (root.kind == YamlKind::kMap) return;
  document.readable = false;
  document.mistakes.push_back(
      {root.line, "",
       root.kind == YamlKind::kEmpty
           ? fmt::format("the {} is empty", what)
           : fmt::format("the {} must be a map (key: value), not {}", what, NameOf(root.kind))});
}

// Puts values in place of variables, everywhere. Recursion ends at kMaxConfigDepth.
// NOLINTNEXTLINE(misc-no-recursion)
void Expand(YamlNode& node, const std::string& path, const VariableLookup& variables,
            std::vector<Mistake>& mistakes) {
  for (size_t i = 0; i < node.items.size(); ++i) {
    Expand(node.items[i], JoinPath(path, i), variables, mistakes);
  }
  for (YamlEntry& entry : node.entries) {
    Expand(entry.value, JoinPath(path, entry.key), variables, mistakes);
  }
  if (node.kind != YamlKind::kText) return;
  absl::StatusOr<std::string> expanded = ExpandVariables(node.text, variables);
  if (expanded.ok()) {
    node.text = *std::move(expanded);
  } else {
    node.refused = true;
    mistakes.push_back({node.line, path, std::string(base::MessageOf(expanded.status()))});
  }
}

std::string_view Wanted(YamlKind kind) { return kind == YamlKind::kText ? "text" : NameOf(kind); }

}  // namespace

ConfigMap::ConfigMap(ConfigDocument* document, const YamlNode* node, std::string path)
    : document_(document), node_(node), path_(std::move(path)) {
  if (node_ != nullptr) node_->opened = true;
}

int ConfigMap::line() const { return node_ == nullptr ? 1 : node_->line; }

int ConfigMap::LineOf(std::string_view key) const {
  const YamlEntry* entry = present() ? node_->Find(std::string(key)) : nullptr;
  return entry == nullptr ? line() : entry->line;
}

int ConfigMap::LineOf(std::string_view key, size_t item) const {
  const YamlEntry* entry = present() ? node_->Find(std::string(key)) : nullptr;
  const bool found = entry != nullptr && item < entry->value.items.size();
  return found ? entry->value.items[item].line : LineOf(key);
}

void ConfigMap::Note(int line, std::string path, std::string message) const {
  document_->mistakes.push_back({line, std::move(path), OneLine(std::move(message))});
}

bool ConfigMap::Has(std::string_view key) const {
  if (!present()) return false;
  const std::string name(key);
  node_->asked.insert(name);
  return node_->Find(name) != nullptr;
}

bool ConfigMap::IsEmptyList(std::string_view key) const {
  const YamlEntry* entry = present() ? node_->Find(std::string(key)) : nullptr;
  return entry != nullptr && entry->value.kind == YamlKind::kList && entry->value.items.empty();
}

std::vector<std::string> ConfigMap::Keys() const {
  std::vector<std::string> keys;
  if (!present()) return keys;
  for (const YamlEntry& entry : node_->entries) {
    if (&entry == node_->Find(entry.key)) keys.push_back(entry.key);
  }
  return keys;
}

const YamlNode* ConfigMap::Value(std::string_view key, Need need, YamlKind kind) const {
  if (!present()) return nullptr;
  const std::string name(key);
  node_->asked.insert(name);
  const YamlEntry* entry = node_->Find(name);
  if (entry == nullptr) {
    if (need == Need::kRequired) Note(line(), JoinPath(path_, key), "is required but missing");
    return nullptr;
  }
  if (entry->value.kind != kind) {
    Note(entry->line, JoinPath(path_, key), WrongKind(entry->value, Wanted(kind)));
    return nullptr;
  }
  return entry->value.refused ? nullptr : &entry->value;
}

const YamlNode* ConfigMap::PlainText(std::string_view key, Need need, std::string_view what) const {
  const YamlNode* value = Value(key, need, YamlKind::kText);
  if (value == nullptr) return nullptr;
  if (value->quoted) {
    Note(value->line, JoinPath(path_, key), fmt::format("must be {}, without quotes", what));
    return nullptr;
  }
  return value;
}

void ConfigMap::String(std::string_view key, std::string* out, Need need) const {
  Custom(key, need, [&](std::string_view text) {
    *out = std::string(text);
    return absl::OkStatus();
  });
}

void ConfigMap::Bool(std::string_view key, bool* out, Need need) const {
  const YamlNode* value = PlainText(key, need, "true or false");
  if (value == nullptr) return;
  if (value->text != "true" && value->text != "false") {
    return Note(value->line, JoinPath(path_, key),
                fmt::format("must be true or false, not {}", Quoted(value->text)));
  }
  *out = value->text == "true";
}

void ConfigMap::Uint32(std::string_view key, uint32_t* out, Need need,
                       Limits<uint32_t> limits) const {
  const std::string what = fmt::format("a whole number from {} to {}", limits.min, limits.max);
  const YamlNode* value = PlainText(key, need, what);
  if (value == nullptr) return;
  const auto number = ParseNumber<uint32_t>(value->text);
  // 010 is eight to some YAML readers and ten to others.
  const bool ambiguous = value->text.size() > 1 && value->text.front() == '0';
  if (!number || ambiguous || *number < limits.min || *number > limits.max) {
    return Note(value->line, JoinPath(path_, key),
                fmt::format("must be {}, not {}", what, Quoted(value->text)));
  }
  *out = *number;
}

void ConfigMap::Double(std::string_view key, double* out, Need need, Limits<double> limits) const {
  std::string what = "a number";
  if (limits.min > std::numeric_limits<double>::lowest()) {
    what += fmt::format(" from {}", limits.min);
  }
  if (limits.max < std::numeric_limits<double>::max()) what += fmt::format(" up to {}", limits.max);
  const YamlNode* value = PlainText(key, need, what);
  if (value == nullptr) return;
  const auto number = ParseNumber<double>(value->text);
  if (!number || *number < limits.min || *number > limits.max) {
    return Note(value->line, JoinPath(path_, key),
                fmt::format("must be {}, not {}", what, Quoted(value->text)));
  }
  *out = *number;
}

void ConfigMap::Duration(std::string_view key, absl::Duration* out, Need need,
                         DurationLimits limits) const {
  Custom(key, need, [&](std::string_view text) -> absl::Status {
    absl::Duration duration;
    // A bare 0 and "inf" are durations to absl::ParseDuration().
    const bool has_unit =
        !text.empty() && (text.back() == 's' || text.back() == 'm' || text.back() == 'h');
    if (!has_unit || !absl::ParseDuration(std::string(text), &duration) ||
        duration == absl::InfiniteDuration() || duration == -absl::InfiniteDuration()) {
      return absl::InvalidArgumentError(fmt::format(
          "must be a number with a unit (h, m, s, ms, us, ns) such as 30s or 250ms, not {}",
          Quoted(text)));
    }
    if (duration < limits.min || duration > limits.max) {
      const std::string upper = limits.max == absl::InfiniteDuration()
                                    ? std::string("more")
                                    : absl::FormatDuration(limits.max);
      return absl::InvalidArgumentError(fmt::format(
          "must be from {} to {}, not {}", absl::FormatDuration(limits.min), upper, Quoted(text)));
    }
    *out = duration;
    return absl::OkStatus();
  });
}

ConfigMap ConfigMap::Map(std::string_view key, Need need) const {
  return {document_, Value(key, need, YamlKind::kMap), JoinPath(path_, key)};
}

std::vector<ConfigMap> ConfigMap::MapList(std::string_view key, Need need) const {
  std::vector<ConfigMap> maps;
  const YamlNode* list = Value(key, need, YamlKind::kList);
  if (list == nullptr) return maps;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& item = list->items[i];
    std::string path = JoinPath(JoinPath(path_, key), i);
    if (item.kind == YamlKind::kMap) {
      maps.push_back(ConfigMap(document_, &item, std::move(path)));
    } else {
      Note(item.line, std::move(path), WrongKind(item, "a map"));
    }
  }
  return maps;
}

void ConfigMap::StringList(std::string_view key, std::vector<std::string>* out, Need need) const {
  std::vector<std::string> texts;
  const bool whole = ReadTexts(key, need, [&](std::string_view text) {
    texts.emplace_back(text);
    return absl::OkStatus();
  });
  if (whole) *out = std::move(texts);
}

void ConfigMap::Custom(std::string_view key, Need need, const ParseText& parse) const {
  const YamlNode* value = Value(key, need, YamlKind::kText);
  if (value == nullptr) return;
  if (value->text.empty()) {
    return Note(value->line, JoinPath(path_, key), "must not be empty text");
  }
  const absl::Status status = parse(value->text);
  if (!status.ok()) {
    Note(value->line, JoinPath(path_, key), std::string(base::MessageOf(status)));
  }
}

void ConfigMap::CustomList(std::string_view key, Need need, const ParseText& parse) const {
  ReadTexts(key, need, parse);
}

bool ConfigMap::ReadTexts(std::string_view key, Need need, const ParseText& parse) const {
  const YamlNode* list = Value(key, need, YamlKind::kList);
  if (list == nullptr) return false;
  bool whole = true;
  const size_t mistakes_before = document_->mistakes.size();
  for (size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& item = list->items[i];
    std::string path = JoinPath(JoinPath(path_, key), i);
    if (item.refused) {
      whole = false;
    } else if (item.kind != YamlKind::kText) {
      Note(item.line, std::move(path), WrongKind(item, "text"));
    } else if (item.text.empty()) {
      Note(item.line, std::move(path), "must not be empty text");
    } else if (const absl::Status status = parse(item.text); !status.ok()) {
      Note(item.line, std::move(path), std::string(base::MessageOf(status)));
    }
  }
  return whole && document_->mistakes.size() == mistakes_before;
}

void ConfigMap::Error(std::string_view key, std::string message) const {
  if (!present()) return;
  Note(LineOf(key), key.empty() ? path_ : JoinPath(path_, key), std::move(message));
}

std::string_view ConfigMap::Renamed(std::string_view old_key, std::string_view key) const {
  if (!present() || !Has(old_key)) return key;
  if (Has(key)) {
    Error(old_key, fmt::format("is the old name of {}, which is there as well: remove it", key));
    return key;
  }
  document_->warnings.push_back(
      {LineOf(old_key), JoinPath(path_, old_key),
       fmt::format("is called {} now: the old name is taken for one release more", key)});
  return old_key;
}

ConfigText::ConfigText(std::unique_ptr<ConfigDocument> document) : document_(std::move(document)) {}
ConfigText::ConfigText(ConfigText&&) noexcept = default;
ConfigText& ConfigText::operator=(ConfigText&&) noexcept = default;
ConfigText::~ConfigText() = default;

ConfigText ConfigText::Parse(std::string_view text, std::string file,
                             const VariableLookup& variables) {
  auto document = std::make_unique<ConfigDocument>();
  document->file = std::move(file);
  document->readable = ParseYaml(text, &document->root, &document->mistakes);
  if (document->readable) RequireMap(*document, "file");
  if (document->readable && variables) Expand(document->root, "", variables, document->mistakes);
  return ConfigText(std::move(document));
}

std::vector<ConfigText> ConfigText::ParseAll(std::string_view text, const std::string& file) {
  std::vector<ConfigText> all;
  for (YamlDocument& parsed : ParseYamlDocuments(text)) {
    auto document = std::make_unique<ConfigDocument>();
    document->file = file;
    document->root = std::move(parsed.root);
    document->readable = parsed.whole;
    document->mistakes = std::move(parsed.mistakes);
    if (document->readable) RequireMap(*document, "document");
    all.push_back(ConfigText(std::move(document)));
  }
  return all;
}

ConfigMap ConfigText::Root() const {
  return {document_.get(), document_->readable ? &document_->root : nullptr, ""};
}

std::vector<Mistake> ConfigText::Mistakes() const {
  std::vector<Mistake> mistakes = document_->mistakes;
  if (document_->readable) FindUnknown(document_->root, "", &mistakes);
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const Mistake& a, const Mistake& b) { return a.line < b.line; });
  return mistakes;
}

std::vector<Mistake> ConfigText::Warnings() const { return document_->warnings; }

absl::Status ConfigText::Finish() const {
  const std::vector<Mistake> mistakes = Mistakes();
  if (mistakes.empty()) return absl::OkStatus();
  std::string text;
  for (size_t i = 0; i < std::min(mistakes.size(), kMaxMistakes); ++i) {
    if (i > 0) text += "\n";
    text += Render(document_->file, mistakes[i]);
  }
  if (mistakes.size() > kMaxMistakes) {
    text += fmt::format("\n{}: and {} more", document_->file, mistakes.size() - kMaxMistakes);
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace spoke::config
