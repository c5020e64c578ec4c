"""A peer of the bulk plane for tests: frames, the hello, and connections that say nothing.

A frame is uint32 header bytes, uint32 payload bytes, header (protobuf) and payload.
"""

import hashlib
import hmac
import os
import socket
import struct

VERSION = 2
KEY_LABEL = b"mosa bulk session key"


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def frame_of(header, payload=b""):
    return struct.pack("<II", len(header), len(payload)) + header + payload


def parse(header):
    """Field number -> value of a protobuf message's varints and bytes."""
    found, at = {}, 0

    def read_varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = header[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(header):
        key = read_varint()
        kind = key & 7
        if kind == 0:
            found[key >> 3] = read_varint()
        elif kind == 2:
            length = read_varint()
            found[key >> 3] = header[at : at + length]
            at += length
        else:
            at += 8 if kind == 1 else 4
    return found


def receive(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            return None
        data += part
    return data


def receive_frame(connection):
    """(fields of the header, payload); None if the connection was ended instead."""
    lengths = receive(connection, 8)
    if lengths is None:
        return None
    header_bytes, payload_bytes = struct.unpack("<II", lengths)
    header = parse(receive(connection, header_bytes))
    return header, receive(connection, payload_bytes)


def hello(client, era, nonce, version=VERSION, version_min=VERSION):
    body = field(1, version) + field(2, version_min)
    body += varint(3 << 3 | 1) + struct.pack("<Q", client)
    if era:
        body += field(4, era)
    return frame_of(field(18, body + field(5, nonce)))


def introduce(connection, client, era, key, node):
    """The hello of a client that has its session's key. Returns the node's answer if it refuses."""
    nonce = os.urandom(16)
    connection.sendall(hello(client, era, nonce))
    answer = receive_frame(connection)
    if answer is None or 21 not in answer[0]:
        return answer
    greeting = parse(answer[0][21])
    text = nonce + greeting[2] + struct.pack("<QQQ", client, era, greeting[1]) + node.encode()

    def proof(label):
        return hmac.new(key, label + b"\0" + text, hashlib.sha256).digest()

    assert greeting[3] == proof(b"mosa bulk node"), "the node does not know the session's key"
    connection.sendall(frame_of(field(19, field(1, proof(b"mosa bulk client")))))
    return None


def silent_connections(address, count):
    """Connections that never say anything; those that cannot be had are left out."""
    held = []
    for _ in range(count):
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            connection.connect(address)
        except BlockingIOError:
            pass
        except OSError:
            continue
        held.append(connection)
    return held
