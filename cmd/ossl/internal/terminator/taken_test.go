package terminator_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestCutAfterData: if one side is cut off, the other one gets all data that has come until then, also
// if it begins to read late, and then a reset.
func TestCutAfterData(t *testing.T) {
	data := cutData()[:1_000_000]
	// taken reads all, and checks it and its end.
	taken := func(t *testing.T, conn io.Reader, mayEnd bool) {
		t.Helper()
		got, err := io.ReadAll(conn)
		if !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if !errors.Is(err, syscall.ECONNRESET) && !(mayEnd && err == nil) {
			t.Errorf("then %v, want a reset", err)
		}
	}
	for name, end := range map[string]func(conn *tls.Conn){
		"end of TCP": func(conn *tls.Conn) { _ = conn.NetConn().Close() },
		"garbage":    func(conn *tls.Conn) { _, _ = io.WriteString(conn.NetConn(), "garbage garbage garbage") },
	} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run("client/"+name+"/"+network, func(t *testing.T) {
				w := newWorld(t)
				l, to := listen(t), ""
				if network == "unix" {
					path := shortFolder(t) + "/s"
					var err error
					if l, err = net.Listen("unix", path); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = l.Close() })
					to = "unix:" + path
				} else {
					to = l.Addr().String()
				}
				r := w.start(w.config("ossl", tcp(to)))
				conn := r.mustDial(nil)
				sent := make(chan error, 1)
				go func() {
					_, err := conn.Write(data)
					end(conn)
					sent <- err
				}()
				backend := accept(t, l)
				if network == "tcp" { // which has room for all of it; a Unix socket hasn't
					if err := <-sent; err != nil {
						t.Fatal(err)
					}
				}
				taken(t, backend, network == "unix")
			})
		}
	}
	t.Run("backend of TLS", func(t *testing.T) {
		w := newWorld(t)
		l := listen(t)
		r := w.start(w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "tls://" + l.Addr().String(), Name: "localhost",
			CA: filepath.Join(w.dir, "ca", "ca.pem")}}))
		secure := &tls.Config{Certificates: w.certificates(w.pair(false, "localhost"))}
		sent := make(chan error, 1)
		go func() {
			raw, err := l.Accept()
			if err == nil {
				_, err = tls.Server(raw, secure).Write(data)
				_ = raw.Close()
			}
			sent <- err
		}()
		conn := r.mustDial(nil)
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		taken(t, conn, false)
	})
}
