"""The coordinator of a program of several processes, and the clients that speak to it: keys, barriers, heartbeats.

Process 0 serves. A client keeps one connection for its heartbeats, by whose end the service sees at once that a process
died, and opens others for requests, which may wait. A request and its answer are a JSON header and bytes, each with its
length in front. When a process dies, what waits ends with an error that names it, and so does every later request.

Source: the semantics of XLA's coordination service, as `jax.distributed` shows them. Read next: `distributed.py`.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ferrax.errors import JaxRuntimeError

__all__ = ["Client", "Service", "address_of"]

_LENGTHS = struct.Struct("!II")


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `"host:port"`; the host may be in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"an address is 'host:port', got {text!r}")
    return host.strip("[]"), int(port)


def _send(connection: socket.socket, header: dict[str, Any], body: bytes = b"") -> None:
    head = json.dumps(header).encode()
    connection.sendall(_LENGTHS.pack(len(head), len(body)) + head + body)


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("the other side closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    head, body = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    return json.loads(_exactly(connection, head)), _exactly(connection, body)


class _Refused(Exception):
    """What a request is answered with instead of a result."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")


class _Barrier:
    """One meeting: who is expected, who came, and how it ended."""

    def __init__(self, expected: frozenset[int]) -> None:
        self.expected = expected
        self.came: list[int] = []
        self.failed: str | None = None


class Service:
    """The coordinator: serves from threads of this process until it is shut down.

    Args:
      address: `"host:port"` to listen at; `"[::]"` stands for all addresses.
      count: number of processes.
      heartbeat: seconds without a sign of life after which a process counts as dead.
      recoverable: whether the others go on when a process dies.

    Raises:
      OSError: the address cannot be used.
    """

    def __init__(self, address: str, count: int, heartbeat: float, recoverable: bool = False) -> None:
        self.count, self.heartbeat, self.recoverable = count, heartbeat, recoverable
        self._keys: dict[str, bytes] = {}
        self._barriers: dict[tuple[str, int], _Barrier] = {}
        self._seen: dict[int, float] = {}
        self._left: set[int] = set()
        self._dead: set[int] = set()
        self._failed: str | None = None
        self._changed = threading.Condition()
        host, port = address_of(address)
        family = socket.AF_INET6 if ":" in host and socket.has_dualstack_ipv6() else socket.AF_INET
        self._server = _server(self, family, ("" if host == "::" and family == socket.AF_INET else host, port))
        self._closed = threading.Event()
        for target in (self._server.serve_forever, self._watch):
            threading.Thread(target=target, name="ferrax coordinator", daemon=True).start()

    def shutdown(self) -> None:
        """Ends the service; whoever waits gets an error."""
        self._closed.set()
        with self._changed:
            self._failed = self._failed or "the coordinator, process 0, was shut down"
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def _watch(self) -> None:
        """Counts processes as dead that gave no sign of life for too long."""
        while not self._closed.wait(min(1.0, self.heartbeat / 4)):
            now = time.monotonic()
            with self._changed:
                late = [p for p, at in self._seen.items() if now - at > self.heartbeat and p not in self._left]
            for process in late:
                self.lost(process, f"has given no sign of life for {self.heartbeat:g} s")

    def lost(self, process: int, how: str) -> None:
        """Notes that a process died, unless it had said that it leaves."""
        with self._changed:
            if process in self._left or process in self._dead or self._closed.is_set():
                return
            self._dead.add(process)
            self._seen.pop(process, None)
            text = f"process {process} of {self.count} {how}"
            if not self.recoverable:
                self._failed = self._failed or text
            for barrier in self._barriers.values():
                if process in barrier.expected and not barrier.expected <= set(barrier.came):
                    barrier.failed = barrier.failed or text
            self._changed.notify_all()

    def answer(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        """The result of a request, as JSON and bytes."""
        found: tuple[Any, bytes] = getattr(self, f"_on_{request['do']}")(request, body)
        return found

    def _require_alive(self) -> None:
        if self._failed is not None:
            raise _Refused("UNAVAILABLE", f"the program of several processes has failed: {self._failed}")

    def _until(self, timeout: float, ready: Callable[[], bool]) -> bool:
        """Waits, with the lock held, until something holds; False when the time is over."""
        end = time.monotonic() + timeout
        while not ready():
            self._require_alive()
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._changed.wait(min(left, 1.0))
        return True

    def _on_beat(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        with self._changed:
            self._seen[request["process"]] = time.monotonic()
            self._left.discard(request["process"])
            return self._failed, b""

    def _on_leave(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        with self._changed:
            self._left.add(request["process"])
            self._seen.pop(request["process"], None)
            return None, b""

    def _on_live(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        with self._changed:
            return sorted(set(self._seen) & set(request["processes"])), b""

    def _on_set(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        key = request["key"]
        with self._changed:
            self._require_alive()
            if key in self._keys and not request["overwrite"]:
                raise _Refused("ALREADY_EXISTS", f"key {key} already exists.")
            self._keys[key] = body
            self._changed.notify_all()
        return None, b""

    def _on_get(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        key, timeout = request["key"], request["timeout"]
        with self._changed:
            if timeout is None and key not in self._keys:
                raise _Refused("NOT_FOUND", f"Config key {key} not found.")
            if not self._until((timeout or 0) / 1000, lambda: key in self._keys):
                text = f"GetKeyValue() timed out with key: {key} and duration: {timeout}ms"
                raise _Refused("DEADLINE_EXCEEDED", text)
            return None, self._keys[key]

    def _below(self, key: str) -> list[str]:
        folder = key if key.endswith("/") else f"{key}/"
        return sorted(k for k in self._keys if k.startswith(folder))

    def _on_folder(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        with self._changed:
            self._require_alive()
            keys = self._below(request["key"])
            values = [self._keys[k] for k in keys]
        return [[k, len(v)] for k, v in zip(keys, values, strict=True)], b"".join(values)

    def _on_delete(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        with self._changed:
            self._require_alive()
            for key in [request["key"], *self._below(request["key"])]:
                self._keys.pop(key, None)
        return None, b""

    def _on_add(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        with self._changed:
            self._require_alive()
            have = self._keys.get(request["key"], b"0").decode()
            try:
                total = int(have) + request["amount"]
            except ValueError:
                raise _Refused("FAILED_PRECONDITION", f'Failed to parse value "{have}" as an integer.') from None
            self._keys[request["key"]] = str(total).encode()
            self._changed.notify_all()
        return total, b""

    def _on_meet(self, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        name, turn, process = request["name"], request["turn"], request["process"]
        everybody = request["processes"] is None
        expected = frozenset(range(self.count) if everybody else request["processes"])
        shown = f"{name}::{turn}"
        with self._changed:
            self._require_alive()
            if process not in expected:
                raise _Refused("INVALID_ARGUMENT", f"A non-participating task ({process}) called the barrier: {shown}")
            barrier = self._barriers.setdefault((name, turn), _Barrier(expected))
            if barrier.expected != expected:
                raise _Refused("INVALID_ARGUMENT", f"processes that meet at {shown} expect different ones")
            if self._dead & expected and barrier.failed is None:
                barrier.failed = f"process {min(self._dead & expected)} of {self.count} is dead"
            barrier.came.append(process)
            self._changed.notify_all()
            done = lambda: barrier.failed is not None or barrier.expected <= set(barrier.came)
            if not self._until(request["timeout"] / 1000, done):
                missing = "\n".join(str(p) for p in sorted(expected - set(barrier.came)))
                barrier.failed = (
                    f"Barrier timed out. Id: {shown}. This usually happens because a task triggered the barrier too "
                    "early or too slowly. Please look at the task logs (both timed out and first task) to debug "
                    f"further.\n# of tasks that reached the barrier: {len(set(barrier.came))}/{len(expected)}.\nThe "
                    f"first task at the barrier: {barrier.came[0]}. Some timed out task names:\n{missing}"
                )
                self._changed.notify_all()
            if barrier.failed is not None:
                code = "DEADLINE_EXCEEDED" if barrier.failed.startswith("Barrier timed out") else "UNAVAILABLE"
                raise _Refused(code, barrier.failed)
        return None, b""


def _server(service: Service, family: int, address: tuple[str, int]) -> socketserver.ThreadingTCPServer:
    """A server whose threads answer the requests of one connection each."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            beating: int | None = None
            with contextlib.suppress(OSError):
                while True:
                    request, body = _receive(self.request)
                    beating = request["process"] if request["do"] == "beat" else beating
                    try:
                        result, more = service.answer(request, body)
                        _send(self.request, {"result": result}, more)
                    except _Refused as error:
                        _send(self.request, {"error": str(error)})
            if beating is not None:
                service.lost(beating, "closed its connection: it has ended or died")

    class Server(socketserver.ThreadingTCPServer):
        address_family = family
        allow_reuse_address = True
        daemon_threads = True

        def server_bind(self) -> None:
            if self.address_family == socket.AF_INET6:
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            super().server_bind()

    return Server(address, Handler)


class Client:
    """A process's side: what `jax._src.distributed.global_state.client` is.

    Args:
      address: `"host:port"` of the coordinator.
      process: number of this process.
      count: number of processes.
      connecting: seconds in which the coordinator must be there, and all processes with it.
      heartbeat: seconds after which a coordinator that does not answer counts as dead.
      leaving: seconds that `shutdown` waits for the others.
    """

    def __init__(
        self, address: str, process: int, count: int, connecting: float, heartbeat: float, leaving: float
    ) -> None:
        self._at, self.process, self.count = address_of(address), process, count
        self._connecting, self._heartbeat, self.leaving = connecting, heartbeat, leaving
        self._idle: list[socket.socket] = []
        self._beats: list[socket.socket] = []
        self._turns: dict[str, int] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failed: str | None = None

    def connect(self) -> None:
        """Waits for the coordinator and all processes.

        Raises:
          JaxRuntimeError: they are not there in time.
        """
        end = time.monotonic() + self._connecting
        while True:
            try:
                beats = self._opened()
                break
            except OSError as error:
                if time.monotonic() > end:
                    host, port = self._at
                    raise JaxRuntimeError(
                        f"DEADLINE_EXCEEDED: no coordinator answered at {host}:{port} within {self._connecting:g} s: "
                        f"{error}"
                    ) from None
                time.sleep(0.05)
        self._beats.append(beats)
        self._asked(beats, {"do": "beat", "process": self.process}, b"")
        threading.Thread(target=self._beat, args=(beats,), name="ferrax heartbeats", daemon=True).start()
        left = max(1.0, end - time.monotonic())
        self.wait_at_barrier("ferrax: all processes are there", int(left * 1000))

    def shutdown(self) -> None:
        """Waits for the others to end, too, and leaves."""
        if self._ended.is_set():
            return
        try:
            self.wait_at_barrier("ferrax: all processes end", int(self.leaving * 1000))
        finally:
            with contextlib.suppress(JaxRuntimeError):
                self._ask({"do": "leave", "process": self.process})
            self._ended.set()
            with self._lock:
                for connection in self._idle:
                    connection.close()
                self._idle.clear()

    def abandon(self) -> None:
        """Lets the others know that this process fails: they have an error, and it waits for nobody."""
        self._ended.set()
        self._failed = self._failed or f"process {self.process} of {self.count} ends with an error"
        with self._lock:
            for connection in [*self._idle, *self._beats]:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._idle.clear()

    def _beat(self, beats: socket.socket) -> None:
        """Says that the process lives, until it ends, and hears whether another one died."""
        while not self._ended.wait(min(1.0, self._heartbeat / 4)):
            try:
                failed, _ = self._asked(beats, {"do": "beat", "process": self.process}, b"")
            except (OSError, JaxRuntimeError) as error:
                failed = f"the coordinator, process 0, does not answer: {error}"
            if failed is not None and not self._ended.is_set():
                self._failed = failed
                return
        beats.close()

    def _opened(self) -> socket.socket:
        connection = socket.create_connection(self._at, timeout=self._heartbeat)
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _asked(self, connection: socket.socket, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        _send(connection, request, body)
        header, more = _receive(connection)
        if "error" in header:
            raise JaxRuntimeError(header["error"])
        return header["result"], more

    def _ask(self, request: dict[str, Any], body: bytes = b"") -> tuple[Any, bytes]:
        if self._failed is not None:
            raise JaxRuntimeError(f"UNAVAILABLE: the program of several processes has failed: {self._failed}")
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        try:
            connection = connection or self._opened()
            answer = self._asked(connection, request, body)
        except OSError as error:
            text = self._failed or f"the coordinator, process 0, does not answer: {error}"
            raise JaxRuntimeError(f"UNAVAILABLE: the program of several processes has failed: {text}") from None
        finally:
            if connection is not None and connection.fileno() >= 0:
                with self._lock:
                    self._idle.append(connection)
        return answer

    def wait_at_barrier(self, barrier_id: str, timeout_in_ms: int, process_ids: Sequence[int] | None = None) -> None:
        """Waits until all processes, or these, are here.

        Raises:
          JaxRuntimeError: they are not within the time, or one of them died.
        """
        with self._lock:
            turn = self._turns.get(barrier_id, 0)
            self._turns[barrier_id] = turn + 1
        processes = None if process_ids is None else [int(p) for p in process_ids]
        request = {"do": "meet", "name": barrier_id, "turn": turn, "process": self.process, "timeout": timeout_in_ms}
        self._ask({**request, "processes": processes})

    def get_live_nodes(self, process_ids: Sequence[int]) -> dict[int, int]:
        """Those of these processes that live, each with the number of its incarnation, 0."""
        live, _ = self._ask({"do": "live", "processes": [int(p) for p in process_ids]})
        return dict.fromkeys(live, 0)

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        """Sets the text of a key."""
        self.key_value_set_bytes(key, value.encode(), allow_overwrite)

    def key_value_set_bytes(self, key: str, value: bytes, allow_overwrite: bool = False) -> None:
        """Sets the bytes of a key."""
        self._ask({"do": "set", "key": key, "overwrite": bool(allow_overwrite)}, bytes(value))

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        """The text of a key, which is waited for."""
        return self.blocking_key_value_get_bytes(key, timeout_in_ms).decode()

    def blocking_key_value_get_bytes(self, key: str, timeout_in_ms: int) -> bytes:
        """The bytes of a key, which is waited for."""
        return self._ask({"do": "get", "key": key, "timeout": timeout_in_ms})[1]

    def key_value_try_get(self, key: str) -> str:
        """The text of a key that is there."""
        return self.key_value_try_get_bytes(key).decode()

    def key_value_try_get_bytes(self, key: str) -> bytes:
        """The bytes of a key that is there."""
        return self._ask({"do": "get", "key": key, "timeout": None})[1]

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        """The keys below a key, with their texts."""
        return [(k, v.decode()) for k, v in self.key_value_dir_get_bytes(key)]

    def key_value_dir_get_bytes(self, key: str) -> list[tuple[str, bytes]]:
        """The keys below a key, with their bytes."""
        sizes, body = self._ask({"do": "folder", "key": key})
        found, at = [], 0
        for name, size in sizes:
            found.append((name, body[at : at + size]))
            at += size
        return found

    def key_value_delete(self, key: str) -> None:
        """Deletes a key and those below it."""
        self._ask({"do": "delete", "key": key})

    def key_value_increment(self, key: str, increment: int) -> int:
        """Adds to the number of a key, which begins at 0."""
        total: int = self._ask({"do": "add", "key": key, "amount": int(increment)})[0]
        return total
