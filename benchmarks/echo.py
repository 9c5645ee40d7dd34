"""A bare asyncio server: answers every POST with what it was given on stdin. Prints its port."""

import asyncio
import re
import sys

ANSWER = sys.stdin.buffer.read()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            await reader.readexactly(int(length[1]) if length else 0)
            writer.write(HEAD % len(ANSWER) + ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
