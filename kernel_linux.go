//go:build linux && !386 && !s390x

package ossl

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/ossl-go/ossl/internal/libssl"
)

// linux/tcp.h, linux/socket.h and linux/tls.h.
const (
	tcpULP           = 31
	solTLS           = 282
	tlsTX            = 1
	tlsSetRecordType = 1

	tlsAESGCM128        = 51
	tlsAESGCM256        = 52
	tlsChaCha20Poly1305 = 54
)

// kernelCiphers are the kernel's names for what seals.
var kernelCiphers = map[uint16]uint16{
	tls.TLS_AES_128_GCM_SHA256:                        tlsAESGCM128,
	tls.TLS_AES_256_GCM_SHA384:                        tlsAESGCM256,
	tls.TLS_CHACHA20_POLY1305_SHA256:                  tlsChaCha20Poly1305,
	tls.TLS_RSA_WITH_AES_128_GCM_SHA256:               tlsAESGCM128,
	tls.TLS_RSA_WITH_AES_256_GCM_SHA384:               tlsAESGCM256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       tlsAESGCM128,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:         tlsAESGCM128,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:       tlsAESGCM256,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384:         tlsAESGCM256,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: tlsChaCha20Poly1305,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:   tlsChaCha20Poly1305,
}

// What was learnt of the kernel.
var (
	kernelHasNoTLS  atomic.Bool // asked again, it might start modprobe each time
	kernelTLSIsHere atomic.Bool // and so kernelRekeys knows
	rekeysKnown     atomic.Pointer[bool]
)

// kernelRekeys tells whether a socket's key can be changed: the kernel then counts how often that worked.
func kernelRekeys() bool {
	known := rekeysKnown.Load()
	if known == nil {
		stat, err := os.ReadFile("/proc/net/tls_stat")
		rekeys := err == nil && bytes.Contains(stat, []byte("TlsTxRekeyOk"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false // for now
		}
		known = &rekeys
		rekeysKnown.Store(known)
	}
	return *known
}

// checkOption returns an error unless the beginning of a socket's option is want. There are kernels that say yes to every option
// and do nothing (gVisor): there, data would leave in the clear.
func checkOption(fd uintptr, level, option int, want []byte) error {
	var got [16]byte
	n := uint32(len(want))
	_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&got[0])),
		uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	if int(n) != len(want) || !bytes.Equal(got[:n], want) {
		return errors.ErrUnsupported
	}
	return nil
}

// beginKernelTLS prepares a socket to be given keys, and reports whether it can be: TCP_ULP. Without keys it is as before.
func beginKernelTLS(raw syscall.RawConn, version uint16) bool {
	if kernelHasNoTLS.Load() || version == tls.VersionTLS13 && kernelTLSIsHere.Load() && !kernelRekeys() {
		return false
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		if failed = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, tcpULP, "tls"); failed == nil {
			failed = checkOption(fd, syscall.IPPROTO_TCP, tcpULP, []byte("tls"))
		}
	})
	switch {
	case err != nil:
		return false
	case failed != nil:
		if errors.Is(failed, syscall.ENOENT) { // all else is this socket's: it is closing, or of Multipath TCP
			kernelHasNoTLS.Store(true)
		}
		return false
	}
	kernelTLSIsHere.Store(true)
	return version != tls.VersionTLS13 || kernelRekeys()
}

// setKernelKey gives a socket its sending key: struct tls12_crypto_info_…. It reports whether the socket took it. With an error
// nobody knows who has it, and nothing more may be sealed or sent.
func setKernelKey(raw syscall.RawConn, key *libssl.KernelKey) (took bool, err error) {
	cipher, ok := kernelCiphers[key.Suite]
	if !ok {
		return false, nil
	}
	info := make([]byte, 0, 64)
	info = binary.NativeEndian.AppendUint16(info, tls.VersionTLS12+uint16(key.TLS13))
	info = binary.NativeEndian.AppendUint16(info, cipher)
	const salt = 4
	if cipher == tlsChaCha20Poly1305 {
		info = append(info, key.IV[:]...)
		info = append(info, key.Key[:key.KeyLen]...)
	} else {
		info = append(info, key.IV[salt:]...)
		info = append(info, key.Key[:key.KeyLen]...)
		info = append(info, key.IV[:salt]...)
	}
	info = append(info, key.Seq[:]...)
	defer clear(info)
	var errno syscall.Errno
	controlErr := raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_SETSOCKOPT, fd, solTLS, tlsTX, uintptr(unsafe.Pointer(&info[0])),
			uintptr(len(info)), 0)
		if errno == 0 {
			err = checkOption(fd, solTLS, tlsTX, info[:4]) // version and cipher
		}
	})
	runtime.KeepAlive(info)
	if err != nil {
		return false, fmt.Errorf("ossl: the kernel took a key and doesn't show it: %w", err)
	}
	return controlErr == nil && errno == 0, nil
}

// sendKernelRecord sends a record that is no application data.
func sendKernelRecord(raw syscall.RawConn, contentType uint8, text []byte) error {
	control := make([]byte, syscall.CmsgSpace(1))
	header := (*syscall.Cmsghdr)(unsafe.Pointer(&control[0]))
	header.Level, header.Type = solTLS, tlsSetRecordType
	header.SetLen(syscall.CmsgLen(1))
	control[syscall.CmsgLen(0)] = contentType
	var n int
	var failed error
	err := raw.Write(func(fd uintptr) bool {
		for {
			n, failed = syscall.SendmsgN(int(fd), text, control, nil, 0)
			if failed != syscall.EINTR {
				return failed != syscall.EAGAIN
			}
		}
	})
	var op *net.OpError
	switch {
	case errors.As(err, &op): // RawConn's; the caller makes one
		return op.Err
	case err != nil:
		return err
	case failed != nil:
		return os.NewSyscallError("sendmsg", failed)
	case n < len(text):
		return io.ErrShortWrite
	}
	return nil
}
