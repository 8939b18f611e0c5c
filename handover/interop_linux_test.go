//go:build cgo || ossl_nocgo

package handover_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// javaLines sends the lines of its input, and prints those that come back.
const javaLines = `
import java.io.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

public class Lines {
	public static void main(String[] args) throws Exception {
		KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
		store.load(null, null);
		try (InputStream in = new FileInputStream(args[1])) {
			store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
		}
		TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		trust.init(store);
		SSLContext context = SSLContext.getInstance("TLS");
		context.init(null, trust.getTrustManagers(), null);
		SSLSocket s = (SSLSocket) context.getSocketFactory().createSocket("127.0.0.1", Integer.parseInt(args[0]));
		s.setEnabledProtocols(new String[] {args[2]});
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		BufferedReader back = new BufferedReader(new InputStreamReader(s.getInputStream()));
		for (String line; (line = in.readLine()) != null; ) {
			s.getOutputStream().write((line + "\n").getBytes());
			System.out.println(back.readLine());
		}
	}
}
`

// TestInteropUpgrades: clients of other libraries notice no upgrade.
func TestInteropUpgrades(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Java: only without -short")
	}
	f := startFleet(t)
	_, port, err := net.SplitHostPort(f.addr)
	if err != nil {
		t.Fatal(err)
	}
	java := filepath.Join(t.TempDir(), "Lines.java")
	if err := os.WriteFile(java, []byte(javaLines), 0o600); err != nil {
		t.Fatal(err)
	}
	clients := map[string][]string{}
	for _, version := range []string{"1.2", "1.3"} {
		clients["openssl "+version] = []string{"openssl", "s_client", "-quiet", "-connect", f.addr, "-servername", tlstest.ServerName,
			"-CAfile", f.ca, "-verify_return_error", "-tls" + strings.ReplaceAll(version, ".", "_")}
		clients["gnutls-cli "+version] = []string{"gnutls-cli", "--x509cafile", f.ca, "--sni-hostname", tlstest.ServerName,
			"--verify-hostname", tlstest.ServerName, "--priority", "NORMAL:-VERS-ALL:+VERS-TLS" + version, "--port", port, "127.0.0.1"}
		clients["java "+version] = []string{"java", java, port, f.ca, "TLSv" + version}
	}
	talks := map[string]func(t *testing.T, line string){}
	for name, args := range clients {
		t.Run(name, func(t *testing.T) { tlstest.Tool(t, args[0]) })
		if talk := converse(t, args); talk != nil {
			talks[name] = talk
		}
	}
	for i := range 4 {
		for name, talk := range talks {
			t.Run(fmt.Sprintf("%s after %d upgrades", name, i), func(t *testing.T) { talk(t, fmt.Sprintf("line %d of %s", i, name)) })
		}
		if t.Failed() {
			return
		}
		pids := f.all()
		if err := syscall.Kill(pids[len(pids)-1], syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		if left := f.await("left", i+1); left[2] != fmt.Sprint(len(talks)) {
			t.Errorf("upgrade %d: %v", i, left)
		}
		f.await("took", i+1)
	}
}

// converse starts a client. The function that it returns sends a line, and waits for the same line. It
// returns nil if the program isn't installed.
func converse(t *testing.T, args []string) func(t *testing.T, line string) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil
	}
	cmd := tlstest.Child(t, path, args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	return func(t *testing.T, line string) {
		t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			if lines.Text() == line {
				return
			}
		}
		t.Fatalf("%q didn't come back: %v", line, lines.Err())
	}
}
