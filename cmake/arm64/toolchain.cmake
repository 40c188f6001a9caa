# Compiles for arm64 (aarch64) on a machine of another architecture, with Debian's cross compiler and the
# arm64 packages of the libraries beside those of the machine (Debian's multiarch). scripts/setup.sh --arm64
# installs both. The preset release-arm64 uses this.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc-12)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
set(CMAKE_CXX_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(SPOKE_DEBIAN_ARCHITECTURE arm64)

# What is made here and then run here (spokectl writes its own manual pages) runs in an emulator.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

# Libraries are below /usr as everywhere in Debian, but in the folder of the architecture. What runs while
# building is this machine's: protoc, gRPC's plugin for it, clang for the kernel's programs, pkg-config.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_IGNORE_PATH /usr/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu)
set(CMAKE_IGNORE_PREFIX_PATH /usr/lib/x86_64-linux-gnu)
set(PKG_CONFIG_EXECUTABLE /usr/bin/aarch64-linux-gnu-pkg-config)

# The libraries whose development packages of two architectures exclude each other.
set(yaml-cpp_DIR ${CMAKE_CURRENT_LIST_DIR})
set(prometheus-cpp_DIR ${CMAKE_CURRENT_LIST_DIR})
