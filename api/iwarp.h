// Everything that applications use, in namespace iwarp. docs/TUTORIAL.md shows how, docs/LIBRARY.md has the rules for
// lifetimes, threads, errors and cancellation.
//
// The layers below keep their own namespaces and headers for those who use one alone: iwarp::mpa, iwarp::stream,
// iwarp::trace. RPC-over-RDMA is in iwarp::rpcrdma, since it has words of its own for the same things (Completion).
// Connections here are over TCP; iwarp::llp has those over TCP or SCTP, by the same names.
#pragma once

#include "iwarp/base/bytes.h"
#include "iwarp/base/error.h"
#include "iwarp/base/error_code.h"
#include "iwarp/base/ids.h"
#include "iwarp/base/result.h"
#include "iwarp/base/wire.h"
#include "iwarp/cm/accept_over.h"
#include "iwarp/cm/completion_queue.h"
#include "iwarp/cm/connection.h"
#include "iwarp/cm/connector.h"
#include "iwarp/cm/engine.h"
#include "iwarp/cm/link.h"
#include "iwarp/cm/listener.h"
#include "iwarp/cm/tcp_connection.h"
#include "iwarp/cm/token.h"
#include "iwarp/enhanced/private_depths.h"
#include "iwarp/llp/lower_layer.h"
#include "iwarp/rpcrdma/requester.h"
#include "iwarp/rpcrdma/responder.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/rpcrdma/verbs_endpoint.h"
#include "iwarp/stream/profile.h"
#include "iwarp/verbs/async_event.h"
#include "iwarp/verbs/completion_channel.h"
#include "iwarp/verbs/memory_region.h"
#include "iwarp/verbs/queue_pair.h"
#include "iwarp/verbs/queue_pair_state.h"
#include "iwarp/verbs/shared_receive_queue.h"
#include "iwarp/version.h"

namespace iwarp {

// Connections.
using cm::AcceptOverOptions;
using cm::Connection;
using cm::ConnectOptions;
using cm::Connector;
using cm::ConnectRequest;
using cm::Counters;
using cm::Engine;
using cm::Link;
using cm::Listener;
using cm::ListenOptions;
using cm::SocketOptions;
using cm::TcpConnection;
using enhanced::Depths;
using llp::LowerLayer;
using mpa::FpduPolicy;
using mpa::Negotiated;
using mpa::Policy;
using rdmap::TerminateMessage;
using stream::Disconnected;
using stream::find_profile;
using stream::MpaOptions;
using stream::Profile;
using stream::profiles;
using StreamOptions = stream::Options;  // those, and of a queue pair: queue depths, time limits

// Memory.
using ddp::Access;
using ddp::StreamId;
using verbs::Context;
using verbs::MemoryRegion;
using verbs::ProtectionDomain;

// Work and its completion. This CompletionQueue belongs to an engine; verbs::CompletionQueue is the one without.
using cm::CompletionQueue;
using rdmap::AtomicOperands;
using rdmap::Extensions;
using verbs::AsyncEvent;
using verbs::AsyncEventType;
using verbs::Completion;
using verbs::CompletionChannel;
using verbs::QueuePair;
using verbs::QueuePairState;
using verbs::RecvWr;
using verbs::SendOp;
using verbs::SendWr;
using verbs::Sge;
using verbs::SgeList;
using verbs::SharedReceiveQueue;
using verbs::WcOp;

// Asynchronous operations and their tokens.
using cm::as_error;
using cm::async_accept_over;
using cm::async_connect;
using cm::async_connect_over;
using cm::async_poll;
using cm::async_poll_one;

}  // namespace iwarp
