"""vade-hook: what an agent's client runs before and after a tool. Standard library only.

    vade-hook pre-tool-use [--home DIR] < input.json

Passes its input to the server of the home and prints what the server says. Whatever goes wrong it
exits 0 without output, so that the agent carries on, and leaves the reason in serve/hooks.log.
The whole process is the cost of a hook: `_socket` is used as it is, because `socket`, `json` and
`http.client` take longer to import than the server takes to answer.
"""

import os
import sys
import time

EVENTS = ("pre-tool-use", "post-tool-use", "user-prompt-submit")
MAX_INPUT_BYTES = 8 * 1024 * 1024


class Silent(Exception):
    """There is nothing to say to the agent; the message is for the log."""


def main() -> None:
    home = os.environ.get("VADE_HOME") or os.path.expanduser("~/.vademecum")
    try:
        event, home = _arguments(sys.argv[1:], home)
        said = _ask(event, home)
        if said:
            os.write(1, said)
    except Exception as error:  # noqa: BLE001 - whatever it is, the agent carries on
        _log(home, error)
    # Not by sys.exit: nothing is left to be cleaned up, and the agent waits for our end.
    os._exit(0)


def _arguments(arguments: "list[str]", home: str) -> "tuple[str, str]":
    if len(arguments) == 3 and arguments[1] == "--home":
        home = arguments[2]
    elif len(arguments) != 1:
        raise Silent("usage: vade-hook EVENT [--home DIR]")
    if arguments[0] not in EVENTS:
        raise Silent(f"no such event: {arguments[0]}")
    return arguments[0], home


def _ask(event: str, home: str) -> bytes:
    import _socket

    try:
        host, port, cap_ms = _address(home)
        token = _read(home + "/serve/hook-token").strip()
    except (FileNotFoundError, NotADirectoryError):
        raise Silent("no server is running") from None
    deadline = time.monotonic() + cap_ms / 1000
    body = _input()
    family = _socket.AF_INET6 if b":" in host else _socket.AF_INET
    connection = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_left(deadline))
        connection.connect((host.decode(), port))
        connection.sendall(
            b"POST /hooks/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nAuthorization: Bearer %s\r\n"
            b"Content-Length: %d\r\n\r\n" % (event.encode(), token, len(body)) + body
        )
        pieces = []
        while True:
            connection.settimeout(_left(deadline))
            piece = connection.recv(1 << 16)
            if not piece:
                break
            pieces.append(piece)
    except ConnectionRefusedError:
        raise Silent("no server is running") from None
    except TimeoutError:
        raise Silent(f"no answer within {cap_ms} ms") from None
    finally:
        connection.close()
    return _body(b"".join(pieces))


def _address(home: str) -> "tuple[bytes, int, int]":
    host, port, _, cap_ms = _read(home + "/serve/address").split()
    return host, int(port), int(cap_ms)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _input() -> bytes:
    pieces, size = [], 0
    while piece := os.read(0, 1 << 16):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_INPUT_BYTES:
            raise Silent("the input is too large")
    return b"".join(pieces)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _body(answer: bytes) -> bytes:
    head, separator, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    if not separator or status not in ([b"200"], [b"204"]):
        raise Silent(
            f"the server answered {(status or [b'nothing'])[0].decode('ascii', 'replace')}"
        )
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:") and int(line[15:]) != len(body):
            raise Silent("the server's answer broke off")
    return body


def _log(home: str, error: Exception) -> None:
    """One line; nothing where there is no server folder, and so nothing was ever set up."""
    reason = str(error) if isinstance(error, Silent) else f"{type(error).__name__}: {error}"
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} vade-hook: {reason}\n"
    try:
        log = os.open(home + "/serve/hooks.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(log, line.encode("utf-8", "replace"))
    except OSError:
        return


if __name__ == "__main__":
    main()
