/*
 * The places at which tracing tools see plaintext. The functions do nothing. Their names, arguments
 * and results are stable, since tools outside of this project rely on them.
 *
 * The first three arguments and the result are the same as in SSL_read(3) and SSL_write(3), so a
 * tool that probes these works with the other names too. conn: distinguishes connections, as an SSL
 * does; it points to nothing that a tool may rely on. num: the number of bytes at buf, all of which
 * were read or written. fd: the socket, or -1 if the connection has none.
 */
#ifndef OSSL_PROBE_H
#define OSSL_PROBE_H

#define PROBE __attribute__((noinline, used, visibility("default")))

/* Application data was opened. Unlike SSL_read's, the buffer is already filled at the entry. */
PROBE int ossl_probe_read(const void *conn, const void *buf, int num, int fd);

/* Application data was sealed. If the kernel seals, it is not called. */
PROBE int ossl_probe_write(const void *conn, const void *buf, int num, int fd);

#endif
