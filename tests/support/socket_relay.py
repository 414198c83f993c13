"""Carry connections from one socket to another: ``python socket_relay.py LISTEN TARGET``, each HOST:PORT or a path.

With a Unix socket in a shared folder between two of them, a container reaches a server that listens on this machine's
127.0.0.1 alone. No packages: it runs in any image that has Python.
"""

import asyncio
import contextlib
import os
import sys


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def carry_connections(listen: str, target: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if "/" in target:
                there, back = await asyncio.open_unix_connection(target)
            else:
                there, back = await asyncio.open_connection(*target.rsplit(":", 1))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    if "/" in listen:
        server = await asyncio.start_unix_server(serve, listen)
    else:
        server = await asyncio.start_server(serve, *listen.rsplit(":", 1))
    await server.serve_forever()


if __name__ == "__main__":
    # The other end may be another user.
    os.umask(0)
    asyncio.run(carry_connections(*sys.argv[1:]))
