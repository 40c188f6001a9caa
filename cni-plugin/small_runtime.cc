// The part of the C++ runtime that the released plugin needs, for it is linked with musl and
// without libstdc++ (ADR 11): memory, and an end for what cannot happen.
//
// Memory is a line that is only added to: the process lives for a millisecond. What an exec uses
// fits into the first chunk, which is part of the program's zeroed data: each of its pages costs a
// page fault only once it is used, and no system call is made.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kFirstChunkBytes = 256 << 10;
constexpr size_t kMoreBytes = 4 << 20;
constexpr size_t kMostBytes = size_t{1} << 30;  // The most bytes of one block.

// The section lies behind all other data: what is small shares a page. By its name GCC knows, on
// every architecture, that it is nothing but zeros and takes no place in the file.
alignas(kAlignment) [[gnu::section(".persistent.bss")]] char g_first_chunk[kFirstChunkBytes];
char* g_next = g_first_chunk;
char* g_end = g_first_chunk + kFirstChunkBytes;

// The header before each block, so that realloc() knows how much to copy.
struct alignas(kAlignment) Header {
  size_t size;
};

[[noreturn]] void Die() {
  constexpr char kText[] =
      R"({"cniVersion":"1.0.0","code":100,"msg":"the plugin is out of memory, or has a fault",)"
      R"("details":"try again; if it goes on, report it with the network configuration"})"
      "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, kText, sizeof(kText) - 1);
  ::_exit(1);
}

Header* HeaderOf(void* block) { return static_cast<Header*>(block) - 1; }

size_t RoundUp(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

bool IsLast(void* block) { return static_cast<char*>(block) + HeaderOf(block)->size == g_next; }

}  // namespace

extern "C" {

void* malloc(size_t size) {
  if (size > kMostBytes) return nullptr;
  size = RoundUp(size);
  const size_t whole = size + sizeof(Header);
  if (whole > static_cast<size_t>(g_end - g_next)) {
    const size_t chunk = std::max(kMoreBytes, whole);
    void* more = ::mmap(nullptr, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more == MAP_FAILED) return nullptr;
    g_next = static_cast<char*>(more);
    g_end = g_next + chunk;
  }
  auto* header = reinterpret_cast<Header*>(g_next);
  header->size = size;
  g_next += whole;
  return header + 1;
}

void free(void* block) {
  if (block != nullptr && IsLast(block)) g_next = reinterpret_cast<char*>(HeaderOf(block));
}

void* realloc(void* block, size_t size) {
  if (block == nullptr) return malloc(size);
  Header* header = HeaderOf(block);
  if (size <= header->size) {
    if (IsLast(block)) {
      header->size = RoundUp(size);
      g_next = static_cast<char*>(block) + header->size;
    }
    return block;
  }
  const size_t more = RoundUp(size) - header->size;
  if (size <= kMostBytes && IsLast(block) && more <= static_cast<size_t>(g_end - g_next)) {
    header->size += more;
    g_next += more;
    return block;
  }
  void* larger = malloc(size);
  if (larger != nullptr) std::memcpy(larger, block, header->size);
  return larger;
}

void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void* block = malloc(bytes);
  return block == nullptr ? nullptr : std::memset(block, 0, bytes);
}

[[noreturn]] void abort() { Die(); }
[[noreturn]] void __cxa_pure_virtual() { Die(); }

}  // extern "C"

void* operator new(size_t size) {
  void* block = malloc(size);
  if (block == nullptr) Die();
  return block;
}
void* operator new[](size_t size) { return operator new(size); }
void operator delete(void* block) noexcept { free(block); }
void operator delete[](void* block) noexcept { free(block); }
void operator delete(void* block, size_t /*size*/) noexcept { free(block); }
void operator delete[](void* block, size_t /*size*/) noexcept { free(block); }

// The functions that the headers of libstdc++ call instead of throwing themselves.
namespace std {
void __throw_length_error(const char* /*what*/) { Die(); }
void __throw_logic_error(const char* /*what*/) { Die(); }
void __throw_bad_alloc() { Die(); }
void __throw_bad_array_new_length() { Die(); }
void __throw_out_of_range_fmt(const char* /*format*/, ...) { Die(); }
void __throw_bad_function_call() { Die(); }
}  // namespace std
