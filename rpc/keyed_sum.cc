#include "iwarp/rpc/keyed_sum.h"

#include <openssl/evp.h>

#include <memory>

#include "iwarp/verbs/entropy.h"

namespace iwarp::rpc {
namespace {

using Secret = std::array<std::byte, 32>;

const std::optional<Secret>& secret() {
  static const std::optional<Secret> made = []() -> std::optional<Secret> {
    Secret random{};
    if (!verbs::fill_random(random)) return std::nullopt;
    return random;
  }();
  return made;
}

struct Free {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MAC_CTX, Free>;

Context make_context() {
  EVP_MAC* const mac = EVP_MAC_fetch(nullptr, "POLY1305", nullptr);
  if (mac == nullptr) return nullptr;
  Context made(EVP_MAC_CTX_new(mac));
  EVP_MAC_free(mac);
  return made;
}

const unsigned char* plain(const std::byte* octets) {
  return reinterpret_cast<const unsigned char*>(octets);
}

}  // namespace

std::optional<KeyedSum> keyed_sum(ConstBytes octets) {
  static thread_local const Context context = make_context();
  const auto& key = secret();
  if (!context || !key) return std::nullopt;
  KeyedSum sum{};
  std::size_t length = 0;
  const bool made =
      EVP_MAC_init(context.get(), plain(key->data()), key->size(), nullptr) == 1 &&
      EVP_MAC_update(context.get(), plain(octets.data()), octets.size()) == 1 &&
      EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(sum.data()), &length, sum.size()) == 1;
  if (!made || length != sum.size()) return std::nullopt;
  return sum;
}

}  // namespace iwarp::rpc
