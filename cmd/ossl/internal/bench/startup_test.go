package bench

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/startup"
)

// BenchmarkStart runs a program that makes one server, one client and one handshake, and exits, on
// crypto/tls, on ossl, and in C on the same libssl (floor/startup). The time is processor time, the
// program loader's included.
func BenchmarkStart(b *testing.B) {
	identity := b.TempDir()
	writeIdentity(b, identity)
	benchmarkStart(b, []string{"std", "ossl", "c"}, identity)
}

// BenchmarkStartClient is like BenchmarkStart with a server on crypto/tls in another process.
func BenchmarkStartClient(b *testing.B) {
	identity := b.TempDir()
	writeIdentity(b, identity)
	id, err := identityOf(P256)
	if err != nil {
		b.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{id.server}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	benchmarkStart(b, []string{"std", "ossl"}, identity, l.Addr().String())
}

// BenchmarkStartImport runs a program that imports the implementation and makes no connection.
func BenchmarkStartImport(b *testing.B) { benchmarkStart(b, []string{"std", "ossl"}) }

func benchmarkStart(b *testing.B, impls []string, args ...string) {
	for _, impl := range impls {
		b.Run("impl="+impl, func(b *testing.B) {
			program := filepath.Join(b.TempDir(), impl)
			build := []string{"go", "build", "-buildvcs=false", "-o", program, "./startup/" + impl}
			if impl == "c" {
				build = append(strings.Fields(cmp.Or(os.Getenv("CC"), "cc")), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o",
					program, "floor/startup/startup.c", "-ldl")
			}
			if _, err := exec.LookPath(build[0]); err != nil {
				b.Skipf("%s is not installed", build[0])
			}
			if out, err := exec.Command(build[0], build[1:]...).CombinedOutput(); err != nil {
				b.Fatalf("%s: %v\n%s", strings.Join(build, " "), err, out)
			}
			command, err := selfCommand()
			if err != nil {
				b.Fatal(err)
			}
			command = slices.Concat(command[:len(command)-1], []string{program}, args)
			if _, err := start(command); impl == "c" && err != nil { // the first run fills the system's caches
				b.Skip(err) // it finds fewer libraries than ossl
			}
			used := time.Duration(0)
			for b.Loop() {
				one, err := start(command)
				if err != nil {
					b.Fatal(err)
				}
				used += one
			}
			b.ReportMetric(float64(used)/float64(b.N), "ns/op")
		})
	}
}

// start runs a program and returns its processor time.
func start(command []string) (time.Duration, error) {
	cmd := exec.Command(command[0], command[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func writeIdentity(b *testing.B, dir string) {
	id, err := identityOf(P256)
	if err != nil {
		b.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(id.server.PrivateKey)
	if err != nil {
		b.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		startup.CertFile: {Type: "CERTIFICATE", Bytes: id.server.Certificate[0]},
		startup.KeyFile:  {Type: "PRIVATE KEY", Bytes: key},
		startup.RootFile: {Type: "CERTIFICATE", Bytes: id.root.Raw},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
