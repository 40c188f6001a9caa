#include "lib/config/yaml_tree.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <sstream>
#include <utility>

#include "fmt/core.h"
#include "lib/base/utf8.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace spoke::config {
namespace {

constexpr size_t kMaxQuotedBytes = 60;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Ends the parse; the mistake is on record already.
class StopParsing : public std::exception {};

// yaml-cpp counts from 0, and from -1 where it does not know.
int LineOf(const YAML::Mark& mark) { return std::max(mark.line + 1, 1); }

// The length of the UTF-8 sequence at `at`, or 0.
size_t Utf8SequenceLength(std::string_view text, size_t at) {
  uint32_t character = 0;
  return base::DecodeUtf8(text.substr(at), character);
}

bool IsForbiddenControl(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

// Refuses what yaml-cpp would pass over in silence: it takes byte 0x04 for the end of the file,
// replaces what is not UTF-8, guesses at UTF-16, and lets a tab change the shape of the tree.
bool CheckBytes(std::string_view text, std::vector<Mistake>* mistakes) {
  int line = 1;
  bool indentation = true;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t length = Utf8SequenceLength(text, at);
    if (length == 0) {
      mistakes->push_back({line, "", "the text is not UTF-8"});
      return false;
    }
    if (IsForbiddenControl(c)) {
      mistakes->push_back({line, "", fmt::format("control character 0x{:02x}: remove it", c)});
      return false;
    }
    if (c == '\t' && indentation) {
      mistakes->push_back({line, "", "a tab in the indentation: use spaces"});
      return false;
    }
    if (c == '\n') ++line;
    indentation = c == '\n' || (indentation && c == ' ');
    at += length;
  }
  return true;
}

// Returns whether a quoted text that begins at `at` has its closing quote.
bool IsClosed(std::string_view text, size_t at) {
  const char quote = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;  // The escaped character, which may be a quote.
    } else if (text[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
      if (!doubled) return true;
      ++i;
    }
  }
  return false;
}

// Builds the tree from yaml-cpp's events. Its nodes would not do: those have resolved aliases and
// dropped duplicate keys by the time one can look at them.
class TreeBuilder : public YAML::EventHandler {
 public:
  // Keeps up to `max_documents` in `documents`, which is empty at first.
  TreeBuilder(std::string_view text, size_t max_documents, std::vector<YamlDocument>* documents)
      : text_(text), max_documents_(max_documents), documents_(documents) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_->size() >= max_documents_) {
      Stop(LineOf(mark),
           max_documents_ == 1
               ? "a second document starts here: a file holds one, and nothing "
                 "behind it"
               : fmt::format("more than {} documents: split the file", max_documents_));
    }
    documents_->emplace_back();
  }
  void OnDocumentEnd() override { documents_->back().whole = true; }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseDecoration(mark, "", anchor);
    if (TakesKey()) return AddKey(mark, "");
    AddValue(YamlKind::kEmpty, LineOf(mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    Add(LineOf(mark), "aliases (*name) are not supported: write the value out");
    if (TakesKey()) return AddKey(mark, "*");
    AddValue(YamlKind::kEmpty, LineOf(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseDecoration(mark, tag, anchor);
    RefuseOpenQuote(mark);
    if (TakesKey()) return AddKey(mark, value);
    YamlNode* node = AddValue(YamlKind::kText, LineOf(mark));
    node->quoted = tag == "!";
    node->text = value;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, YamlKind::kList);
  }
  void OnSequenceEnd() override { open_.pop_back(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, YamlKind::kMap);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // A map or list that is not closed yet. Its address is stable: it is the last child of its
  // parent, which does not grow before it is closed, and no document begins inside another.
  struct OpenNode {
    YamlNode* node;
    std::string path;
    bool wants_value;  // The key has been read.
  };

  bool TakesKey() const {
    return !open_.empty() && open_.back().node->kind == YamlKind::kMap && !open_.back().wants_value;
  }

  std::string NextPath() const {
    if (open_.empty()) return "";
    const OpenNode& parent = open_.back();
    if (parent.node->kind == YamlKind::kList) {
      return JoinPath(parent.path, parent.node->items.size());
    }
    return parent.wants_value ? JoinPath(parent.path, parent.node->entries.back().key)
                              : parent.path;
  }

  void Add(int line, std::string message) {
    documents_->back().mistakes.push_back({line, NextPath(), std::move(message)});
  }

  [[noreturn]] void Stop(int line, std::string message) {
    Add(line, std::move(message));
    throw StopParsing();
  }

  // yaml-cpp's tag is "?" for a plain value, "!" for one in quotes.
  void RefuseDecoration(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) {
      Add(LineOf(mark), "anchors (&name) are not supported: write the value out");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      Add(LineOf(mark), fmt::format("tags ({}) are not supported: remove it", Quoted(tag)));
    }
  }

  // yaml-cpp lets the end of the file close a quote, if a line break comes before it, and so makes
  // one long value of all the keys that were meant to follow.
  void RefuseOpenQuote(const YAML::Mark& mark) {
    const auto at = static_cast<size_t>(mark.pos);
    if (mark.pos < 0 || at >= text_.size() || (text_[at] != '\'' && text_[at] != '"')) return;
    if (!IsClosed(text_, at)) {
      Stop(LineOf(mark), fmt::format("the quote ({}) is never closed", text_[at]));
    }
  }

  void AddKey(const YAML::Mark& mark, const std::string& key) {
    OpenNode& map = open_.back();
    const int line = LineOf(mark);
    const auto [first, inserted] = map.node->index_by_key.emplace(key, map.node->entries.size());
    if (!inserted) {
      // The second value still needs a place; it stays unreachable, since the index has the first.
      documents_->back().mistakes.push_back({line, JoinPath(map.path, key),
                                             fmt::format("is given twice: line {} has it already",
                                                         map.node->entries[first->second].line)});
    }
    map.node->entries.push_back({key, line, {}});
    map.wants_value = true;
  }

  YamlNode* AddValue(YamlKind kind, int line) {
    YamlNode* node = &documents_->back().root;
    if (!open_.empty()) {
      OpenNode& parent = open_.back();
      if (parent.node->kind == YamlKind::kList) {
        node = &parent.node->items.emplace_back();
      } else {
        node = &parent.node->entries.back().value;
        parent.wants_value = false;
      }
    }
    node->kind = kind;
    node->line = line;
    return node;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlKind kind) {
    // The tag is "?" here too; "!" would be one that somebody wrote.
    RefuseDecoration(mark, tag, anchor);
    if (TakesKey()) Stop(LineOf(mark), "a key must be text, not a map or a list");
    if (open_.size() >= kMaxConfigDepth) {
      Stop(LineOf(mark), fmt::format("nested more than {} deep", kMaxConfigDepth));
    }
    std::string path = NextPath();
    YamlNode* node = AddValue(kind, LineOf(mark));
    open_.push_back({node, std::move(path), false});
  }

  std::string_view text_;
  size_t max_documents_;
  std::vector<YamlDocument>* documents_;
  std::vector<OpenNode> open_;
};

// Takes down what is wrong with the document that was being read, or with the file when none was.
void Spoil(std::vector<YamlDocument>& documents, int line, std::string message) {
  if (documents.empty() || documents.back().whole) documents.emplace_back();
  documents.back().whole = false;
  documents.back().mistakes.push_back({line, "", std::move(message)});
}

// A document that a bare "---" or a comment makes says nothing and is no mistake.
bool IsBlank(const YamlDocument& document) {
  return document.whole && document.mistakes.empty() && document.root.kind == YamlKind::kEmpty;
}

std::vector<YamlDocument> ParseDocuments(std::string_view text, size_t max_documents) {
  std::vector<YamlDocument> documents;
  if (text.size() > kMaxConfigBytes) {
    Spoil(documents, 1,
          fmt::format("the file has {} bytes, more than the {} allowed", text.size(),
                      kMaxConfigBytes));
    return documents;
  }
  // A byte order mark says nothing in UTF-8, and would shift every position.
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  std::vector<Mistake> bytes;
  if (!CheckBytes(text, &bytes)) {
    documents.push_back({.root = {}, .whole = false, .mistakes = std::move(bytes)});
    return documents;
  }
  TreeBuilder builder(text, max_documents, &documents);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const StopParsing&) {
    documents.back().whole = false;
  } catch (const YAML::Exception& error) {
    Spoil(documents, LineOf(error.mark), fmt::format("not valid YAML: {}", error.msg));
  } catch (const std::exception& error) {
    Spoil(documents, 1, fmt::format("not readable as YAML: {}", error.what()));
  }
  return documents;
}

}  // namespace

const YamlEntry* YamlNode::Find(const std::string& key) const {
  const auto found = index_by_key.find(key);
  return found == index_by_key.end() ? nullptr : &entries[found->second];
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(Utf8SequenceLength(text, at), 1);
    if (at + length > kMaxQuotedBytes) {
      quoted += "...";
      break;
    }
    const auto byte = static_cast<uint8_t>(text[at]);
    if (length == 1 && (byte < 0x20 || byte >= 0x7F)) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += text.substr(at, length);
    }
    at += length;
  }
  return quoted + "\"";
}

bool IsPlainText(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8SequenceLength(text, at);
    if (length == 0 || IsForbiddenControl(text[at]) || text[at] == '\n' || text[at] == '\r') {
      return false;
    }
    at += length;
  }
  return true;
}

std::string JoinPath(std::string_view map, std::string_view key) {
  const bool plain = !key.empty() && key.size() <= kMaxQuotedBytes &&
                     std::all_of(key.begin(), key.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '/';
                     });
  const std::string shown = plain ? std::string(key) : Quoted(key);
  return map.empty() ? shown : fmt::format("{}.{}", map, shown);
}

std::string JoinPath(std::string_view list, size_t item) {
  return fmt::format("{}[{}]", list, item);
}

bool ParseYaml(std::string_view text, YamlNode* root, std::vector<Mistake>* mistakes) {
  std::vector<YamlDocument> documents = ParseDocuments(text, 1);
  if (documents.empty()) {
    mistakes->push_back({1, "", "the file is empty"});
    return false;
  }
  bool whole = true;
  for (YamlDocument& document : documents) {
    whole = whole && document.whole;
    mistakes->insert(mistakes->end(), document.mistakes.begin(), document.mistakes.end());
  }
  *root = std::move(documents.front().root);
  return whole;
}

std::vector<YamlDocument> ParseYamlDocuments(std::string_view text) {
  std::vector<YamlDocument> documents = ParseDocuments(text, kMaxConfigDocuments);
  std::erase_if(documents, IsBlank);
  if (documents.empty()) Spoil(documents, 1, "the file is empty");
  return documents;
}

}  // namespace spoke::config
