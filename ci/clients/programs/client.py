# usage: python3 client.py PORT CA VERSION FRESH REUSED
#
# FRESH requests with a new session each, then one, and REUSED more, each with the session of the one before.
import socket, ssl, sys, time

port, ca, version, fresh, reused = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(ca)
context.minimum_version = context.maximum_version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]


def get(session):
    with socket.create_connection(("127.0.0.1", int(port))) as raw:
        with context.wrap_socket(raw, server_hostname="localhost", session=session) as conn:
            conn.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while part := conn.recv(65536):
                answer += part
            if not (answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\nok\n")):
                sys.exit("answer: %r" % answer)
            return conn.session, conn.session_reused


start = time.monotonic()
for _ in range(int(fresh)):
    get(None)
between = time.monotonic()
session, _ = get(None)
resumed = 0
again = time.monotonic()
for _ in range(int(reused)):
    session, yes = get(session)
    resumed += yes
print("seconds %.6f %.6f resumed %d" % (between - start, time.monotonic() - again, resumed))
