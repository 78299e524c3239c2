// Upper-Layer Binding of any program but NFS, declared by who knows it (RFC 8166 s6): which opaque or array of a
// procedure's arguments or results is bulk data, and so travels in a chunk of its own. Who declares results as a client
// needs a server that declares the same, or their Calls fail; else an end that declares nothing is served all the same.
//
//   DeclaredBinding files;
//   files.add({.program = kFiles, .version = 1, .procedure = kPut, .offset = 8}).value();
//   files.add({.program = kFiles, .version = 1, .procedure = kGet, .where = BulkItem::Where::kResults, .offset = 4,
//              .arm = BulkItem::Arm{0, 0}}).value();
//
// RPCSEC_GSS messages under integrity or privacy have no items, whatever is declared (RFC 8166 s8.2.2.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "iwarp/base/result.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

// The one opaque<>, or array<> of elements of one size, of a procedure, on one side, that may travel in a chunk.
struct BulkItem {
  // On which side it is.
  enum class Where : std::uint8_t { kArguments, kResults };
  // Of a union, or of optional-data, whose value is 1: the item is there when the word at `offset`, counted as below,
  // has this value.
  struct Arm {
    std::size_t offset = 0;   // octets, a multiple of 4
    std::uint32_t value = 0;  // of the discriminant
  };

  std::uint32_t program = 0;              // any but 100003, NFS
  std::uint32_t version = 0;              // of the program
  std::uint32_t procedure = 0;            // of that version
  Where where = Where::kArguments;        // or results
  std::size_t offset = 0;                 // octets from the beginning of that side to its count word, a multiple of 4
  std::uint32_t max_bytes = 1u << 20;     // of results: most data; more than this ends the RPC with an error
  std::uint32_t rest_bytes = 256;         // of results: most octets beside the data, in front of it and behind it
  std::optional<Arm> arm = std::nullopt;  // nothing: it is always there
  std::uint32_t element_bytes = 1;        // octets of an element in XDR: 1, of opaque<>, or a multiple of 4

  // Whether it is in `body`, the arguments or results: the union has that arm. `body` may be reduced.
  [[nodiscard]] bool is_in(ConstBytes body) const;
};

// A value; find() may be called from several threads.
class DeclaredBinding {
 public:
  // kInvalidArgument: it is of NFS, an offset or the size of elements is none that there is, or that side of the
  // procedure has an item already.
  [[nodiscard]] Result<void> add(const BulkItem& item);
  // That of a procedure, or null. The head says whether a Call may be reduced at all. Valid until add().
  [[nodiscard]] const BulkItem* find(const RpcCall& head, BulkItem::Where where) const;

 private:
  std::vector<BulkItem> items_;
};

}  // namespace iwarp::rpcrdma
