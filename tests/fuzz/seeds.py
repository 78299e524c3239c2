#!/usr/bin/env python3
"""tests/fuzz/seeds.py writes the hand-made seeds of the fuzz corpora (tests/fuzz/corpus/<target>/<readable name>).

They come from the recorded vectors in tests/vectors and from the little languages of the targets, whose encoding each target's
source describes. Files with a hash for a name are the fuzzer's own (scripts/fuzz --merge) and not touched.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / 'fuzz' / 'corpus'
REQUEST_KEY, REPLY_KEY = b'MPA ID Req Frame', b'MPA ID Rep Frame'


def write(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(bytes(content))


def turns(name):
    """The recorded TCP segments of one connection: (from client, octets)."""
    for line in (ROOT / 'vectors' / 'stream' / f'{name}.hex').read_text().splitlines():
        if line[:1] in '<>':
            yield line[0] == '>', bytes.fromhex(line[2:])


def marked(ulpdus):
    """FPDUs of them from the first octet of Full Operation on, with Markers, CRC off."""
    out = b''
    for ulpdu in ulpdus:
        start = len(out) + (4 if len(out) % 512 == 0 else 0)
        plain = len(ulpdu).to_bytes(2, 'big') + ulpdu + bytes(-(2 + len(ulpdu)) % 4 + 4)
        for word in range(0, len(plain), 4):
            if len(out) % 512 == 0:
                out += max(len(out) - start, 0).to_bytes(4, 'big')
            out += plain[word:word + 4]
    return out


def messages():
    """Named RPC-over-RDMA messages."""
    out = {}
    for file in sorted((ROOT / 'vectors' / 'rpcrdma').glob('*.hex')):
        name = None
        for line in file.read_text().splitlines():
            line = line.split('#')[0]
            if heading := re.match(r'\[(.*)\]', line):
                name = heading[1]
                out[name] = b''
            elif name:
                out[name] += bytes.fromhex(re.sub(r'[|:]', '', line))
    return out


def startup():
    """role and policy, two octets; the Initiator's private data | operations: 0 raw octets, 2 send, 3 decide, 4 end, 5 time."""
    responder, initiator = b'\x01\x00', b'\x00\x00\x00'
    for name in ('siw-rping', 'siw-p2p-rping', 'siw-crc-rping'):
        request, reply = [octets for _, octets in turns(name)][:2]
        raw = lambda frame: bytes([0, len(frame)]) + frame
        write('startup', f'{name}-request-accepted', responder + raw(request) + b'\x03\x00\x00' + b'\x02\xff')
        write('startup', f'{name}-request-rejected', responder + raw(request) + b'\x03\x01\x03why' + b'\x02\xff')
        write('startup', f'{name}-reply', initiator + b'\x02\xff' + raw(reply))
    write('startup', 'request-with-octets-behind', responder + b'\x00\x15' + REQUEST_KEY + b'\x40\x01\x00\x00\x00')
    write('startup', 'reply-to-responder', responder + b'\x00\x14' + REPLY_KEY + b'\x40\x01\x00\x00')
    write('startup', 'no-reply', initiator + b'\x02\xff' + b'\x05\xff')
    write('startup', 'reset-before-reply', initiator + b'\x02\xff' + b'\x04\x01')


def session_control():
    """0 | limit of Private Data, two octets | a message; or 1 | budget | operations: distance from the one due, two octets | octets behind."""
    limit = (512).to_bytes(2, 'big')
    for name, octets in (('initiate', '0000 0001 0102'), ('accept', '0000 0002'), ('reject', '0000 0003 aa'), ('terminate', '0001 0004'),
                         ('enhanced-initiate', '0000 0005 8020 c010 0102'), ('enhanced-accept', '0000 0006 c001 4002'),
                         ('enhanced-reject', '0000 0007 8000 8000'), ('enhanced-reject-without-data', '0000 0007'),
                         ('experimental', '0000 ffff'), ('no-room-for-enhanced-data', '0000 0005 80')):
        write('session_control', name, b'\0' + limit + bytes.fromhex(octets))
    write('session_control', 'longest', b'\0' + limit + b'\0\0\0\x01' + bytes(512))
    write('session_control', 'too-long', b'\0' + limit + b'\0\0\0\x01' + bytes(513))
    early = lambda *distances: b''.join(d.to_bytes(2, 'big') + b'\3' for d in distances)
    write('session_control', 'window-reversed', b'\1\xff' + early(4, 3, 2, 1, 0))
    write('session_control', 'window-duplicates', b'\1\xff' + early(1, 1, 0xffff, 0, 0xffff))
    write('session_control', 'window-too-far', b'\1\xff' + early(4095, 4096, 32768))
    write('session_control', 'window-no-budget', b'\1\2' + early(1, 2, 3, 4, 0))


def sctp_sessions():
    """which end, budget | operations: 0 segment, 2 control (code), 6 open, 7 accept, 8 reject, 9 terminate, 11 all arrived, 12 send, 13 time."""
    end, control = b'\0\xff', lambda code, far, data=b'': bytes([2, code, far, len(data)]) + data
    segment, accept, arrived, send = lambda far: bytes([0, far, 2, 0xc1, 0xc2]), b'\7\0\4\4', b'\x0b', b'\x0c'
    data = bytes.fromhex('8020c010')
    write('sctp_sessions', 'passive-accepts', end + control(1, 0) + accept + arrived + segment(0) + send + control(4, 0))
    write('sctp_sessions', 'passive-enhanced-rejects', end + control(5, 0, data) + b'\x08\0\1')
    write('sctp_sessions', 'active-enhanced', end + b'\6\0\0' + control(6, 0, data) + send + segment(0) + b'\x09' + control(4, 0))
    write('sctp_sessions', 'active-plain-early-segments', end + b'\6\1\0' + segment(2) + segment(1) + control(2, 0))
    write('sctp_sessions', 'passive-places-early-segments', b'\x40\xff' + control(1, 0) + accept + arrived + segment(3) + segment(1) +
          segment(2) + segment(0) + control(4, 3))
    write('sctp_sessions', 'active-withdraws', end + b'\6\1\0' + b'\x09' + arrived + control(2, 0) + control(4, 0))
    write('sctp_sessions', 'one-behind-the-other', end + (control(1, 0) + accept + arrived + b'\x09' + control(4, 0) + arrived +
                                                        bytes([2, 1, 0x80, 0])) * 2)
    write('sctp_sessions', 'answer-to-what-has-not-left', end + b'\x0e' + b'\6\1\0' + b'\x09' + control(2, 0) + b'\x0e' + arrived)
    write('sctp_sessions', 'time-and-loss', end + b'\6\1\0' + b'\x0d\x20' + b'\6\1\0' + b'\x0f\xff')


def early_placement():
    """flags, Receives, Reads | steps of 6 octets: what, from (2), octets (2), to | changes of 4 | the order, last ones first here."""
    def step(what, start, octets, to=0):
        return bytes([what]) + start.to_bytes(2, 'big') + octets.to_bytes(2, 'big') + bytes([to])

    def flags(steps, harms=0, disturbed=0):
        return bytes([disturbed + 2 * (steps - 1) + 16 * harms])

    writes = step(4, 0, 700, 20) + step(2, 300, 650) + step(4, 1000, 300, 110) + step(2, 1500, 20)
    backwards = b'\5\4\3\2\1\0'
    write('early_placement', 'writes-and-sends', flags(4) + b'\2\0' + writes + backwards)
    write('early_placement', 'reads-both-ways', flags(3) + b'\1\3' + step(4, 0, 400) + step(2, 1500, 60) + step(0, 0, 0) + backwards)
    write('early_placement', 'invalidates', flags(4) + b'\3\0' + step(4, 0, 200) + step(1, 200, 50) + step(2, 300, 70) + step(2, 500, 9) + backwards)
    write('early_placement', 'no-receive', flags(2) + b'\0\0' + step(4, 0, 900) + step(2, 5, 100) + backwards)
    write('early_placement', 'beyond-the-area', flags(2) + b'\1\0' + step(4, 0, 900, 240) + step(2, 5, 100) + backwards)
    write('early_placement', 'changed', flags(4, 1) + b'\2\0' + writes + b'\1\0\x40\0' + backwards)
    write('early_placement', 'cut', flags(4, 1) + b'\2\0' + writes + b'\2\0\0\xf0' + backwards)
    write('early_placement', 'comes-again', flags(4, 0, 1) + b'\2\0' + writes + b'\3\xe2\0' + backwards)
    write('early_placement', 'revoked', flags(4, 0, 1) + b'\2\0' + writes + b'\3\2\xe1' + backwards)


def sctp_packet():
    """0 the packet, 1 common header and chunks: type, octets, these."""
    chunk = lambda kind, value: bytes([kind, len(value)]) + value
    init = bytes(4) + b'\0\1\0\0' + b'\0\x40\0\x40' + bytes(4)
    write('sctp_packet', 'init', b'\1' + chunk(1, init + b'\xc0\0\0\4' + b'\0\5\0\x08\x7f\0\0\1'))
    write('sctp_packet', 'data', b'\1' + chunk(10, bytes(20)) + chunk(0, bytes(12) + b'data') + chunk(3, bytes(12)))
    write('sctp_packet', 'sack-with-gaps', b'\1' + chunk(3, bytes(8) + b'\0\1\0\2' + bytes(12)))
    write('sctp_packet', 'ends', b'\1' + chunk(11, b'') + chunk(4, b'\0\1\0\x08abcd') + chunk(7, bytes(4)) + chunk(8, b'') + chunk(9, b'\0\2\0\4') + chunk(6, b''))
    write('sctp_packet', 'extension', b'\1' + chunk(193, bytes(8)))
    write('sctp_packet', 'octets', b'\0' + bytes.fromhex('1c061c060000000000000000') + b'\x0e\0\0\4')


def fpdu_decoder():
    """flags (1 CRC on, 2 checked, 4 made FPDUs, 8 Markers) | the stream or ULPDUs."""
    for name, flags in (('siw-rping', 0), ('siw-crc-rping', 3)):
        stream = b''.join(octets for client, octets in list(turns(name))[2:] if client)
        write('fpdu_decoder', f'{name}-client', bytes([flags]) + stream)
    write('fpdu_decoder', 'made', b'\x05\x00\x01a\x02ab\x03abc\x04abcd\x12' + bytes(18))
    write('fpdu_decoder', 'made-markers', b'\x0d' + b''.join(bytes([n]) + bytes(n) for n in (10, 200, 255, 255, 255, 0, 1, 255, 90)))
    write('fpdu_decoder', 'longest-incomplete', b'\x00\xff\xff' + bytes(100))
    write('fpdu_decoder', 'bad-crc', b'\x03\x00\x02ab\x00\x00\x00\x00')


def rpcrdma():
    """Headers as recorded; the walkers get the Call and Reply that belong together."""
    named = messages()
    for name, content in named.items():
        if not name.endswith('-payload'):
            write('rpcrdma_header', name, bytes(3) + content)
    for name in (n for n in named if n.endswith('-call')):
        call = named[name][28:] if name.startswith('null') else named[name]
        # The RPC message starts with the xid of its header, once more.
        call = named[name][named[name].index(named[name][:4], 4):] if named[name].count(named[name][:4]) > 1 else call
        reply = named.get(name[:-5] + '-payload') or named.get(name[:-5] + '-reply', b'')
        if reply.count(reply[:4]) > 1:
            reply = reply[reply.index(reply[:4], 4):]
        write('nfs_binding', name[:-5], b'\x00\x00' + len(call).to_bytes(2, 'big') + call + reply)
    error = (7).to_bytes(4, 'big') + (1).to_bytes(4, 'big') + (8).to_bytes(4, 'big') + (4).to_bytes(4, 'big')
    write('rpcrdma_header', 'err-chunk', bytes(3) + error + (2).to_bytes(4, 'big'))
    write('rpcrdma_header', 'err-vers', bytes(3) + error + b''.join(n.to_bytes(4, 'big') for n in (1, 1, 1)))
    for name, dialect, words in (('version-2-msg', 0x80, '00000012 00000002 00000020 00000000 00000000 00000000 00000000'),
                                 ('version-2-option', 0x80, '00000012 00000002 00000020 00000005 00000007 00000003 aabbcc00'),
                                 ('version-2-inval-option', 0x80, '00000012 00000002 00000020 00000004 00000003'),
                                 ('msgp', 0x40, '00000012 00000001 00000020 00000002 00000200 00000100 00000000 00000000 00000000'),
                                 ('done', 0x40, '00000012 00000001 00000020 00000003')):
        write('rpcrdma_header', name, bytes([0, 0, dialect]) + bytes.fromhex(words))
    write('rpcrdma_header', 'private-data', bytes(3) + bytes.fromhex('f6ab0e1801010303'))


def record_reader():
    """largest record, read-ahead, empty fragments | the stream."""
    def mark(content, last=True):
        return (len(content) | (0x80000000 if last else 0)).to_bytes(4, 'big') + content
    head = b'\x01\x00\x40\x03'
    write('record_reader', 'one-record', head + mark(bytes(40)))
    write('record_reader', 'fragments', head + mark(b'abc', False) + mark(bytes(90), False) + mark(b'x'))
    write('record_reader', 'many-records', head + b''.join(mark(bytes(n)) for n in range(8, 30, 3)))
    write('record_reader', 'too-long', head + b'\xff\xff\xff\xff')
    write('record_reader', 'empty-fragments', head + mark(b'', False) * 4)


def stream():
    """starting state, options | operations; a PDU (0) is kind, shape, length (2), target..., how to send."""
    starts = ('reply-unsent', 'awaiting-reply', 'responder', 'initiator', 'reads-outstanding', 'reads-inbound',
              'mid-message', 'draining', 'fin-wait', 'terminating')
    pdu = lambda kind, length, target=b'': bytes([0, kind, 0]) + length.to_bytes(2, 'big') + target + b'\x00'
    write_small, write_large = pdu(0, 100, b'\x00\x08'), pdu(0, 9000, b'\x00\x08')
    send, send_part = pdu(3, 50), pdu(11, 20)
    send_invalidate = pdu(4, 10, b'\x03\x00')
    read_request = bytes([0, 1, 0, 0, 200, 0, 4, 0, 0, 0x12, 0x34, 0, 0, 0])
    terminate = bytes([0, 7, 0, 0, 8]) + bytes.fromhex('1203600000000000') + b'\x00'
    answer, rest, drain, fin = b'\x02\xff\xff', b'\x04', b'\x08', b'\x0b\x01'
    post_recv, post_send = b'\x05\x04\x01\x01\x00\x03\xe8', b'\x05\x00\x01\x06\x00\x03\xe8'
    # What is still to arrive first: the Reply, or the end of a large FPDU. Elsewhere it would begin an FPDU that never ends.
    first = lambda number: rest if number in (0, 1, 6) else b''
    for number, name in enumerate(starts):
        for crc, options in (('crc', 0), ('no-crc', 1)):
            begin = bytes([number, options])
            write('stream', f'{name}-{crc}-transfer', begin + first(number) + post_recv + write_small + send_part + send + write_large +
                  read_request + drain + post_send + drain + answer * 3 + send_invalidate + fin)
            write('stream', f'{name}-{crc}-terminated', begin + first(number) + post_send + terminate + drain + b'\x0d\x10' + fin)
            write('stream', f'{name}-{crc}-timeout', begin + drain + b'\x0a' + drain + b'\x09\x00')
    lose_recv = b'\x05\x81'
    for number in (2, 3, 6, 7, 8):
        write('stream', f'{starts[number]}-shared', bytes([number, 16]) + first(number) + post_recv * 2 + send_part + lose_recv + send * 6 + drain)
    # Options + 32: RFC 7306. A PDU of it has the kind + 128; a request of it the kind + 16, and behind the rest what it becomes.
    immediate, immediate_solicited = b'\x00\x80\x00\x00\x00\x00\x00', b'\x00\x81\x00\x00\x00\x00\x00'
    atomic = lambda code, where=8, operands=b'\x05\x00': bytes([0, 0x82, 0, 0, 0, 0, where, code, 7, 0]) + operands + b'\x00'
    fetch_add, cmp_swap = atomic(0), atomic(2, operands=b'\x05\x05' + bytes(7) + b'\xff\x0f')
    stray_response = b'\x00\x83\x00\x00\x00\x09\x00'
    remote = bytes(6)  # STag and offset
    post_immediate, post_immediate_solicited = b'\x05\x14\x00\x00', b'\x05\x50\x00\x00'
    post_write_immediate = b'\x05\x16\x01\x06\x00\x03\xe8' + remote + b'\x01'
    post_fetch_add, post_cmp_swap = (b'\x05\x16\x00' + remote + bytes([op, 5, 0, 1, 8]) for op in (2, 3))
    posts = post_immediate + post_immediate_solicited + post_write_immediate + post_fetch_add + post_cmp_swap
    for number in (2, 3, 4, 5, 6):
        for kind, options in (('crc', 32), ('no-crc', 33), ('shared', 48), ('peer-to-peer', 34)):
            begin = bytes([number, options]) + first(number)
            write('stream', f'{starts[number]}-{kind}-rfc7306', begin + immediate + immediate_solicited + fetch_add + cmp_swap +
                  drain + posts + drain + answer * 6 + drain + fin)
    # Options + 64: Markers in both directions. How a PDU is sent: 192 and more damages its first Marker, 224 and more leaves a part
    # for later.
    how = lambda pdu, octets: pdu[:-1] + octets
    for number, name in enumerate(starts):
        for kind, options in (('crc', 64), ('no-crc', 65), ('crc-small-reads', 68), ('no-crc-small-reads', 73), ('rfc7306', 96), ('shared', 80)):
            begin = bytes([number, options])
            extension = immediate + fetch_add + posts if options & 32 else b''
            write('stream', f'{name}-markers-{kind}', begin + (drain if number == 0 else first(number)) + post_recv + write_small + send_part + send + write_large +
                  extension + read_request + drain + post_send + drain + answer * 6 + how(write_large, b'\xe0\x02\x0c') + rest +
                  how(write_large, b'\xe0\x01\xfe') + post_send + b'\x07\x30' + rest + drain + send_invalidate + fin)
    for kind, options in (('crc', b'\x40'), ('no-crc', b'\x41')):
        begin = b'\x03' + options
        for octet in range(4):
            write('stream', f'marker-octet-{octet}-{kind}', begin + write_small + how(write_large, bytes([0xc4 + octet])) + drain + fin)
        write('stream', f'marker-cut-{kind}', begin + write_small * 3 + how(write_large, b'\xe0\x00\x72') + drain + rest + send + fin)
        write('stream', f'marker-alone-{kind}', begin + b'\x03\x04' + bytes(4) + b'\x0b\x01')
        write('stream', f'marker-left-out-{kind}', begin + b'\x03\x08' + bytes(8) + send + drain + fin)
        read_much = bytes([0, 1, 0, 0x4e, 0x20, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0])
        write('stream', f'marked-read-of-much-{kind}', begin + read_much + b'\x07\xff' * 3 + drain + fin)
    write('stream', 'reads-and-atomics-no-crc', b'\x03\x21' + read_request + fetch_add + read_request + cmp_swap + drain + fin)
    write('stream', 'atomic-misaligned', b'\x03\x20' + atomic(0, 9)[:9] + b'\x01\x05\x00\x00' + drain)
    write('stream', 'atomic-at-the-end', b'\x03\x20' + atomic(0, 184) + atomic(0, 192) + drain)
    write('stream', 'atomic-to-constant-memory', b'\x03\x20' + atomic(0)[:5] + b'\x02' + atomic(0)[6:] + drain)
    write('stream', 'atomic-unknown-code', b'\x03\x20' + atomic(0xf1) + drain)
    write('stream', 'atomic-swap', b'\x03\x20' + atomic(2, operands=b'\x05\x04\x00') + drain)
    write('stream', 'atomic-sink-revoked', b'\x03\x20' + b'\x0c\x01' + post_fetch_add + drain)
    write('stream', 'immediate-of-5-octets', b'\x03\x20' + b'\x00\x80\x00\x00\x00\x01\x05\x00' + drain)
    write('stream', 'atomic-response-unasked', b'\x03\x20' + stray_response + drain)
    write('stream', 'atomics-not-known', b'\x03\x00' + b'\x00\x03\x02\x00\x34\x4a\x00' + drain)
    write('stream', 'revoked-before-atomic', b'\x03\x20' + fetch_add + b'\x0c\x00' + drain)
    write('stream', 'revoked-mid-message', b'\x06\x01' + b'\x0c\x00' + rest + drain)
    write('stream', 'revoked-while-sending', b'\x03\x00' + post_send * 2 + b'\x07\x20' + b'\x0c\x06' + drain)


def rpc_reassembly():
    """role, options | operations of rpc_responder.cc and rpc_requester.cc, whose messages are shape, counts, kind, ..."""
    steps = b'\xf4\x00'  # 16 steps of the Responder's endpoint; each operation ends with an octet: keep messages or not
    responder = b'\x00\x00\x02\x00'
    message = lambda xid, header, kind, n: bytes([xid << 4]) + header + b'\x00' + bytes([kind, 0]) + n.to_bytes(2, 'big') + b'\x00'
    reply = lambda kind, n: bytes([6, kind, 0]) + n.to_bytes(2, 'big') + b'\x00' + steps
    write('rpc_reassembly', 'responder-read-in-line', responder + message(1, b'\x00\x00', 2, 600) + reply(1, 600))
    write('rpc_reassembly', 'responder-read-write-chunk',
          responder + message(1, b'\x00\x04\x01\x00\x50', 2, 600) + reply(1, 600))
    write('rpc_reassembly', 'responder-write-read-chunk',
          responder + message(1, b'\x00\x01\x17\x00\x28', 3, 40) + steps + reply(0, 0))
    write('rpc_reassembly', 'responder-long-call', responder + message(1, b'\x0a\x01\x00\x50', 4, 4500) + steps + reply(0, 0))
    write('rpc_reassembly', 'responder-reply-chunk', responder + message(1, b'\x00\x50\x00\x50', 5, 0) + reply(1, 4900))
    write('rpc_reassembly', 'responder-backward', b'\x00\x04\x02\x00' + bytes([0x1a, 0, 0, 0, 0, 0]) + steps +
          message(1, b'\x00\x00', 0, 0)[:3] + b'\xff\x00\x00\x00\x00\x00')
    requester = b'\x01\x00\x00'
    call = lambda xid, kind, n: bytes([xid << 4, kind, 0]) + n.to_bytes(2, 'big')
    run = b'\xf7'
    write('rpc_reassembly', 'requester-in-line', requester + call(1, 2, 600) + run + b'\x13\x00\x01\x00\x02\x58\x08')
    write('rpc_reassembly', 'requester-reply-chunk', requester + call(1, 2, 600) + run + b'\x13\x02\x01\x00\x13\x00\x08')
    write('rpc_reassembly', 'requester-long-call', requester + call(1, 4, 4900) + run + b'\x13\x08\x00\x00\x00\x00\x08')
    write('rpc_reassembly', 'requester-error', requester + call(1, 2, 600) + run + b'\x13\x01\x04\x00')
    asks = b'\x01\x00\x08'  # for version 2
    refused = b'\x13\x01\x14\x01'  # ERR_VERS, 1 to 1
    write('rpc_reassembly', 'requester-version-2', asks + call(1, 1, 0) * 2 + run + b'\x13\x00\x00\x00\x00\x00\x08' + call(2, 4, 3000) + run)
    write('rpc_reassembly', 'requester-version-1-after-all', asks + call(1, 1, 0) + run + refused + run + b'\x13\x00\x00\x00\x00\x00\x08' + call(2, 2, 600) + run)
    write('rpc_reassembly', 'requester-refused-twice', asks + call(1, 4, 4900) + run + refused + run + refused + call(2, 1, 0) + run)
    write('rpc_reassembly', 'requester-option', asks + call(1, 1, 0) + run + b'\x78\x30\x00\x03abc\x00\x00\x00\x07' + run)
    write('rpc_reassembly', 'requester-write-chunks', b'\x01\x00\x20' + call(1, 2, 4999) + run + b'\x13\x10\x02\x00\x13\x87\x08\x13\x87')
    write('rpc_reassembly', 'responder-version-2', b'\x00\x00\x12\x00' + message(1, b'\x10\x00', 1, 0) + reply(0, 0) + message(2, b'\x10\x00', 2, 3000) + reply(1, 3000))
    write('rpc_reassembly', 'responder-option', b'\x00\x00\x12\x00' + b'\x10\x30\x00\x03abc\x00\x00\x00\x07\x00\x01\x00\x00\x00' + steps)
    write('rpc_reassembly', 'requester-backward', b'\x01\x04\x00' + b'\x18\x00\x00\x00\x00\x00\x00' + b'\x09\x00\x00\x00\x00' + run)


def capture():
    """NFS/RDMA port or not | operations: 0 handshake, 2 data (length, octets), 3 FIN; +0x80 from the server, 0x10... lost etc."""
    for name in ('siw-rping', 'siw-p2p-rping', 'siw-crc-rping'):
        def packets(fate=lambda number: 0):
            for number, (client, octets) in enumerate(turns(name)):
                yield bytes([2 | (0 if client else 0x80) | fate(number) << 4]) + len(octets).to_bytes(2, 'big') + octets
        fin = b'\x03\x83'
        write('capture', name, b'\x00\x00' + b''.join(packets()) + fin)
        write('capture', f'{name}-nfs-port', b'\x01\x00' + b''.join(packets()) + fin)
        write('capture', f'{name}-begun-too-late', b'\x00' + b''.join(list(packets())[3:]) + fin)
        for fate, damage in enumerate(('lost', 'held', 'twice', 'cut'), 1):
            damaged = b'\x05'.join(packets(lambda number, fate=fate: fate if number % 4 == 3 else 0))
            write('capture', f'{name}-{damage}', b'\x00\x00' + damaged + fin)
    # SCTP: 7 | chunks less one | each INIT 0 (with the indication), INIT ACK 1, DDP segment 3, control 5; +8 for another stream, +0x80 for flags.
    chunk = lambda what, octets, client=True, fate=0: bytes([(7 if client else 0x87) | fate << 4, 0, what, len(octets)]) + octets
    opened = b'\x07\0\0\1' + b'\x87\0\1'
    initiate, accept = bytes.fromhex('0000 0005 8020c010 0102'), bytes.fromhex('0000 0006 80104020')
    segments = [ssn.to_bytes(2, 'big') + bytes.fromhex('4143 00000000 00000000') + ssn.to_bytes(4, 'big') + bytes(8) for ssn in (1, 2, 3)]
    end = bytes.fromhex('0004 0004')
    both = opened + chunk(5, initiate) + chunk(5, accept, False)
    write('capture', 'sctp-session', b'\0' + both + b''.join(chunk(3, s) for s in segments) + chunk(5, end))
    write('capture', 'sctp-reordered', b'\0' + both + chunk(3, segments[1]) + chunk(3, segments[0], fate=3) + chunk(5, end) + chunk(3, segments[2]))
    write('capture', 'sctp-lost', b'\0' + both + chunk(3, segments[0], fate=1) + chunk(3, segments[1]) + chunk(5, initiate) + chunk(3, segments[2]))
    part = lambda flags, octets: bytes([7, 0, 0x83, flags, len(octets)]) + octets
    write('capture', 'sctp-fragments', b'\0' + both + part(6, segments[0][:9]) + part(4, segments[0][9:12]) + part(5, segments[0][12:]))
    write('capture', 'sctp-begun-too-late', b'\0' + chunk(3, segments[2]) + chunk(3, segments[2], False))
    # Markers in one direction, in the other, in both.
    send = lambda msn, n: bytes.fromhex('4143 00000000 00000000') + msn.to_bytes(4, 'big') + bytes(4) + bytes(range(256))[:n]
    rdma_write = lambda n: bytes.fromhex('c140 00001234 0000000000010000') + bytes(n)
    ulpdus = [rdma_write(0), send(1, 30), rdma_write(1400), send(2, 3), rdma_write(496), send(3, 100), rdma_write(3000), send(4, 0)]
    plain = b''.join(len(u).to_bytes(2, 'big') + u + bytes(-(2 + len(u)) % 4 + 4) for u in ulpdus)
    for name, request, reply in (('client', 0, 0x80), ('server', 0x80, 0), ('both', 0x80, 0x80)):
        directions = ((0, REQUEST_KEY + bytes([request, 1, 0, 0]), reply), (0x80, REPLY_KEY + bytes([reply, 1, 0, 0]), request))
        stream = b''.join(bytes([2 | way]) + len(frame).to_bytes(2, 'big') + frame for way, frame, _ in directions)
        for way, _, has in directions:
            octets = marked(ulpdus) if has else plain
            parts = [octets[at:at + 1000] for at in range(0, len(octets), 1000)]
            stream += b''.join(bytes([2 | way]) + len(part).to_bytes(2, 'big') + part for part in parts)
        write('capture', f'markers-{name}', b'\x00\x00' + stream + b'\x03\x83')
    for link in range(5):
        ip = bytes.fromhex('450000280000400040060000 0a000001 0a000002'.replace(' ', '')) + bytes.fromhex('0fa01c06' + '00000001' * 2 + '5010ffff00000000')
        front = (14, 16, 20, 4, 0)[link]
        write('capture', f'raw-{link}', bytes([0, 7, link, 0, front + len(ip)]) + bytes(max(front - 2, 0)) + b'\x08\x00'[:front] + ip)


if __name__ == '__main__':
    for make in (startup, session_control, sctp_sessions, early_placement, sctp_packet, fpdu_decoder, rpcrdma, record_reader, stream, rpc_reassembly, capture):
        make()
