// A struct of the C interface and, behind it, the object that it is a part of: the application casts nothing, and finds
// the public struct at the address that it was given.
#pragma once

#include <cstddef>
#include <type_traits>

namespace iwarp::dropin::rdmacm {

template <class C, class Owner>
struct Shown {
  C c{};                   // what the application sees; first
  Owner* owner = nullptr;  // set by the owner's constructor

  // Precondition: `c` is the member of a Shown with this owner.
  [[nodiscard]] static Owner& of(C* c) {
    static_assert(std::is_standard_layout_v<Shown> && offsetof(Shown, c) == 0);
    return *reinterpret_cast<Shown*>(c)->owner;
  }
};

}  // namespace iwarp::dropin::rdmacm
