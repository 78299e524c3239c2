#include "tests/support/shortage.h"

#include <cstdlib>
#include <new>
#include <optional>

namespace iwarp::test {
namespace {

thread_local std::optional<std::size_t> left;  // to the one that fails
thread_local bool counting = false;
thread_local bool failed = false;

bool is_the_one() {
  if (!counting || !left || (*left)-- != 0) return false;
  left.reset();
  return failed = true;
}

void* allocate(std::size_t bytes) {
  return is_the_one() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

Shortage::Shortage(std::size_t n) {
  left = n;
  failed = false;
}
Shortage::~Shortage() {
  left.reset();
}
bool Shortage::happened() {
  return failed;
}
Shortage::Short::Short() {
  counting = true;
}
Shortage::Short::~Short() {
  counting = false;
}

}  // namespace iwarp::test

// Asio takes memory with this one.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  void* p = nullptr;
  const bool made = !iwarp::test::is_the_one() && ::posix_memalign(&p, alignment, bytes) == 0;
  return made ? p : nullptr;
}
void* operator new(std::size_t bytes) {
  void* const p = iwarp::test::allocate(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return iwarp::test::allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return iwarp::test::allocate(bytes);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
  std::free(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
  std::free(p);
}
