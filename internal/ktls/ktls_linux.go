//go:build linux && !386 && !s390x

package ktls

import (
	"bytes"
	"crypto/subtle"
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

// ciphers maps cipher suites to the cipher types of linux/tls.h.
var ciphers = map[uint16]uint16{
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
	0x00a8: tlsAESGCM128,        // TLS_PSK_WITH_AES_128_GCM_SHA256
	0x00a9: tlsAESGCM256,        // TLS_PSK_WITH_AES_256_GCM_SHA384
	0xccab: tlsChaCha20Poly1305, // TLS_PSK_WITH_CHACHA20_POLY1305_SHA256
	0xccac: tlsChaCha20Poly1305, // TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256
}

// The kernel's abilities, as far as they are known.
var (
	absent      atomic.Bool // no TLS at all: each further attempt could start modprobe
	present     atomic.Bool // so that canRekey gets an answer
	rekeysKnown atomic.Pointer[bool]
)

// canRekey reports whether a socket's key can be changed: such a kernel counts the changes.
func canRekey() bool {
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

// checkOption returns an error unless a socket's option begins with want. Some kernels (gVisor)
// accept every option and do nothing: with them, data would leave in the clear.
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

// Begin prepares a socket for keys of a TLS version, and reports whether it can take any: TCP_ULP.
// Without a key, the socket works as before.
func Begin(raw syscall.RawConn, version uint16) bool {
	if absent.Load() || version == tls.VersionTLS13 && present.Load() && !canRekey() {
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
		if errors.Is(failed, syscall.ENOENT) { // other errors concern this socket: it is closing, or uses Multipath TCP
			absent.Store(true)
		}
		return false
	}
	present.Store(true)
	return version != tls.VersionTLS13 || canRekey()
}

// Lengths in the kernel's description of a key.
const infoHeader, salt, seqLen = 4, 4, 8

// infoOf returns the kernel's description of a key, struct tls12_crypto_info_…, or nil if it has none for the
// suite.
func infoOf(key *libssl.KernelKey) []byte {
	cipher, ok := ciphers[key.Suite]
	if !ok {
		return nil
	}
	info := make([]byte, 0, 64)
	info = binary.NativeEndian.AppendUint16(info, tls.VersionTLS12+uint16(key.TLS13))
	info = binary.NativeEndian.AppendUint16(info, cipher)
	if cipher == tlsChaCha20Poly1305 {
		info = append(info, key.IV[:]...)
		info = append(info, key.Key[:key.KeyLen]...)
	} else {
		info = append(info, key.IV[salt:]...)
		info = append(info, key.Key[:key.KeyLen]...)
		info = append(info, key.IV[:salt]...)
	}
	info = append(info, key.Seq[:]...)
	return info
}

// SetKey gives a socket its sending key: struct tls12_crypto_info_…. It reports whether the socket
// took it. After an error it is unknown whether the kernel has the key, and nothing more may be
// sealed or sent.
func SetKey(raw syscall.RawConn, key *libssl.KernelKey) (took bool, err error) {
	info := infoOf(key)
	if info == nil {
		return false, nil
	}
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

// Shows reports whether the kernel shows a socket's sending key of a suite.
func Shows(raw syscall.RawConn, suite uint16) bool {
	key := libssl.KernelKey{Suite: suite, KeyLen: 32}
	if ciphers[suite] == tlsAESGCM128 {
		key.KeyLen = 16
	}
	got, err := current(raw, infoOf(&key))
	clear(got)
	return err == nil
}

// Sealed returns the number of records that the kernel has sealed with a socket's key. It is an error if that is
// not key.
func Sealed(raw syscall.RawConn, key *libssl.KernelKey) (n uint64, err error) {
	want := infoOf(key)
	defer clear(want)
	got, err := current(raw, want)
	if err != nil {
		return 0, err
	}
	defer clear(got)
	n = binary.BigEndian.Uint64(got[len(got)-seqLen:])
	if key.TLS13 == 0 && ciphers[key.Suite] != tlsChaCha20Poly1305 { // the kernel counts in the explicit nonce
		clear(want[infoHeader : infoHeader+8])
		clear(got[infoHeader : infoHeader+8])
	}
	if subtle.ConstantTimeCompare(want[:len(want)-seqLen], got[:len(got)-seqLen]) != 1 {
		return 0, errors.New("the socket has another key")
	}
	return n, nil
}

// current returns the kernel's description of a socket's sending key, in the form of like, which may be nil.
func current(raw syscall.RawConn, like []byte) ([]byte, error) {
	if like == nil {
		return nil, errors.ErrUnsupported
	}
	info := make([]byte, len(like))
	size := uint32(len(info))
	var errno syscall.Errno
	err := raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, solTLS, tlsTX, uintptr(unsafe.Pointer(&info[0])),
			uintptr(unsafe.Pointer(&size)), 0)
	})
	runtime.KeepAlive(info)
	switch {
	case err != nil:
		return nil, err
	case errno != 0:
		return nil, os.NewSyscallError("getsockopt", errno)
	case int(size) != len(info):
		return nil, errors.ErrUnsupported
	}
	return info, nil
}

// Send sends text as a record of a content type: sendmsg(2) with TLS_SET_RECORD_TYPE. First the
// kernel sends the application data that it holds back for a record that isn't full. An empty text
// does only that.
func Send(raw syscall.RawConn, contentType uint8, text []byte) error {
	control := make([]byte, syscall.CmsgSpace(1))
	header := (*syscall.Cmsghdr)(unsafe.Pointer(&control[0]))
	header.Level, header.Type = solTLS, tlsSetRecordType
	header.SetLen(syscall.CmsgLen(1))
	control[syscall.CmsgLen(0)] = contentType
	// syscall.SendmsgN would add a byte to an empty text.
	message := syscall.Msghdr{Control: &control[0]}
	message.SetControllen(len(control))
	if len(text) > 0 {
		part := syscall.Iovec{Base: &text[0]}
		part.SetLen(len(text))
		message.Iov, message.Iovlen = &part, 1
	}
	var n uintptr
	var failed error
	err := raw.Write(func(fd uintptr) bool {
		for {
			var errno syscall.Errno
			if n, _, errno = syscall.Syscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&message)), 0); errno == 0 {
				failed = nil
				return true
			}
			if failed = errno; errno != syscall.EINTR {
				return errno != syscall.EAGAIN
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
	case int(n) < len(text):
		return io.ErrShortWrite
	}
	return nil
}
