#!/usr/bin/env python3
"""blank.py IN.pcap OUT.pcap: sets to zero what the tagged segments (RDMA Write, RDMA Read Response) of a capture carry.

What files contained matters to no test, and zeros compress. Headers, packets and times stay as they were; TCP checksums
no longer fit. For Ethernet captures of IPv4 with every connection's SYN in it, without CRC32c and without Markers.
"""
import struct
import sys

MPA_START_BYTES, FPDU_OVERHEAD, TAGGED_HEADER_BYTES = 20, 6, 14


def packets(data):
    """(offset, length) of each packet in the file."""
    at = 24
    while at < len(data):
        length = struct.unpack_from('<I', data, at + 8)[0]
        yield at + 16, length
        at += 16 + length


def segments(data):
    """(direction, sequence number, SYN?, offset, length) of each TCP segment in the file."""
    for at, length in packets(data):
        if length < 54 or data[at + 12:at + 14] != b'\x08\x00' or data[at + 23] != 6:
            continue
        ip = at + 14
        tcp = ip + (data[ip] & 15) * 4
        end = ip + struct.unpack_from('>H', data, ip + 2)[0]
        payload = tcp + (data[tcp + 12] >> 4) * 4
        direction = bytes(data[ip + 12:ip + 20]) + bytes(data[tcp:tcp + 4])
        yield direction, struct.unpack_from('>I', data, tcp + 4)[0], bool(data[tcp + 13] & 2), payload, end - payload


def tagged_payloads(stream):
    """(begin, end) within the stream of one direction; nothing when it is no MPA connection."""
    if not stream.startswith(b'MPA ID Re'):
        return
    at = MPA_START_BYTES + struct.unpack_from('>H', stream, 18)[0]
    while at + 2 <= len(stream):
        ulpdu = struct.unpack_from('>H', stream, at)[0]
        if stream[at + 2] & 0x80:
            yield at + 2 + TAGGED_HEADER_BYTES, at + 2 + ulpdu
        at += ulpdu + FPDU_OVERHEAD + -(ulpdu + 2) % 4


def main():
    with open(sys.argv[1], 'rb') as f:
        data = bytearray(f.read())
    starts, places, streams = {}, {}, {}
    for direction, seq, syn, at, length in segments(data):
        if syn:
            starts[direction] = (seq + 1) % 2**32
        elif length > 0:
            begin = (seq - starts[direction]) % 2**32
            stream = streams.setdefault(direction, bytearray())
            stream.extend(bytes(max(0, begin + length - len(stream))))
            stream[begin:begin + length] = data[at:at + length]
            places.setdefault(direction, []).append((begin, at, length))
    for direction, stream in streams.items():
        for begin, end in tagged_payloads(bytes(stream)):
            stream[begin:end] = bytes(end - begin)
        for begin, at, length in places[direction]:
            data[at:at + length] = stream[begin:begin + length]
    with open(sys.argv[2], 'wb') as f:
        f.write(data)


main()
