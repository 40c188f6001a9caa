// JSON (RFC 8259) as the plugin reads and writes it, over RapidJSON. Pure.
//
// Where an object has a key more than once, the last one counts, and null counts as absent: so do
// the decoders of the runtimes and of the reference plugins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

// This replaces the library's own, which is assert(): that is silent in some builds and drags stdio
// into others.
#define RAPIDJSON_ASSERT(condition) ((condition) ? static_cast<void>(0) : std::abort())
#include <rapidjson/document.h>

namespace spoke::cni::json {

using Value = rapidjson::Value;

// The memory that Parse() fills; its values live as long. A configuration takes one or two chunks.
struct DocumentMemory {
  static constexpr size_t kChunkBytes = 4096;
  rapidjson::MemoryPoolAllocator<> pool{kChunkBytes};
};
class Document : private DocumentMemory, public rapidjson::Document {
 public:
  Document() : rapidjson::Document(&pool) {}
};

// The greatest depth, deeper than any configuration; so deep may what is parsed be printed by
// recursion.
inline constexpr int kMaxDepth = 64;

// Returns false when `text` is not one JSON value, not UTF-8, has a number that no double holds, or
// is nested deeper than kMaxDepth.
bool Parse(std::string_view text, Document& document);

// Returns the value of a key; nullptr where `object` has no such key, only a null, or is no object.
const Value* Find(const Value& object, std::string_view key);

// Returns what Find() returns, ignoring the case of ASCII letters: containerd writes "IngressRate"
// for "ingressRate".
const Value* FindAnyCase(const Value& object, std::string_view key);

// Returns whether the key is there at all, if only with a null.
bool Has(const Value& object, std::string_view key);

// Returns a string's bytes; empty for anything else. Borrowed from `value`.
std::string_view TextOf(const Value* value);

// Appends `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
void AppendText(std::string_view text, std::string& out);

void AppendValue(const Value& value, std::string& out);

}  // namespace spoke::cni::json

namespace spoke::cni {

// Text that came from outside, as UTF-8 (RFC 3629).

// Returns `text` with U+FFFD in the place of each byte that belongs to no character.
std::string ToUtf8(std::string_view text);

// Tells white space as Unicode's property White_Space has it.
bool IsWhiteSpace(uint32_t character);

}  // namespace spoke::cni
