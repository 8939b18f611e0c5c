//go:build cgo || ossl_nocgo

package metrics_test

import (
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/metrics"
)

func TestMain(m *testing.M) { ossltest.Main(m, nil) }

// counts returns the number of handshakes and of open connections of a name.
func counts(s metrics.Source, name string) (handshakes, open uint64) {
	for _, n := range s.Stats() {
		if n.Name != name {
			continue
		}
		for _, h := range n.Stats.Handshakes {
			handshakes += h.Count
		}
		open = n.Stats.OpenConns
	}
	return handshakes, open
}

func want(t *testing.T, s metrics.Source, name string, handshakes, open uint64) {
	t.Helper()
	if h, o := counts(s, name); h != handshakes || o != open {
		t.Errorf("%s: %d handshakes and %d open connections, want %d and %d", name, h, o, handshakes, open)
	}
}

// connect makes a connection and returns both sides.
func connect(t *testing.T, client, server *ossl.Context) (c, s *ossl.Conn) {
	rawClient, rawServer := tlstest.Loopback()
	c, s = client.Client(rawClient, ""), server.Server(rawServer)
	tlstest.Shake(t, c, s)
	t.Cleanup(func() { _, _ = c.Close(), s.Close() })
	return c, s
}

// TestContexts replaces a Context while connections of the old one are open: no count is lost.
func TestContexts(t *testing.T) {
	client := ossltest.NewContext(t, tlstest.ClientConfig())
	first, second := ossltest.NewContext(t, tlstest.ServerConfig()), ossltest.NewContext(t, tlstest.ServerConfig())
	var contexts metrics.Contexts
	want(t, &contexts, "web", 0, 0)
	removeFirst := add(t, &contexts, "web", first)
	add(t, &contexts, "other", client)

	_, open := connect(t, client, first)
	removeFirst()
	want(t, &contexts, "web", 1, 1)
	add(t, &contexts, "web", second)
	connect(t, client, second)
	want(t, &contexts, "web", 2, 2)
	_ = open.Close()
	want(t, &contexts, "web", 2, 1)
	removeFirst()
	connect(t, client, first) // too late to be counted
	want(t, &contexts, "web", 2, 1)
	want(t, &contexts, "other", 3, 3)

	if _, err := contexts.Add("web", first); err == nil {
		t.Error("a Context was added again, and counts twice")
	}
	if names := contexts.Stats(); len(names) != 2 || names[0].Name != "other" || names[1].Name != "web" {
		t.Errorf("%+v", names)
	}
}

func add(t *testing.T, contexts *metrics.Contexts, name string, ctx *ossl.Context) (remove func()) {
	t.Helper()
	remove, err := contexts.Add(name, ctx)
	if err != nil {
		t.Fatal(err)
	}
	return remove
}

func TestAddRefuses(t *testing.T) {
	ctx := ossltest.NewContext(t, tlstest.ClientConfig())
	var contexts metrics.Contexts
	add(t, &contexts, "web", ctx)
	for _, c := range []struct {
		name string
		key  string
		ctx  *ossl.Context
	}{
		{"no name", "", ossltest.NewContext(t, tlstest.ClientConfig())},
		{"not UTF-8", "\xff", ossltest.NewContext(t, tlstest.ClientConfig())},
		{"no Context", "web", nil},
		{"the Context again", "web", ctx},
		{"the Context with another name", "other", ctx},
	} {
		t.Run(c.name, func(t *testing.T) {
			var refused *ossl.ConfigError
			if remove, err := contexts.Add(c.key, c.ctx); !errors.As(err, &refused) || remove != nil {
				t.Errorf("Add returns %v", err)
			}
		})
	}
}

// TestProcess checks that the process's statistics have no name.
func TestProcess(t *testing.T) {
	before, _ := counts(metrics.Process, "")
	connect(t, ossltest.NewContext(t, tlstest.ClientConfig()), ossltest.NewContext(t, tlstest.ServerConfig()))
	if after, _ := counts(metrics.Process, ""); after < before+2 {
		t.Errorf("%d handshakes, want at least %d", after, before+2)
	}
}

// TestConcurrentUse adds, removes and reads at a time.
func TestConcurrentUse(t *testing.T) {
	const contextsNumber, failures = 4, 3
	var contexts metrics.Contexts
	var wait sync.WaitGroup
	for range contextsNumber {
		ctx := ossltest.NewContext(t, tlstest.ServerConfig())
		wait.Go(func() {
			remove, err := contexts.Add("web", ctx)
			if err != nil {
				t.Error(err)
				return
			}
			for range failures {
				conn, _ := net.Pipe()
				_ = conn.Close()
				_ = ctx.Server(conn).Handshake()
				contexts.Stats()
			}
			remove()
		})
	}
	wait.Wait()
	var failed uint64
	for _, f := range contexts.Stats()[0].Stats.Failures {
		failed += f.Count
	}
	if failed != contextsNumber*failures {
		t.Errorf("%d failures were counted, want %d", failed, contextsNumber*failures)
	}
}
