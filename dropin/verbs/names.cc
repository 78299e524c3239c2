// Texts and numbers for what libibverbs enumerates.
#include <infiniband/verbs.h>

#include <array>

namespace {

struct Rate {
  ibv_rate rate;
  int multiple;  // of 2.5 Gbit/s, to the nearest
  int mbps;
};
constexpr std::array kRates = {
    Rate{IBV_RATE_2_5_GBPS, 1, 2500},     Rate{IBV_RATE_5_GBPS, 2, 5000},        Rate{IBV_RATE_10_GBPS, 4, 10000},
    Rate{IBV_RATE_14_GBPS, 6, 14062},     Rate{IBV_RATE_20_GBPS, 8, 20000},      Rate{IBV_RATE_25_GBPS, 10, 25781},
    Rate{IBV_RATE_28_GBPS, 11, 28125},    Rate{IBV_RATE_30_GBPS, 12, 30000},     Rate{IBV_RATE_40_GBPS, 16, 40000},
    Rate{IBV_RATE_50_GBPS, 20, 53125},    Rate{IBV_RATE_56_GBPS, 22, 56250},     Rate{IBV_RATE_60_GBPS, 24, 60000},
    Rate{IBV_RATE_80_GBPS, 32, 80000},    Rate{IBV_RATE_100_GBPS, 40, 103125},   Rate{IBV_RATE_112_GBPS, 45, 112500},
    Rate{IBV_RATE_120_GBPS, 48, 120000},  Rate{IBV_RATE_168_GBPS, 67, 168750},   Rate{IBV_RATE_200_GBPS, 80, 206250},
    Rate{IBV_RATE_300_GBPS, 120, 309375}, Rate{IBV_RATE_400_GBPS, 160, 425000},  Rate{IBV_RATE_600_GBPS, 240, 637500},
    Rate{IBV_RATE_800_GBPS, 320, 850000}, Rate{IBV_RATE_1200_GBPS, 480, 1275000}};

struct Text {
  int value;
  const char* text;
};

template <std::size_t N>
const char* find(const std::array<Text, N>& all, int value, const char* otherwise) {
  for (const Text& t : all) {
    if (t.value == value) return t.text;
  }
  return otherwise;
}

constexpr std::array kStatuses = {Text{IBV_WC_SUCCESS, "success"},
                                  Text{IBV_WC_LOC_LEN_ERR, "message longer than its receive"},
                                  Text{IBV_WC_LOC_QP_OP_ERR, "request not possible here"},
                                  Text{IBV_WC_LOC_EEC_OP_ERR, "local EE context"},
                                  Text{IBV_WC_LOC_PROT_ERR, "local memory not registered for that"},
                                  Text{IBV_WC_WR_FLUSH_ERR, "flushed: the connection ended first"},
                                  Text{IBV_WC_MW_BIND_ERR, "memory window not bound"},
                                  Text{IBV_WC_BAD_RESP_ERR, "the peer breaks the protocol"},
                                  Text{IBV_WC_LOC_ACCESS_ERR, "the peer accessed memory that it may not"},
                                  Text{IBV_WC_REM_INV_REQ_ERR, "the peer finds the request invalid"},
                                  Text{IBV_WC_REM_ACCESS_ERR, "the peer refuses access to its memory"},
                                  Text{IBV_WC_REM_OP_ERR, "the peer has ended the connection with an error"},
                                  Text{IBV_WC_RETRY_EXC_ERR, "connection lost"},
                                  Text{IBV_WC_RNR_RETRY_EXC_ERR, "no receive was posted in time"},
                                  Text{IBV_WC_LOC_RDD_VIOL_ERR, "local RDD violation"},
                                  Text{IBV_WC_REM_INV_RD_REQ_ERR, "invalid RD request at the peer"},
                                  Text{IBV_WC_REM_ABORT_ERR, "aborted by the peer"},
                                  Text{IBV_WC_INV_EECN_ERR, "EE context number"},
                                  Text{IBV_WC_INV_EEC_STATE_ERR, "EE context state"},
                                  Text{IBV_WC_FATAL_ERR, "fatal"},
                                  Text{IBV_WC_RESP_TIMEOUT_ERR, "no response in time"},
                                  Text{IBV_WC_GENERAL_ERR, "other error"},
                                  Text{IBV_WC_TM_ERR, "tag matching"},
                                  Text{IBV_WC_TM_RNDV_INCOMPLETE, "tag matching: rendezvous incomplete"}};

constexpr std::array kEvents = {Text{IBV_EVENT_CQ_ERR, "CQ error"},
                                Text{IBV_EVENT_QP_FATAL, "queue pair ended by an error"},
                                Text{IBV_EVENT_QP_REQ_ERR, "queue pair ended by an invalid request"},
                                Text{IBV_EVENT_QP_ACCESS_ERR, "queue pair ended by an access violation"},
                                Text{IBV_EVENT_COMM_EST, "connected"},
                                Text{IBV_EVENT_SQ_DRAINED, "send queue drained"},
                                Text{IBV_EVENT_PATH_MIG, "path migrated"},
                                Text{IBV_EVENT_PATH_MIG_ERR, "path migration failed"},
                                Text{IBV_EVENT_DEVICE_FATAL, "device failed"},
                                Text{IBV_EVENT_PORT_ACTIVE, "port active"},
                                Text{IBV_EVENT_PORT_ERR, "port error"},
                                Text{IBV_EVENT_LID_CHANGE, "LID changed"},
                                Text{IBV_EVENT_PKEY_CHANGE, "P_Key changed"},
                                Text{IBV_EVENT_SM_CHANGE, "subnet manager changed"},
                                Text{IBV_EVENT_SRQ_ERR, "SRQ failed"},
                                Text{IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ below its limit"},
                                Text{IBV_EVENT_QP_LAST_WQE_REACHED, "last receive of the SRQ taken"},
                                Text{IBV_EVENT_CLIENT_REREGISTER, "clients register anew"},
                                Text{IBV_EVENT_GID_CHANGE, "GID table changed"},
                                Text{IBV_EVENT_WQ_FATAL, "WQ failed"}};

constexpr std::array kNodes = {Text{IBV_NODE_CA, "InfiniBand adapter"},
                               Text{IBV_NODE_SWITCH, "InfiniBand switch"},
                               Text{IBV_NODE_ROUTER, "InfiniBand router"},
                               Text{IBV_NODE_RNIC, "RNIC (iWARP)"},
                               Text{IBV_NODE_USNIC, "usNIC"},
                               Text{IBV_NODE_USNIC_UDP, "usNIC UDP"},
                               Text{IBV_NODE_UNSPECIFIED, "unspecified"}};

constexpr std::array kPorts = {Text{IBV_PORT_NOP, "no change"}, Text{IBV_PORT_DOWN, "down"},
                               Text{IBV_PORT_INIT, "init"},     Text{IBV_PORT_ARMED, "armed"},
                               Text{IBV_PORT_ACTIVE, "active"}, Text{IBV_PORT_ACTIVE_DEFER, "active defer"}};

}  // namespace

extern "C" {

const char* ibv_wc_status_str(ibv_wc_status status) {
  return find(kStatuses, status, "unknown");
}

const char* ibv_event_type_str(ibv_event_type event) {
  return find(kEvents, event, "unknown");
}

const char* ibv_node_type_str(ibv_node_type type) {
  return find(kNodes, type, "unknown");
}

const char* ibv_port_state_str(ibv_port_state state) {
  return find(kPorts, state, "unknown");
}

int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& r : kRates) {
    if (r.rate == rate) return r.multiple;
  }
  return -1;
}

ibv_rate mult_to_ibv_rate(int mult) {
  for (const Rate& r : kRates) {
    if (r.multiple == mult) return r.rate;
  }
  return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& r : kRates) {
    if (r.rate == rate) return r.mbps;
  }
  return -1;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& r : kRates) {
    if (r.mbps == mbps) return r.rate;
  }
  return IBV_RATE_MAX;
}
}
