#include "tools/perf/rpc_program.h"

#include "iwarp/base/wire.h"

namespace iwarp::tools::perf {
namespace {

constexpr std::size_t kWord = 4;

std::size_t padded(std::size_t octets) {
  return (octets + 3) / 4 * 4;
}

// A word where there is one, and an opaque<> of the pattern of that seed.
rpc::Octets encode_data(std::optional<std::uint32_t> word, std::uint32_t seed, std::uint32_t size) {
  const std::size_t data = (word ? 2 : 1) * kWord;
  rpc::Octets out(data + padded(size));
  WriteCursor cursor(out);
  if (word) cursor.be(*word);
  cursor.be(size);
  fill_pattern(&out[data], size, seed);
  return out;
}

rpc::Octets encode_words(std::uint32_t one, std::optional<std::uint32_t> other = std::nullopt) {
  rpc::Octets out((other ? 2 : 1) * kWord);
  WriteCursor cursor(out);
  cursor.be(one);
  if (other) cursor.be(*other);
  return out;
}

// The opaque<> that is all that is left; nothing: there is something else.
std::optional<ConstBytes> decode_data(ReadCursor& in, std::uint32_t size) {
  const auto count = in.be<std::uint32_t>();
  const ConstBytes data = in.take(count);
  in.skip(padded(count) - count);
  if (!in.ok() || in.remaining() != 0 || count != size) return std::nullopt;
  return data;
}

}  // namespace

rpc::Procedure rpc_procedure_of(Test test) {
  const Test base = baseline_of(test);
  return {kRpcProgram, kRpcVersion,
          base == Test::kTcpRpcNull   ? kRpcNull
          : base == Test::kTcpRpcRead ? kRpcRead
                                      : kRpcWrite};
}

std::shared_ptr<const rpcrdma::DeclaredBinding> rpc_binding(std::uint32_t size) {
  auto binding = std::make_shared<rpcrdma::DeclaredBinding>();
  binding
      ->add({.program = kRpcProgram,
             .version = kRpcVersion,
             .procedure = kRpcRead,
             .where = rpcrdma::BulkItem::Where::kResults,
             .offset = 0,
             .max_bytes = size})
      .value();
  binding->add({.program = kRpcProgram, .version = kRpcVersion, .procedure = kRpcWrite, .offset = kWord}).value();
  return binding;
}

// --- RpcProgram

RpcProgram::RpcProgram(const Spec& spec)
    : size_(spec.size),
      ready_(rpc_procedure_of(spec.test).procedure == kRpcRead ? encode_data({}, 0, size_) : rpc::Octets()) {}

const rpc::Octets* RpcProgram::same_each_time(std::uint32_t procedure, ConstBytes arguments) const {
  if (procedure != kRpcRead || ready_.empty()) return nullptr;
  ReadCursor in(arguments);
  const bool measured = in.be<std::uint32_t>() == 0 && in.be<std::uint32_t>() == size_;
  return measured && in.ok() && in.remaining() == 0 ? &ready_ : nullptr;
}

std::optional<rpc::Octets> RpcProgram::answer(std::uint32_t procedure, ConstBytes arguments) const {
  if (procedure == kRpcNull) return arguments.empty() ? std::optional(rpc::Octets()) : std::nullopt;
  if (const rpc::Octets* const ready = same_each_time(procedure, arguments)) return *ready;
  ReadCursor in(arguments);
  const auto seed = in.be<std::uint32_t>();
  if (procedure == kRpcRead) {
    const auto size = in.be<std::uint32_t>();
    if (!in.ok() || in.remaining() != 0 || size != size_) return std::nullopt;
    return encode_data({}, seed, size);
  }
  if (procedure != kRpcWrite) return std::nullopt;
  const auto data = decode_data(in, size_);
  if (!data) return std::nullopt;
  return encode_words(seed == 0 || has_pattern(data->data(), data->size(), seed) ? 1 : 0);
}

// --- RpcUse

RpcUse::RpcUse(const Spec& spec) : test_(spec.test), size_(spec.size), ready_(arguments(0)) {}

rpc::Octets RpcUse::arguments(std::uint32_t seed) const {
  switch (procedure().procedure) {
    case kRpcNull:
      return {};
    case kRpcRead:
      return encode_words(seed, size_);
    default:
      return encode_data(seed, seed, size_);
  }
}

std::size_t RpcUse::most_results() const {
  return procedure().procedure == kRpcRead ? kWord + padded(size_) : kWord;
}

std::uint64_t RpcUse::payload() const {
  return procedure().procedure == kRpcNull ? 0 : size_;
}

bool RpcUse::answered(ConstBytes results) const {
  ReadCursor in(results);
  switch (procedure().procedure) {
    case kRpcNull:
      return results.empty();
    case kRpcRead: {
      const auto data = decode_data(in, size_);
      if (!data) return false;
      (void)*static_cast<const volatile std::byte*>(data->data());  // as whoever uses the data would at least
      return true;
    }
    default:
      return in.be<std::uint32_t>() == 1 && in.ok();
  }
}

bool RpcUse::answered(ConstBytes results, std::uint32_t seed) const {
  if (procedure().procedure != kRpcRead) return answered(results);
  ReadCursor in(results);
  const auto data = decode_data(in, size_);
  return data && has_pattern(data->data(), data->size(), seed);
}

}  // namespace iwarp::tools::perf
