/* Functions that all clients in C share. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Connects to a port of this machine's from one of its addresses, 127.0.x.y for the number source, without delays for small
 * writes. Returns the socket, or -1 with errno.
 */
static inline int connect_from(int source, int port)
{
	struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (in_addr_t)source);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&from, sizeof from) != 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static inline int connect_to(int port)
{
	return connect_from(1, port);
}
