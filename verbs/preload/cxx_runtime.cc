// Memory for exceptions, instead of libstdc++'s (eh_alloc.cc), of which we have a copy of our own:
// at load time that one sets aside 72 KB for exceptions thrown when there is no memory. A program
// that has nothing to do with RDMA should not pay for it. (Itanium C++ ABI, 2.4.2.)
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

// The runtime's header stands immediately before the exception: 128 bytes with every 64-bit
// libstdc++ so far.
constexpr std::size_t kHeaderSize = 256;

void* allocate(std::size_t size) {
  void* memory = std::calloc(1, size);
  if (memory == nullptr) std::terminate();
  return memory;
}

}  // namespace

extern "C" {

void* __cxa_allocate_exception(std::size_t size) noexcept;
void __cxa_free_exception(void* exception) noexcept;
void* __cxa_allocate_dependent_exception() noexcept;
void __cxa_free_dependent_exception(void* exception) noexcept;

void* __cxa_allocate_exception(std::size_t size) noexcept {
  return static_cast<char*>(allocate(kHeaderSize + size)) + kHeaderSize;
}

void __cxa_free_exception(void* exception) noexcept {
  std::free(static_cast<char*>(exception) - kHeaderSize);
}

void* __cxa_allocate_dependent_exception() noexcept { return allocate(kHeaderSize); }

void __cxa_free_dependent_exception(void* exception) noexcept { std::free(exception); }

}  // extern "C"
