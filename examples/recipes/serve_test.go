package recipes_test

import (
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/ossl-go/ossl/internal/recipetest"
)

// serveConns calls serve with each connection of l, until the test is done.
func serveConns(t *testing.T, l net.Listener, serve func(net.Conn)) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			all.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
}

// serveHTTP returns a function that starts an HTTPS server on crypto/tls.
func serveHTTP(handler http.Handler) func(*testing.T, *recipetest.Site) {
	return func(t *testing.T, site *recipetest.Site) {
		server := &http.Server{Handler: handler, TLSConfig: site.Config, ErrorLog: recipetest.NoLog}
		serving(t, server, func() error { return server.ServeTLS(site.Listener, "", "") })
	}
}

// serving runs serve until the test is done.
func serving(t *testing.T, server interface{ Close() error }, serve func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- serve() }()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
}
