"""What hosts send to each other: each to the next one of a ring, all at once, over several TCP connections.

Every host runs this with the addresses of all and its own place among them, by whatever Python 3 it has, from 3.6 on.
While it runs it listens on its port, and keeps the connections of the ring alone.
"""

import fcntl
import json
import socket
import struct
import sys
import threading
import time
from typing import Any

BLOCK = 1 << 20
MB = 1e6
WAIT_S = 30.0  #: for a host of the ring that says nothing any more
SIOCGIFADDR = 0x8915  # netdevice(7)


class NoAnswer(Exception):
    """A host of the ring that cannot be measured with; the message says which, and why."""


def address(peer: str, port: int) -> "tuple[str, int]":
    """A peer's address, with the port of all unless it brings its own, as those of tests do."""
    host, _, own = peer.rpartition(":")
    return (host, int(own)) if peer.count(":") == 1 else (peer.strip("[]"), port)


def listening(port: int) -> socket.socket:
    """The socket to which the host before this one connects, over IPv4 or IPv6."""
    try:
        server = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("::", port))
    except OSError:  # the kernel has no IPv6
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("", port))
    server.listen(64)
    return server


def connected(to: "tuple[str, int]", hello: bytes, streams: int, until: float) -> "list[socket.socket]":
    """Connections to the next host, each of which has said who it is. Raises ``NoAnswer``."""
    made: list[socket.socket] = []
    while len(made) < streams:
        try:
            one = socket.create_connection(to, timeout=3)
            one.settimeout(WAIT_S)
            one.sendall(hello + bytes([len(made)]))
            made.append(one)
        except OSError as error:
            if time.monotonic() > until:
                raise NoAnswer(f"no answer from {to[0]}: {error}") from None
            time.sleep(0.2)  # the next host refuses until its proof listens, and nothing here can wait on that
    return made


def accepted(server: socket.socket, hello: bytes, streams: int, before: str, until: float) -> "list[socket.socket]":
    """The connections of the host before this one, in its order; whoever else connects is sent away."""
    found: dict[int, socket.socket] = {}
    while len(found) < streams:
        server.settimeout(max(0.1, until - time.monotonic()))
        try:
            one, _ = server.accept()
        except OSError:
            raise NoAnswer(f"{before} has not connected") from None
        try:
            one.settimeout(3)
            reply = exactly(one, len(hello) + 1)
            one.settimeout(WAIT_S)
        except (OSError, NoAnswer):
            reply = b""
        if reply[:-1] == hello and reply[-1] < streams:
            found[reply[-1]] = one
        else:
            one.close()
    return [found[number] for number in range(streams)]


def exactly(connection: socket.socket, count: int) -> bytes:
    """So many bytes. Raises ``NoAnswer`` where the connection ends before."""
    got = b""
    while len(got) < count:
        part = connection.recv(count - len(got))
        if not part:
            raise NoAnswer("it has ended the connection")
        got += part
    return got


def started(first: bool, onward: socket.socket, back: socket.socket, before: str) -> None:
    """Wait until all hosts are connected: a mark goes round the ring twice, begun by the first host."""
    try:
        for mark in (b"1", b"2"):
            if first:
                onward.sendall(mark)
            if exactly(back, 1) != mark:
                raise NoAnswer("the peer sent data that is not from this proof")
            if not first:
                onward.sendall(mark)
    except (OSError, NoAnswer) as error:
        raise NoAnswer(f"no answer from {before} before the start: {error}") from None


def send(connection: socket.socket, until: float) -> None:
    """Send zeros until the time ``until``, then end the stream."""
    block = memoryview(bytes(BLOCK))
    try:
        while time.monotonic() < until:
            connection.sendall(block)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the host behind it is gone; the figure that it does not tell says so


def receive(connection: socket.socket, counts: "list[int]", errors: "list[str]") -> None:
    """Count what arrives, until the sender has said that it was all."""
    room = bytearray(BLOCK)
    try:
        while True:
            got = connection.recv_into(room)
            if not got:
                return
            counts.append(got)
    except OSError as error:
        errors.append(str(error))


def throughput(
    onward: "list[socket.socket]", back: "list[socket.socket]", seconds: float, before: str, after: str
) -> "tuple[float, float]":
    """MB/s that arrived at the next host, as it says, and here. Raises ``NoAnswer``."""
    counts: list[int] = []
    errors: list[str] = []
    begin = time.monotonic()
    threads = [threading.Thread(target=send, args=(one, begin + seconds)) for one in onward]
    threads += [threading.Thread(target=receive, args=(one, counts, errors)) for one in back]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors or not counts:
        raise NoAnswer("{} stopped sending: {}".format(before, (errors or ["nothing arrived"])[0]))
    received = sum(counts) / (time.monotonic() - begin) / MB
    try:
        back[0].sendall(struct.pack("!d", received))
        (sent,) = struct.unpack("!d", exactly(onward[0], 8))
    except (OSError, NoAnswer) as error:
        raise NoAnswer(f"no report from {after} of the data that {after} received: {error}") from None
    return sent, received


def interface(own: str) -> str:
    """The network interface with this address of the host, and its speed as the kernel tells it: eth0 (10000 Mb/s)."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _, name in socket.if_nameindex():
        try:
            answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError:
            continue
        if socket.inet_ntoa(answer[20:24]) == own:
            return f"{name} ({speed(name)})"
    return "(of an unknown interface)"


def speed(name: str) -> str:
    """``10000 Mb/s``; a virtual interface may tell none."""
    try:
        with open("/sys/class/net/" + name + "/speed", encoding="ascii") as file:  # noqa: PTH123 - from Python 3.6 on
            value = int(file.read())
    except (OSError, ValueError):
        value = -1
    return f"{value} Mb/s" if value > 0 else "of an unknown speed"


def main(path: str) -> int:
    """Measure, and print the figures; the exit status of the program."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a path of the job
        order = json.load(file)
    peers, place = [address(peer, int(order["port"])) for peer in order["peers"]], order["index"]
    before, after = peers[place - 1], peers[(place + 1) % len(peers)]
    until = time.monotonic() + order["start_limit_s"]
    hello = f"hostwright {len(peers)} {place} ".encode()
    expected = f"hostwright {len(peers)} {(place - 1) % len(peers)} ".encode()
    try:
        server = listening(peers[place][1])
        onward: list[socket.socket] = []
        failures: list[str] = []

        def connect() -> None:
            try:
                onward.extend(connected(after, hello, order["streams"], until))
            except NoAnswer as error:
                failures.append(str(error))

        connecting = threading.Thread(target=connect)
        connecting.start()
        try:
            back = accepted(server, expected, order["streams"], before[0], until + 5)
        finally:
            connecting.join()
        if failures:
            raise NoAnswer(failures[0])
        own = onward[0].getsockname()[0]
        started(place == 0, onward[0], back[0], before[0])
        sent, received = throughput(onward, back, order["seconds"], before[0], after[0])
    except (OSError, NoAnswer) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    device = "network " + interface(own)
    rows = [("sent", sent, "MB/s"), ("received", received, "MB/s"), ("sent to", after[0], "")]
    rows += [("received from", before[0], ""), ("hosts", len(peers), ""), ("connections", order["streams"], "")]
    for name, value, unit in rows:
        print(json.dumps(measure(name, value, unit, device)), flush=True)
    print('{"end": true}', flush=True)
    return 0


def measure(name: str, value: Any, unit: str, device: str) -> "dict[str, Any]":
    """A line of the protocol."""
    return {"measure": name, "value": value, "unit": unit, "device": device}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
