"""A server of mail on a real socket, which keeps what it takes: as much of RFC 5321 as a client needs."""

import asyncio
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class SmtpReceiver:
    context: ssl.SSLContext | None = None
    """Certificate for STARTTLS."""
    refusal: str = ""
    """Answer to every recipient in the place of 250."""
    password: str = ""
    """Password that every user has to give (RFC 4954, AUTH PLAIN); empty for none."""
    refused_logins: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    were_encrypted: list[bool] = field(default_factory=list)
    address: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_encrypted = False
        writer.write(b"220 receiver ESMTP\r\n")
        while line := (await reader.readline()).decode().strip():
            verb = line.split(" ", 1)[0].upper()
            match verb:
                case "EHLO":
                    extension = "" if is_encrypted or self.context is None else "250-STARTTLS\r\n"
                    extension += "250-AUTH PLAIN\r\n" if self.password else ""
                    writer.write(f"250-receiver\r\n{extension}250 8BITMIME\r\n".encode())
                case "STARTTLS":
                    writer.write(b"220 go ahead\r\n")
                    await writer.drain()
                    assert self.context
                    await writer.start_tls(self.context)
                    is_encrypted = True
                case "AUTH":
                    # User and password follow zero bytes (RFC 4616).
                    is_right = b64decode(line.split()[2]).decode().split("\0")[2] == self.password
                    self.refused_logins += not is_right
                    writer.write(b"235 welcome\r\n" if is_right else b"535 wrong password\r\n")
                case "RCPT":
                    writer.write((f"{self.refusal or '250 ok'}\r\n").encode())
                    self.recipients += [] if self.refusal else [line]
                case "DATA":
                    writer.write(b"354 go ahead\r\n")
                    content = await reader.readuntil(b"\r\n.\r\n")
                    mail = message_from_bytes(content[:-3], policy=policy.default)
                    assert isinstance(mail, EmailMessage)
                    self.mails.append(mail)
                    self.were_encrypted.append(is_encrypted)
                    writer.write(b"250 taken\r\n")
                case "QUIT":
                    writer.write(b"221 bye\r\n")
                    await writer.drain()
                    break
                case _:
                    writer.write(b"250 ok\r\n")
            await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving_mail(context: ssl.SSLContext | None = None) -> AsyncIterator[SmtpReceiver]:
    """Receive mail on 127.0.0.1."""
    receiver = SmtpReceiver(context)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.address = f"localhost:{server.sockets[0].getsockname()[1]}"
    try:
        yield receiver
    finally:
        server.close()
