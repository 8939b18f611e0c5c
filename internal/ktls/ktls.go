// Package ktls is the interface to TLS in the Linux kernel (linux/tls.h). It gives a socket the key
// with which the kernel seals all later records, and sends records that hold no application data. It
// doesn't use the kernel for receiving.
//
// Kernels before 6.14 can't change the key of a socket. Every TLS 1.3 peer may ask for that with a
// KeyUpdate, so with those kernels only TLS 1.2 is possible.
package ktls

import (
	"crypto/tls"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
)

// Versions returns the TLS versions that this host's kernel can seal: none, only TLS 1.2, or TLS
// 1.2 and 1.3. It asks the kernel once, with connections of the process to itself.
func Versions() []uint16 { return slices.Clone(versions()) }

var versions = sync.OnceValue(func() (found []uint16) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if seals(version) {
			found = append(found, version)
		}
	}
	return found
})

// seals tries a key of a version on a socket.
func seals(version uint16) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l, err = net.Listen("tcp", "[::1]:0")
	}
	if err != nil {
		return false
	}
	defer l.Close()
	conn, err := net.DialTimeout("tcp", l.Addr().String(), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil || !Begin(raw, version) {
		return false
	}
	key := libssl.KernelKey{Suite: tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, KeyLen: 16}
	if version == tls.VersionTLS13 {
		key.Suite, key.TLS13 = tls.TLS_AES_128_GCM_SHA256, 1
	}
	took, err := SetKey(raw, &key)
	return took && err == nil
}
