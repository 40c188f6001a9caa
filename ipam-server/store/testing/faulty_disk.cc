#include "ipam-server/store/testing/faulty_disk.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

constexpr size_t kSectorBytes = 512;

std::string UniqueName() {
  static std::atomic<int> count = 0;
  return "faulty-disk-" + std::to_string(++count);
}

std::string ContentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

// What SQLite sees as a file; the real one's memory follows it.
struct FaultyDisk::OpenFile {
  sqlite3_file base;
  FaultyDisk* disk;
  std::string* path;  // It is owned; SQLite knows no constructors.

  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  static OpenFile& Of(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }
  static sqlite3_file* Real(sqlite3_file* file) { return Of(file).real(); }
};

struct FaultyDisk::Methods {
  static FaultyDisk& DiskOf(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk*>(vfs->pAppData); }

  static int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
    OpenFile& opened = OpenFile::Of(file);
    FaultyDisk& disk = DiskOf(vfs);
    opened.base.pMethods = nullptr;
    const int result = disk.base_->xOpen(disk.base_, name, opened.real(), flags, out);
    if (result != SQLITE_OK) return result;
    opened.disk = &disk;
    opened.path = new std::string(name == nullptr ? "" : name);
    opened.base.pMethods = FileMethods();
    disk.Opened(*opened.path);
    return SQLITE_OK;
  }
  static int Delete(sqlite3_vfs* vfs, const char* name, int sync) {
    FaultyDisk& disk = DiskOf(vfs);
    disk.Deleted(name);
    return disk.base_->xDelete(disk.base_, name, sync);
  }

  static int Close(sqlite3_file* file) {
    delete OpenFile::Of(file).path;
    return OpenFile::Real(file)->pMethods->xClose(OpenFile::Real(file));
  }
  static int Read(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset) {
    if (const int error = OpenFile::Of(file).disk->OnRead(); error != 0) {
      errno = error;
      return SQLITE_IOERR_READ;
    }
    return OpenFile::Real(file)->pMethods->xRead(OpenFile::Real(file), bytes, count, offset);
  }
  static int Write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
    const OpenFile& opened = OpenFile::Of(file);
    if (const int error = opened.disk->OnWrite(*opened.path); error != 0) {
      errno = error;
      return error == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;  // SQLite's own does the same.
    }
    opened.disk->Changed(
        *opened.path,
        {.offset = offset, .bytes = {static_cast<const char*>(bytes), static_cast<size_t>(count)}});
    return OpenFile::Real(file)->pMethods->xWrite(OpenFile::Real(file), bytes, count, offset);
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    const OpenFile& opened = OpenFile::Of(file);
    if (const int error = opened.disk->OnWrite(*opened.path); error != 0) {
      errno = error;
      return SQLITE_IOERR_TRUNCATE;
    }
    opened.disk->Changed(*opened.path, {.offset = size, .bytes = {}, .truncate = true});
    return OpenFile::Real(file)->pMethods->xTruncate(OpenFile::Real(file), size);
  }
  static int Sync(sqlite3_file* file, int) {
    const OpenFile& opened = OpenFile::Of(file);
    if (opened.disk->OnSync(*opened.path)) return SQLITE_OK;
    errno = EIO;
    return SQLITE_IOERR_FSYNC;
  }
  static int FileSize(sqlite3_file* file, sqlite3_int64* size) {
    return OpenFile::Real(file)->pMethods->xFileSize(OpenFile::Real(file), size);
  }
  static int Lock(sqlite3_file* file, int level) {
    return OpenFile::Real(file)->pMethods->xLock(OpenFile::Real(file), level);
  }
  static int Unlock(sqlite3_file* file, int level) {
    return OpenFile::Real(file)->pMethods->xUnlock(OpenFile::Real(file), level);
  }
  static int CheckReservedLock(sqlite3_file* file, int* result) {
    return OpenFile::Real(file)->pMethods->xCheckReservedLock(OpenFile::Real(file), result);
  }
  static int FileControl(sqlite3_file* file, int operation, void* argument) {
    return OpenFile::Real(file)->pMethods->xFileControl(OpenFile::Real(file), operation, argument);
  }
  static int SectorSize(sqlite3_file* file) {
    return OpenFile::Real(file)->pMethods->xSectorSize(OpenFile::Real(file));
  }
  static int DeviceCharacteristics(sqlite3_file* file) {
    return OpenFile::Real(file)->pMethods->xDeviceCharacteristics(OpenFile::Real(file));
  }
  static int ShmMap(sqlite3_file* file, int region, int size, int extend, void volatile** out) {
    return OpenFile::Real(file)->pMethods->xShmMap(OpenFile::Real(file), region, size, extend, out);
  }
  static int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
    return OpenFile::Real(file)->pMethods->xShmLock(OpenFile::Real(file), offset, count, flags);
  }
  static void ShmBarrier(sqlite3_file* file) {
    OpenFile::Real(file)->pMethods->xShmBarrier(OpenFile::Real(file));
  }
  static int ShmUnmap(sqlite3_file* file, int remove) {
    return OpenFile::Real(file)->pMethods->xShmUnmap(OpenFile::Real(file), remove);
  }

  static const sqlite3_io_methods* FileMethods() {
    static const sqlite3_io_methods methods = {2,
                                               &Close,
                                               &Read,
                                               &Write,
                                               &Truncate,
                                               &Sync,
                                               &FileSize,
                                               &Lock,
                                               &Unlock,
                                               &CheckReservedLock,
                                               &FileControl,
                                               &SectorSize,
                                               &DeviceCharacteristics,
                                               &ShmMap,
                                               &ShmLock,
                                               &ShmBarrier,
                                               &ShmUnmap,
                                               nullptr,
                                               nullptr};
    return &methods;
  }
};

FaultyDisk::FaultyDisk() : name_(UniqueName()), base_(sqlite3_vfs_find("unix-excl")), vfs_(*base_) {
  vfs_.szOsFile = static_cast<int>(sizeof(OpenFile)) + base_->szOsFile;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.pNext = nullptr;
  vfs_.xOpen = &Methods::Open;
  vfs_.xDelete = &Methods::Delete;
  CHECK(sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK, "a VFS can be registered");
}

FaultyDisk::~FaultyDisk() { sqlite3_vfs_unregister(&vfs_); }

void FaultyDisk::FailWrites(int error) {
  absl::MutexLock lock(&mutex_);
  write_error_ = error;
}

void FaultyDisk::FailReads(int error) {
  absl::MutexLock lock(&mutex_);
  read_error_ = error;
}

void FaultyDisk::FailSyncs(int error) {
  absl::MutexLock lock(&mutex_);
  sync_error_ = error;
}

void FaultyDisk::FailNextSyncs(int count) {
  absl::MutexLock lock(&mutex_);
  failing_syncs_ = count;
}

void FaultyDisk::Before(int64_t operation, std::function<void()> call) {
  absl::MutexLock lock(&mutex_);
  const auto available = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !calling_; };
  mutex_.Await(absl::Condition(&available));
  until_call_ = operation;
  call_ = std::move(call);
}

void FaultyDisk::CountOperation() {
  std::function<void()> call;
  {
    absl::MutexLock lock(&mutex_);
    if (until_call_ == 0 || --until_call_ > 0) return;
    call = std::exchange(call_, nullptr);
    calling_ = true;
  }
  if (call) call();
  absl::MutexLock lock(&mutex_);
  calling_ = false;
}

void FaultyDisk::BeforeWriteTo(std::string path, std::function<void()> call) {
  absl::MutexLock lock(&mutex_);
  call_path_ = std::move(path);
  path_call_ = std::move(call);
}

int FaultyDisk::OnWrite(const std::string& path) {
  CountOperation();
  std::function<void()> call;
  {
    absl::MutexLock lock(&mutex_);
    if (path_call_ && path == call_path_) call = std::exchange(path_call_, nullptr);
  }
  if (call) call();
  absl::MutexLock lock(&mutex_);
  return write_error_;
}

int FaultyDisk::OnRead() {
  absl::MutexLock lock(&mutex_);
  return read_error_;
}

void FaultyDisk::Opened(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  // What is there when a file is first seen is taken as safe.
  if (!files_.contains(path)) files_[path].synced = ContentOf(path);
}

void FaultyDisk::Deleted(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  files_.erase(path);
}

void FaultyDisk::Changed(const std::string& path, Change change) {
  absl::MutexLock lock(&mutex_);
  files_[path].pending.push_back(std::move(change));
}

bool FaultyDisk::OnSync(const std::string& path) {
  CountOperation();
  absl::MutexLock lock(&mutex_);
  FileState& file = files_[path];
  const bool fails = sync_error_ != 0 || failing_syncs_ > 0;
  if (failing_syncs_ > 0) --failing_syncs_;
  for (const Change& change : file.pending) {
    if (!fails) Apply(change, file.synced);
  }
  file.pending.clear();
  return !fails;
}

void FaultyDisk::Apply(const Change& change, std::string& content) {
  const auto offset = static_cast<size_t>(change.offset);
  if (change.truncate) {
    content.resize(offset);
    return;
  }
  if (content.size() < offset + change.bytes.size()) content.resize(offset + change.bytes.size());
  std::memcpy(content.data() + offset, change.bytes.data(), change.bytes.size());
}

void FaultyDisk::WriteImage(const std::string& directory, std::mt19937& random) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [path, file] : files_) {
    std::string content = file.synced;
    for (Change change : file.pending) {
      const unsigned luck = random() % 4;
      if (luck == 0) continue;
      if (luck == 1 && change.bytes.size() > kSectorBytes) {
        const size_t sectors = change.bytes.size() / kSectorBytes;
        change.bytes.resize(kSectorBytes * (random() % sectors));
      }
      Apply(change, content);
    }
    std::ofstream(std::filesystem::path(directory) / std::filesystem::path(path).filename(),
                  std::ios::binary)
        << content;
  }
}

}  // namespace spoke::ipam
