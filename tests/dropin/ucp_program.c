/* What programs of UCP, the upper half of UCX, ask of the verbs, with the data compared: tagged messages of all sizes, and remote writes and reads.
 *   ucp_program PORT             waits for the other
 *   ucp_program PORT ADDRESS     connects
 * It connects by address and port (a client and a server), as ucx_perftest does not. Exit status 0: all was right. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>

#include "pattern.h"

enum { kMost = (1 << 20) + 3, kRounds = 20, kPatience = 30 /* seconds */, kTag = 7 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h endpoint;
static int connects, failed;
static unsigned char *memory, *out, *in, *shared;
static size_t octets_received;

static void fail(const char *what, ucs_status_t why) {
  fprintf(stderr, "%s: %s: %s\n", connects ? "client" : "server", what, ucs_status_string(why));
  exit(1);
}

static void must(ucs_status_t status, const char *what) {
  if (status != UCS_OK) fail(what, status);
}

static void check(int right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s: %s: wrong data\n", connects ? "client" : "server", what);
  exit(1);
}

static time_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec;
}

static void await(void *request, const char *what) {
  if (request == NULL) return; /* at once */
  if (UCS_PTR_IS_ERR(request)) fail(what, UCS_PTR_STATUS(request));
  const time_t until = now() + kPatience;
  ucs_status_t status;
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
    ucp_worker_progress(worker);
    if (now() > until) fail(what, UCS_ERR_TIMED_OUT);
  }
  ucp_request_free(request);
  must(status, what);
}

static void send_all(const unsigned char *from, size_t octets) {
  const ucp_request_param_t how = {.op_attr_mask = 0};
  await(ucp_tag_send_nbx(endpoint, from, octets, kTag, &how), "ucp_tag_send_nbx");
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user) {
  (void)request, (void)user;
  octets_received = status == UCS_OK ? info->length : 0;
}

/* By the callback alone: UCX 1.13 does not tell the length of what is there already. */
static void receive_all(unsigned char *to, size_t octets) {
  const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL, .cb = {.recv = on_received}};
  await(ucp_tag_recv_nbx(worker, to, octets, kTag, UINT64_MAX, &how), "ucp_tag_recv_nbx");
  check(octets_received == octets, "length of a message");
}

static void on_error(void *user, ucp_ep_h which, ucs_status_t status) {
  (void)user, (void)which, (void)status;
  failed = 1; /* which the peer's end is as well */
}

static void on_request(ucp_conn_request_h request, void *to) { *(ucp_conn_request_h *)to = request; }

static void reach(struct sockaddr_in *at) {
  ucp_ep_params_t asked = {.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                           .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                           .err_handler = {.cb = on_error}};
  if (connects) {
    asked.field_mask |= UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    asked.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    asked.sockaddr.addr = (struct sockaddr *)at;
    asked.sockaddr.addrlen = sizeof *at;
    must(ucp_ep_create(worker, &asked, &endpoint), "ucp_ep_create");
    return;
  }
  ucp_conn_request_h request = NULL;
  const ucp_listener_params_t told = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                      .sockaddr = {.addr = (struct sockaddr *)at, .addrlen = sizeof *at},
                                      .conn_handler = {.cb = on_request, .arg = &request}};
  ucp_listener_h listener;
  must(ucp_listener_create(worker, &told, &listener), "ucp_listener_create");
  const time_t until = now() + kPatience;
  while (request == NULL) {
    ucp_worker_progress(worker);
    if (now() > until) fail("waiting for the client", UCS_ERR_TIMED_OUT);
  }
  asked.field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
  asked.conn_request = request;
  must(ucp_ep_create(worker, &asked, &endpoint), "ucp_ep_create");
  ucp_listener_destroy(listener);
}

static void ping_pong(void) {
  static const size_t kSizes[] = {1, 8, 64, 2048, 12288, 65536, 1 << 20, kMost};
  for (size_t which = 0; which < sizeof kSizes / sizeof *kSizes; ++which) {
    const size_t size = kSizes[which];
    for (int round = 0; round < kRounds; ++round) {
      memset(in, 0, size);
      if (connects) {
        fill(out, size, round);
        send_all(out, size);
        receive_all(in, size);
        check(filled(in, size, round + 1), "pong");
      } else {
        receive_all(in, size);
        check(filled(in, size, round), "ping");
        fill(out, size, round + 1);
        send_all(out, size);
      }
    }
  }
}

/* Each gives the other the key of its memory; then the client writes and reads the server's. */
static void write_and_read(void) {
  const ucp_mem_map_params_t region = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH, .address = shared, .length = kMost};
  ucp_mem_h mapped;
  must(ucp_mem_map(context, &region, &mapped), "ucp_mem_map");
  void *key;
  size_t octets;
  must(ucp_rkey_pack(context, mapped, &key, &octets), "ucp_rkey_pack");
  struct {
    uint64_t address, octets;
    unsigned char key[1024];
  } mine = {.address = (uintptr_t)shared, .octets = octets}, other;
  check(octets <= sizeof mine.key, "length of a key");
  memcpy(mine.key, key, octets);
  ucp_rkey_buffer_release(key);
  if (connects) send_all((unsigned char *)&mine, sizeof mine);
  receive_all((unsigned char *)&other, sizeof other);
  if (!connects) send_all((unsigned char *)&mine, sizeof mine);
  ucp_rkey_h remote;
  must(ucp_ep_rkey_unpack(endpoint, other.key, &remote), "ucp_ep_rkey_unpack");
  static const size_t kSizes[] = {1, 4096, 65536, kMost};
  const ucp_request_param_t how = {.op_attr_mask = 0};
  unsigned char step = 0;
  for (size_t which = 0; which < sizeof kSizes / sizeof *kSizes; ++which) {
    const size_t size = kSizes[which];
    for (int round = 0; round < 5; ++round) {
      if (connects) {
        fill(out, size, round);
        await(ucp_put_nbx(endpoint, out, size, other.address, remote, &how), "ucp_put_nbx");
        await(ucp_ep_flush_nbx(endpoint, &how), "ucp_ep_flush_nbx");
        send_all(&step, 1);
        receive_all(&step, 1);
        memset(in, 0, size);
        await(ucp_get_nbx(endpoint, in, size, other.address, remote, &how), "ucp_get_nbx");
        check(filled(in, size, round + 100), "ucp_get_nbx");
        send_all(&step, 1);
      } else {
        receive_all(&step, 1);
        check(filled(shared, size, round), "ucp_put_nbx");
        fill(shared, size, round + 100);
        send_all(&step, 1);
        receive_all(&step, 1);
      }
    }
  }
  ucp_rkey_destroy(remote);
  must(ucp_mem_unmap(context, mapped), "ucp_mem_unmap");
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: %s PORT [ADDRESS]\n", argv[0]);
    return 2;
  }
  connects = argc == 3;
  memory = calloc(3, kMost);
  if (memory == NULL) return 2;
  out = memory;
  in = memory + kMost;
  shared = memory + 2 * (size_t)kMost;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
  if (connects && inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) return 2;

  const ucp_params_t wanted = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA};
  ucp_config_t *configuration;
  must(ucp_config_read(NULL, NULL, &configuration), "ucp_config_read");
  must(ucp_init(&wanted, configuration, &context), "ucp_init");
  ucp_config_release(configuration);
  const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
  must(ucp_worker_create(context, &single, &worker), "ucp_worker_create");
  reach(&at);
  ping_pong();
  ucp_ep_print_info(endpoint, stdout); /* what it runs over */
  write_and_read();
  if (failed) fail("the connection", UCS_ERR_CONNECTION_RESET);
  if (connects) { /* from here on the other may close it */
    send_all(out, 1);
    receive_all(in, 1);
  } else {
    receive_all(in, 1);
    send_all(out, 1);
  }
  const ucp_request_param_t politely = {.op_attr_mask = 0};
  void *const closing = ucp_ep_close_nbx(endpoint, &politely);
  const time_t until = now() + kPatience;
  while (UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS && now() < until) ucp_worker_progress(worker);
  if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
  ucp_worker_destroy(worker);
  ucp_cleanup(context);
  free(memory);
  printf("right\n");
  return 0;
}
