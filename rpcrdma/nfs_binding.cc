#include "iwarp/rpcrdma/nfs_binding.h"

#include <algorithm>

#include "iwarp/rpcrdma/nfs_compound.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {
namespace {

// Procedure numbers; READ is 6 and READLINK 5 in both old versions.
constexpr std::uint32_t kReadlinkProc = 5;
constexpr std::uint32_t kLongestPathV2 = 1024;  // MAXPATHLEN of RFC 1094
constexpr std::uint32_t kReadProc = 6;
constexpr std::uint32_t kV2WriteProc = 8;
constexpr std::uint32_t kV2SymlinkProc = 13;
constexpr std::uint32_t kV3WriteProc = 7;
constexpr std::uint32_t kV3SymlinkProc = 10;
constexpr std::uint32_t kV4CompoundProc = 1;

constexpr std::uint32_t kNfsOk = 0;
constexpr std::uint32_t kSymlinkType = 5;  // NF4LNK

// Schemas (nfs_compound.h) of what precedes an item. 2 s are a version 2 file handle.
constexpr std::string_view kV2BeforeWriteData = "sswww";
constexpr std::string_view kV2BeforeSymlinkPath = "sso";
constexpr std::string_view kV2Attributes = "ssssw";
constexpr std::string_view kV3BeforeWriteData = "odww";
// diropargs3, then sattr3: mode, uid, gid, size, atime, mtime.
constexpr std::string_view kV3BeforeSymlinkPath = "oo{1=w;0=}{1=w;0=}{1=w;0=}{1=d;0=}{2=d;*=}{2=d;*=}";
constexpr std::string_view kV3PostOpAttributes = "{1=sssssw;0=}";  // fattr3 is 84 octets

struct CompoundHead {
  std::uint32_t minor_version = 0;
  std::uint32_t operations = 0;
};

// COMPOUND4args up to the operations: tag, minorversion, count. A count beyond what can be there is malformed.
std::optional<CompoundHead> read_compound_call(ReadCursor& in) {
  CompoundHead out;
  if (!skip_xdr(in, "o")) return std::nullopt;
  out.minor_version = in.be<std::uint32_t>();
  out.operations = in.be<std::uint32_t>();
  // req: RFC8267-7-1
  if (!in.ok() || out.minor_version > 2 || out.operations > in.remaining() / 4) return std::nullopt;
  return out;
}

// COMPOUND4res up to the results: status, tag, count. Gives the count; an overall error does not keep earlier results
// from being there.
std::optional<std::uint32_t> read_compound_reply(ReadCursor& in) {
  if (!skip_xdr(in, "wo")) return std::nullopt;
  const auto results = in.be<std::uint32_t>();
  if (!in.ok() || results > in.remaining() / 8) return std::nullopt;
  return results;
}

// req: RFC8267-6.5.2-4
// Lowers the three size words of the channel_attrs4 at `at`; false if they are not there.
bool clamp_sizes(MutBytes message, std::size_t at, std::uint32_t limit) {
  constexpr std::size_t kFirst = 4;  // behind ca_headerpadsize: maxrequestsize, maxresponsesize, maxresponsesize_cached
  constexpr std::size_t kCount = 3;
  if (message.size() < at + kFirst + kCount * 4) return false;
  for (std::size_t i = 0; i < kCount; ++i) {
    const MutBytes word = message.subspan(at + kFirst + i * 4, 4);
    store_be<std::uint32_t>(word, std::min(load_be<std::uint32_t>(word), limit));  // req: RFC8267-6.5.2-2
  }
  return true;
}

// The position of the back channel's attributes in what follows in `in`, checked to be whole.
bool find_back_channel(ReadCursor& in, std::string_view before, std::size_t message_size, std::size_t& at) {
  if (!skip_xdr(in, before)) return false;
  at = message_size - in.remaining();
  return skip_xdr(in, kChannelAttrs);
}

// The head of a Call to NFS whose body is plain XDR, and its arguments.
std::optional<RpcCall> parse_nfs_call(ConstBytes call) {
  if (program_word(call) != kNfsProgram) return std::nullopt;
  const Result<RpcCall> head = RpcCall::parse(call);
  // req: RFC8267-5.2-2 RFC8267-6.5.1-1 RFC8267-6.5.2-3
  if (!head || !head->body_is_plain()) return std::nullopt;  // req: RFC8166-8.2.2.3-2
  return *head;
}

// The head of a Call with a declared item, which it gives, and whose body begins in `in`.
const BulkItem* find_declared(ConstBytes call, const DeclaredBinding* declared, BulkItem::Where where, ReadCursor& in) {
  if (declared == nullptr) return nullptr;
  const Result<RpcCall> head = RpcCall::parse(call);
  if (!head) return nullptr;
  const BulkItem* item = declared->find(*head, where);
  if (item != nullptr) in.skip(head->arguments_offset);
  return item;
}

}  // namespace

// --- ItemScan

std::optional<DdpItem> ItemScan::describe() {
  DdpItem out;
  // All elements, each in its entirety. req: RFC8166-3.4.4.1-2 RFC8166-3.4.4.1-3
  const std::uint64_t octets = std::uint64_t{in.be<std::uint32_t>()} * element_bytes;
  if (!in.ok() || octets > UINT32_MAX) return std::nullopt;
  out.length = static_cast<std::uint32_t>(octets);
  out.offset = size - in.remaining();
  out.position = out.offset + absent;  // req: RFC8166-3.4.5-2 RFC8166-4.3.1.1-1 RFC8267-6.4.1-1
  // req: D2005-3.7-4
  out.ordinal = found++;  // req: RFC8267-6.4.3-1
  out.in_message = out.padded_length() <= in.remaining();
  pending_octets = out.padded_length();
  return out;
}

bool ItemScan::finish_pending() {
  if (pending_octets > in.remaining()) return false;
  in.skip(static_cast<std::size_t>(pending_octets));  // req: RFC8166-2.2.4.2-1
  pending_octets = 0;
  return in.ok();
}

void ItemScan::mark_absent() {
  absent += pending_octets;  // req: RFC8166-3.4.4.4-2
  pending_octets = 0;
}

// --- Calls

ArgumentWalker::ArgumentWalker(ConstBytes call, const DeclaredBinding* declared) : scan_(call) {
  if (const BulkItem* item = find_declared(call, declared, BulkItem::Where::kArguments, scan_.in)) {
    if (!item->is_in(scan_.in.rest())) return;
    scan_.in.skip(item->offset);
    scan_.element_bytes = item->element_bytes;
    single_ = scan_.in.ok();
    return;
  }
  const auto head = parse_nfs_call(call);
  if (!head) return;
  ReadCursor& in = scan_.in;
  in.skip(head->arguments_offset);
  const std::uint32_t procedure = head->procedure;
  switch (head->version) {
    case 2:
      if (procedure == kV2WriteProc) single_ = skip_xdr(in, kV2BeforeWriteData);      // req: RFC8267-4-1
      if (procedure == kV2SymlinkProc) single_ = skip_xdr(in, kV2BeforeSymlinkPath);  // req: RFC8267-4-2
      return;
    case 3:
      if (procedure == kV3WriteProc) single_ = skip_xdr(in, kV3BeforeWriteData);
      if (procedure == kV3SymlinkProc) single_ = skip_xdr(in, kV3BeforeSymlinkPath);
      return;  // req: RFC8267-4-5
    case 4:
      if (procedure != kV4CompoundProc) return;
      if (const auto compound = read_compound_call(in)) {
        ops_left_ = compound->operations;
      } else {
        broke_off_ = true;
      }
      return;
    default:
      broke_off_ = true;
      return;
  }
}

std::optional<DdpItem> ArgumentWalker::next() {
  if (single_) {
    single_ = false;
    return scan_.describe();
  }
  if (ops_left_ == 0 && !create_tail_) return std::nullopt;
  ReadCursor& in = scan_.in;
  bool fine = scan_.finish_pending();
  if (create_tail_) fine = fine && skip_xdr(in, "oA");
  create_tail_ = false;
  while (fine && ops_left_ > 0) {
    --ops_left_;
    const auto op = in.be<std::uint32_t>();
    if (op == static_cast<std::uint32_t>(NfsOp::kWrite)) {  // req: RFC8267-6.1-1
      fine = skip_xdr(in, "sdw");
      if (!fine) break;
      return scan_.describe();
    }
    if (op == static_cast<std::uint32_t>(NfsOp::kCreate)) {
      ReadCursor arms = in;
      if (arms.be<std::uint32_t>() == kSymlinkType && arms.ok()) {  // req: RFC8267-6.1-2 RFC8166-3.4.4.3-2
        in.skip(4);
        create_tail_ = true;
        return scan_.describe();
      }
    }
    fine = in.ok() && skip_arguments(in, op);
  }
  broke_off_ = broke_off_ || !fine;
  ops_left_ = 0;
  return std::nullopt;
}

// --- Replies

ResultBinding ResultBinding::for_call(ConstBytes call, const DeclaredBinding* declared) {
  ResultBinding out;
  ReadCursor unused(call);
  if (const BulkItem* item = find_declared(call, declared, BulkItem::Where::kResults, unused)) {
    out.shape_ = Shape::kDeclared;
    out.known_ = true;
    out.max_items_ = 1;
    out.expectations_[0] = {Expectation::Kind::kRead, item->max_bytes};
    out.declared_ = *item;
    return out;
  }
  const auto head = parse_nfs_call(call);
  if (!head) return out;
  out.known_ = head->version >= 2 && head->version <= 4;
  ReadCursor in(call.subspan(head->arguments_offset));
  const auto expect = [&out](Expectation::Kind kind, std::uint32_t max_bytes) {
    if (out.max_items_ < kMaxExpectations) out.expectations_[out.max_items_] = {kind, max_bytes};
    ++out.max_items_;
  };
  // Where a READ is well-formed, the word behind `before` is its count.
  const auto expect_read = [&](std::string_view before) {
    const bool fine = skip_xdr(in, before);
    const auto count = in.be<std::uint32_t>();
    if (fine && in.ok()) expect(Expectation::Kind::kRead, count);
    return fine && in.ok();
  };
  if (head->version == 2 || head->version == 3) {
    const bool v2 = head->version == 2;
    if (head->procedure == kReadProc && expect_read(v2 ? "ssw" : "od"))
      out.shape_ = v2 ? Shape::kV2Read : Shape::kV3Read;
    if (head->procedure == kReadlinkProc && skip_xdr(in, v2 ? "ss" : "o")) {
      expect(Expectation::Kind::kReadlink, v2 ? kLongestPathV2 : 0);
      out.shape_ = v2 ? Shape::kV2Readlink : Shape::kV3Readlink;
    }
    return out;
  }
  if (head->version != 4 || head->procedure != kV4CompoundProc) return out;
  const auto compound = read_compound_call(in);
  out.known_ = compound.has_value();
  if (!compound) return out;
  out.shape_ = Shape::kV4Compound;
  for (std::uint32_t i = 0; i < compound->operations; ++i) {
    const auto op = in.be<std::uint32_t>();
    bool fine = in.ok();
    if (op == static_cast<std::uint32_t>(NfsOp::kRead)) {
      fine = fine && expect_read("sd");
    } else {
      fine = fine && skip_arguments(in, op);
      if (fine && op == static_cast<std::uint32_t>(NfsOp::kCreateSession)) out.creates_session_ = true;
      if (fine && op == static_cast<std::uint32_t>(NfsOp::kReadlink)) expect(Expectation::Kind::kReadlink, 0);
    }
    if (!fine) {
      out.known_ = false;  // results behind it may have items
      break;
    }
  }
  return out;
}

std::optional<std::size_t> ResultBinding::declared_bytes() const {
  if (!declared_) return std::nullopt;
  return std::size_t{declared_->rest_bytes} + (std::size_t{declared_->max_bytes} + 3) / 4 * 4;
}

DdpItems ResultBinding::items(ConstBytes reply, std::size_t limit) const {
  DdpItems out;
  ResultWalker walker(*this, reply);
  while (out.size() < limit) {
    const auto item = walker.next();
    if (!item || !item->in_message) break;
    out.push_back(*item);
  }
  return out;
}

ResultWalker::ResultWalker(const ResultBinding& binding, ConstBytes reply)
    : scan_(reply), items_left_(binding.max_items_) {
  using Shape = ResultBinding::Shape;
  if (binding.max_items_ == 0) return;
  const Result<RpcReply> head = RpcReply::parse(reply);
  if (!head || !head->success()) return;
  ReadCursor& in = scan_.in;
  in.skip(head->results_offset);
  if (binding.shape_ == Shape::kV4Compound) {
    if (const auto results = read_compound_reply(in)) {
      ops_left_ = *results;
    } else {
      broke_off_ = true;
    }
    return;
  }
  if (binding.declared_) {
    if (!binding.declared_->is_in(in.rest())) return;
    in.skip(binding.declared_->offset);
    scan_.element_bytes = binding.declared_->element_bytes;
    single_ = in.ok();
    return;
  }
  const auto status = in.be<std::uint32_t>();
  if (!in.ok() || status != kNfsOk) return;
  switch (binding.shape_) {
    case Shape::kV2Read:
      single_ = skip_xdr(in, kV2Attributes);
      break;
    case Shape::kV2Readlink:
      single_ = true;
      break;
    case Shape::kV3Read:
      single_ = skip_xdr(in, kV3PostOpAttributes) && skip_xdr(in, "ww");
      break;  // req: RFC8267-4-3
    case Shape::kV3Readlink:
      single_ = skip_xdr(in, kV3PostOpAttributes);
      break;  // req: RFC8267-4-4
    case Shape::kV4Compound:
    case Shape::kDeclared:
    case Shape::kNone:
      break;
  }
}

std::optional<DdpItem> ResultWalker::next() {
  if (single_) {
    single_ = false;
    return scan_.describe();
  }
  ReadCursor& in = scan_.in;
  bool fine = scan_.finish_pending();
  while (fine && ops_left_ > 0 && items_left_ > 0) {
    --ops_left_;
    const auto op = in.be<std::uint32_t>();
    const auto status = in.be<std::uint32_t>();
    if (!in.ok() || status != kNfsOk) break;
    const bool read = op == static_cast<std::uint32_t>(NfsOp::kRead);
    if (read || op == static_cast<std::uint32_t>(NfsOp::kReadlink)) {  // req: RFC8267-6.1-3 RFC8267-6.1-4
      if (read) in.skip(4);                                            // eof
      --items_left_;
      return scan_.describe();
    }
    fine = skip_results(in, op);  // req: RFC8267-6.1-5
  }
  broke_off_ = broke_off_ || !fine;
  ops_left_ = 0;
  return std::nullopt;
}

// --- CREATE_SESSION

bool clamp_back_channel(MutBytes call, std::uint32_t limit) {
  const auto head = parse_nfs_call(call);
  if (!head || head->version != 4 || head->procedure != kV4CompoundProc) return false;
  ReadCursor in(ConstBytes(call).subspan(head->arguments_offset));
  const auto compound = read_compound_call(in);
  if (!compound) return false;
  for (std::uint32_t i = 0; i < compound->operations; ++i) {
    const auto op = in.be<std::uint32_t>();
    if (!in.ok()) return false;
    if (op == static_cast<std::uint32_t>(NfsOp::kCreateSession)) {
      std::size_t at = 0;
      return find_back_channel(in, kBeforeBackChannelArguments, call.size(), at) && clamp_sizes(call, at, limit);
    }
    if (!skip_arguments(in, op)) return false;
  }
  return false;
}

}  // namespace iwarp::rpcrdma
