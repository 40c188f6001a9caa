// YAML text as a small tree with line numbers: the subset of YAML that is safe and unsurprising in
// a configuration file. Pure; no exception leaves. Used by config_text only; others want that file.
//
// Refused, each with its line: anchors, aliases and tags (an alias multiplies what a reader sees;
// a tag changes what a value means), keys that are not text, duplicate keys, tabs as indentation,
// control characters, text that is not UTF-8; and a second document, where one is wanted.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spoke::config {

// The key that is wrong, like "pools[1].cidr"; empty for the file as a whole.
struct Mistake {
  int line = 1;  // The line; the first is 1.
  std::string path;
  std::string message;

  bool operator==(const Mistake&) const = default;
};

inline constexpr size_t kMaxConfigBytes = 1UL << 20;  // The largest real file has a few kilobytes.
// The greatest depth of maps and lists inside each other.
inline constexpr size_t kMaxConfigDepth = 32;
// The most documents of one file; each costs a tree.
inline constexpr size_t kMaxConfigDocuments = 4096;

enum class YamlKind { kEmpty, kText, kList, kMap };

struct YamlEntry;

struct YamlNode {
  // Returns the position of `key`, or nullptr.
  const YamlEntry* Find(const std::string& key) const;

  YamlKind kind = YamlKind::kEmpty;
  int line = 1;  // The line; the first is 1.
  bool quoted = false;
  bool refused = false;         // A mistake of this node is on record: readers pass it over.
  std::string text;             // The content of a kText.
  std::vector<YamlNode> items;  // The content of a kList.
  // The content of a kMap, in the order of the file; keys are unique.
  std::vector<YamlEntry> entries;
  std::map<std::string, size_t> index_by_key;

  // The keys that readers asked this map for, which its owner knows. Mutable, since asking is
  // reading.
  mutable bool opened = false;
  mutable std::set<std::string> asked;
};

struct YamlEntry {
  std::string key;
  int line = 1;
  YamlNode value;
};

// Returns "map" and the path of the key in it, as mistakes show it.
std::string JoinPath(std::string_view map, std::string_view key);
std::string JoinPath(std::string_view list, size_t item);

// Returns `text` in double quotes on one line: long text is cut, control characters are escaped.
std::string Quoted(std::string_view text);

// Returns whether `text` is UTF-8 without control characters, a tab excepted.
bool IsPlainText(std::string_view text);

// Parses `text`, appending to `mistakes`. Returns true when `*root` is a whole tree, though it may
// lack what was refused; false when the text has no readable shape, and then `*root` is not to be
// used.
bool ParseYaml(std::string_view text, YamlNode* root, std::vector<Mistake>* mistakes);

// One of the documents of a file, which "---" divides. Lines count from the start of the file.
struct YamlDocument {
  YamlNode root;
  bool whole = false;  // If this is false, `root` is not to be used, and `mistakes` says why.
  std::vector<Mistake> mistakes;  // The mistakes of this document.
};

// Parses all of `text`: its documents in order, without those that hold nothing. One that cannot be
// read is the last, since nobody knows where the next one begins. Always returns at least one; a
// text without any is one with a mistake.
std::vector<YamlDocument> ParseYamlDocuments(std::string_view text);

}  // namespace spoke::config
