// The Connection Configuration Protocol of the draft of 2005 (draft-ietf-nfsv4-rpcrdma-01 section 6): before any other
// program is called on a connection, the client tells the server how long its Calls and Replies in line may be and how
// many RDMA Reads it takes, and hears what the server takes. Codec, the server's answer and what either end may do from
// then on, as values: no connection, no time. Off unless an endpoint is told to use it. Not thread-safe.
//
// Client: send call() as first message of the connection, alone, with an xid as for any Call; give the Reply to
// on_reply(); keep to terms() all the while. Server: give each Call to on_call() before it is dispatched; what it gives
// back is the Reply, to be sent in line; keep to terms(), of which those of the next message count.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

// The draft leaves the program number open. This one is of the range that RFC 5531 s8.1 leaves to users; both ends must
// have the same. req: D2005-12-1
inline constexpr std::uint32_t kConfigProgram = 0x20050201;
inline constexpr std::uint32_t kConfigVersion = 1;    // of the program. req: D2005-6.2-12
inline constexpr std::uint32_t kConfigProcedure = 1;  // CONF_RDMA. req: D2005-6.2-12

// config_rdma_req: maxcall_sendsize | maxreply_sendsize | maxrdmaread. req: D2005-6.2-10
struct ConfigRequest {
  std::uint32_t max_call_bytes = kDefaultInlineBytes;   // the longest Call that the client sends in line
  std::uint32_t max_reply_bytes = kDefaultInlineBytes;  // the longest Reply that it takes in line
  std::uint32_t max_rdma_reads = 0;                     // how many RDMA Reads of the server it takes at a time (IRD)

  static constexpr std::size_t kSize = 12;
  // Arguments of the procedure: kSize octets, no more, no less; else Errc::kMalformedRpc. Any values.
  [[nodiscard]] static Result<ConfigRequest> parse(ConstBytes arguments);
  // Those arguments.
  [[nodiscard]] std::array<std::byte, kSize> encode() const;
  friend constexpr bool operator==(const ConfigRequest&, const ConfigRequest&) = default;
};

// config_rdma_reply: maxcall_sendsize | align | maxrdmaread. req: D2005-6.2-11
struct ConfigReply {
  std::uint32_t max_call_bytes = kDefaultInlineBytes;  // the longest Call that the server takes in line
  std::uint32_t align = 0;           // where opaque data of a Call should begin (rdma_align of RDMA_MSGP); 0: anywhere
  std::uint32_t max_rdma_reads = 0;  // how many RDMA Reads of the client it takes at a time (IRD)

  static constexpr std::size_t kSize = 12;
  // Results of the procedure, as above.
  [[nodiscard]] static Result<ConfigReply> parse(ConstBytes results);
  // Those results.
  [[nodiscard]] std::array<std::byte, kSize> encode() const;
  friend constexpr bool operator==(const ConfigReply&, const ConfigReply&) = default;
};

// What an end can do.
struct ConfigLimits {
  // Octets of the longest Send: of the client's Calls, or of those that the server takes. Values below
  // kDefaultInlineBytes count as that.
  std::uint32_t call_bytes = 4096;
  // Of Replies: what the client takes, or the longest that the server sends.
  std::uint32_t reply_bytes = 4096;
  std::uint32_t incoming_reads = 1;  // IRD. 0: the peer can read nothing of this end
  std::uint32_t outgoing_reads = 1;  // ORD. 0: this end can issue no RDMA Read
  std::uint32_t align = 0;           // of a server: see good_alignment(); what is none is offered as 0
};

// What holds on a connection at present. The default: what an end that has not been configured must be content with.
struct ConfigTerms {
  // Octets of the longest Call and Reply in line, transport header included. req: D2005-6.1-2
  std::uint32_t call_bytes = kDefaultInlineBytes;
  std::uint32_t reply_bytes = kDefaultInlineBytes;
  // RDMA Reads that this end may have under way at a time.
  std::uint32_t reads = 0;
  // Read chunks may be sent: Calls of the client, Replies of the server. req: D2005-6.2-8
  bool read_chunks = false;
  // The client: where opaque data of a Call should begin; 0: no RDMA_MSGP.
  std::uint32_t align = 0;
  // One message at a time, whatever the credits say. req: D2005-6.1-2
  bool alone = true;

  friend constexpr bool operator==(const ConfigTerms&, const ConfigTerms&) = default;
};

// Receives of this many octets hold any message of `announced` octets, also if the peer does not count the transport
// header: the draft does not say. Senders count it, which is right for both.
[[nodiscard]] constexpr std::size_t config_receive_bytes(std::uint32_t announced) {
  constexpr std::size_t kHeaderRoom = 128;  // an RDMA_MSGP with a Read chunk, a Write chunk and a Reply chunk
  return std::size_t{announced} + kHeaderRoom;
}

// What an end with Receives of so many octets announces.
[[nodiscard]] constexpr std::uint32_t config_announced_bytes(std::uint32_t receive_bytes) {
  const auto room = static_cast<std::uint32_t>(config_receive_bytes(0));
  return receive_bytes > kDefaultInlineBytes + room ? receive_bytes - room : kDefaultInlineBytes;
}

// Whether data may be padded to this: a power of two, more than the 4 of XDR, at most 64 KiB. Nothing else is worth the
// octets, whatever a peer recommends.
inline constexpr std::uint32_t kMaxAlignment = 65536;
[[nodiscard]] constexpr bool good_alignment(std::uint32_t align) {
  return align > 4 && align <= kMaxAlignment && (align & (align - 1)) == 0;
}

// The terms of either end, once `request` was answered with `reply`. Errc::kMalformedRpc: a size below the 1024 octets
// that section 6.1 takes for granted; nothing sensible can follow.
[[nodiscard]] Result<ConfigTerms> client_terms(const ConfigLimits& own, const ConfigReply& reply);
[[nodiscard]] Result<ConfigTerms> server_terms(const ConfigLimits& own, const ConfigRequest& request);
// What a server answers: its own limits, whether they are more or less than what the client asks for.
[[nodiscard]] ConfigReply config_answer(const ConfigLimits& own);

// An RPC message of at most kCapacity octets.
class ConfigMessage {
 public:
  static constexpr std::size_t kCapacity = 52;  // the Call: a head with AUTH_NONE, and its arguments

  ConfigMessage() = default;
  explicit ConfigMessage(ConstBytes octets);  // at most kCapacity
  // Valid as long as this object.
  [[nodiscard]] ConstBytes bytes() const { return ConstBytes(octets_).first(size_); }

 private:
  std::array<std::byte, kCapacity> octets_{};
  std::size_t size_ = 0;
};

// The client's end of one connection.
class ConfigClient {
 public:
  enum class State : std::uint8_t {
    kUnasked,     // nothing was sent yet: call() has to be the first message
    kAsking,      // its Reply is outstanding: nothing else may be sent
    kConfigured,  // the server's limits are known
    kRefused,     // the server does not know the program: 1024 octets, no Read chunks; credits count as ever
    kFailed,      // the answer makes no sense: close the connection
  };
  explicit ConfigClient(const ConfigLimits& own, std::uint32_t program = kConfigProgram)
      : own_(own), program_(program) {}

  [[nodiscard]] State state() const { return state_; }
  // Whether Calls of other programs may be sent. req: D2005-6.1-1
  [[nodiscard]] bool ready() const { return state_ == State::kConfigured || state_ == State::kRefused; }
  // The Call. Precondition: kUnasked.
  [[nodiscard]] ConfigMessage call(std::uint32_t xid);
  // The RPC message that answers it. An error: see kFailed. Replies with another xid are not ours:
  // Errc::kInvalidArgument, and nothing changes. Precondition: kAsking.
  [[nodiscard]] Result<void> on_reply(ConstBytes reply);
  // No Reply comes: the server has answered with RDMA_ERROR. As if it did not know the program. Precondition: kAsking.
  void on_refused();
  [[nodiscard]] const ConfigTerms& terms() const { return terms_; }
  // What the server has answered, where kConfigured.
  [[nodiscard]] const ConfigReply& answer() const { return answer_; }

 private:
  ConfigLimits own_;
  std::uint32_t program_;
  std::uint32_t xid_ = 0;
  State state_ = State::kUnasked;
  ConfigTerms terms_{};
  ConfigReply answer_{};
};

// The server's end of one connection.
class ConfigServer {
 public:
  explicit ConfigServer(const ConfigLimits& own, std::uint32_t program = kConfigProgram)
      : own_(own), program_(program) {}

  // A whole Call that was received. Its Reply, when it is for CONFIG_RDMA; nullopt: it is for somebody else, and any
  // configuration comes too late from then on.
  [[nodiscard]] std::optional<ConfigMessage> on_call(ConstBytes call);
  [[nodiscard]] bool configured() const { return configured_; }
  [[nodiscard]] const ConfigTerms& terms() const { return terms_; }

 private:
  [[nodiscard]] ConfigMessage answer(const RpcCall& head, ConstBytes arguments);

  ConfigLimits own_;
  std::uint32_t program_;
  bool configured_ = false;
  bool in_use_ = false;  // another program was called
  ConfigTerms terms_{};
};

}  // namespace iwarp::rpcrdma
