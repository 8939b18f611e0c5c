//go:build (cgo || ossl_nocgo) && linux && amd64

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envTestLies asks a process of TestKernelTLSLies for a lie: "all", or "keys".
const envTestLies = "OSSL_TEST_KERNEL_LIES"

// A filterStep is a struct sock_filter: linux/filter.h.
type filterStep struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// lie makes this process's setsockopt(2) for TLS_TX succeed and do nothing, and if all is set, for
// TCP_ULP too: seccomp(2). It can't be undone.
func lie(all bool) error {
	const (
		load, equal, ret = 0x20, 0x15, 0x06
		succeed, allow   = 0x00050000, 0x7fff0000
		arguments        = 16
	)
	ulp := uint32(tcpULP)
	if !all {
		ulp = 1 << 31
	}
	steps := []filterStep{
		{load, 0, 0, 0}, {equal, 0, 6, syscall.SYS_SETSOCKOPT},
		{load, 0, 0, arguments + 8}, {equal, 3, 0, 282 /* SOL_TLS */}, {equal, 0, 3, syscall.IPPROTO_TCP},
		{load, 0, 0, arguments + 16}, {equal, 0, 1, ulp},
		{ret, 0, 0, succeed},
		{ret, 0, 0, allow},
	}
	program := struct {
		n     uint16
		steps *filterStep
	}{uint16(len(steps)), &steps[0]}
	const noNewPrivileges, seccomp, setFilter, allThreads = 38, 317, 1, 1
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if r, _, errno := syscall.RawSyscall(seccomp, setFilter, allThreads, uintptr(unsafe.Pointer(&program))); r != 0 {
		return errno
	}
	return nil
}

// TestKernelTLSLies checks that a kernel that accepts options it doesn't know, as gVisor does, gets
// no data in the clear.
func TestKernelTLSLies(t *testing.T) {
	if ossltest.InFIPS {
		t.Skip("OSSL_TEST_FIPS: FIPS mode refuses kernel TLS")
	}
	what := os.Getenv(envTestLies)
	if what == "" {
		for _, what := range []string{"all", "keys"} {
			t.Run(what, func(t *testing.T) {
				self := tlstest.Self()
				cmd := exec.CommandContext(t.Context(), self[0], append(self[1:], "-test.run=^TestKernelTLSLies$", "-test.v")...)
				cmd.Env = append(os.Environ(), envTestLies+"="+what)
				if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("nothing in the clear")) {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		return
	}
	tls12, tls13 := kernelHas()
	if err := lie(what == "all"); err != nil {
		t.Fatal("seccomp(2):", err)
	}
	for version, has := range map[uint16]bool{tls.VersionTLS12: tls12, tls.VersionTLS13: tls13} {
		a, b := tlstest.Loopback()
		defer a.Close()
		clients := tlstest.ClientConfig()
		clients.MaxVersion = version
		own, peer := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithKernelTLS()).Server(b), tls.Client(a, clients)
		tlstest.Shake(t, peer, own)
		const secret = "nobody else may read this"
		_, err := own.Write([]byte(secret))
		if fails := what == "keys" && has && !ossltest.RecordsByLibssl(); (err != nil) != fails {
			t.Errorf("%s: %v, want an error: %v", tls.VersionName(version), err, fails)
		}
		own.Close()
		a.SetReadDeadline(time.Now().Add(10 * time.Second))
		var wire bytes.Buffer
		_, _ = wire.ReadFrom(a)
		if bytes.Contains(wire.Bytes(), []byte(secret)) || own.KernelTLS() || err == nil && wire.Len() < len(secret) {
			t.Errorf("%s: KernelTLS is %v, and on the wire are %q", tls.VersionName(version), own.KernelTLS(), wire.Bytes())
		}
	}
	if len(ossl.KernelTLS()) > 0 {
		t.Errorf("KernelTLS returned %x", ossl.KernelTLS())
	}
	t.Log("nothing in the clear")
}
