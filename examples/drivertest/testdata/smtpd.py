# An SMTP server for tests: smtpd.py starttls|tls PORT CERT KEY ROOTS 1.2|1.3 MUTUAL
import asyncio
import signal
import ssl
import sys

from aiosmtpd.handlers import Sink
from aiosmtpd.smtp import SMTP, AuthResult

mode, port, cert, key, roots, version, mutual = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
context.minimum_version = context.maximum_version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
if mutual == "true":
    context.load_verify_locations(roots)
    context.verify_mode = ssl.CERT_REQUIRED


def authenticate(server, session, envelope, mechanism, data):
    if mutual == "true" and not server.transport.get_extra_info("peercert"):
        return AuthResult(success=False)
    return AuthResult(success=(data.login, data.password) == (b"app", b"secret"))


def protocol():
    if mode == "tls":
        return SMTP(Sink(), authenticator=authenticate, auth_required=True, auth_require_tls=False)
    return SMTP(Sink(), tls_context=context, require_starttls=True, authenticator=authenticate, auth_required=True)


async def main():
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    # aiosmtpd aborts connections whose handshake fails.
    server = await loop.create_server(protocol, "127.0.0.1", int(port), ssl=context if mode == "tls" else None)
    await ended.wait()
    server.close()


asyncio.run(main())
