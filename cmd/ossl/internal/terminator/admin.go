package terminator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ossl-go/ossl/metrics"
	"github.com/ossl-go/ossl/promossl"
)

// startAdmin serves the administrator's requests: plain HTTP on an address of its own. There are
// metrics only if package ossl, whose statistics they are, serves the connections.
func (s *Server) startAdmin(l net.Listener, engine string) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	if engine == "ossl" {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collector{s}, promossl.NewCollector(metrics.Process), collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	}
	s.adminAddr = l.Addr()
	if tcp, ok := s.adminAddr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		s.log.Warn("admin is not on a loopback address: all who reach it can read the metrics, without TLS", "address", tcp.String())
	}
	s.admin = newAdmin(l, mux)
	go s.admin.serve(s.log)
}

// An admin serves plain HTTP: the administrator's requests, or requests that are redirected.
type admin struct {
	listener net.Listener
	http     *http.Server
	served   chan struct{}  // closed when nothing is accepted any more
	open     sync.WaitGroup // connections
}

func newAdmin(l net.Listener, handler http.Handler) *admin {
	a := &admin{listener: l, served: make(chan struct{})}
	a.http = &http.Server{Handler: handler, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 8 << 10,
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				a.open.Add(1)
			case http.StateClosed:
				a.open.Done()
			}
		}}
	return a
}

func (a *admin) serve(log *slog.Logger) {
	defer close(a.served)
	if err := a.http.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		log.Error("admin", "error", err)
	}
}

// stop closes the listener, and the connections as they become idle.
func (a *admin) stop() {
	_ = a.listener.Close()
	a.http.SetKeepAlivesEnabled(false)
}

// end waits for the clients that have connected, until ctx is done. Each of them has the timeouts of
// the http.Server. Shutdown would not answer clients whose request is still coming.
func (a *admin) end(ctx context.Context) {
	a.stop()
	<-a.served
	ended := make(chan struct{})
	go func() {
		a.open.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	_ = a.http.Close()
}

// health answers 200 while the server accepts connections, and 503 when it stops, so that a load
// balancer sends no more. If another process has the sockets, the server as a whole doesn't stop.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if s.draining.Load() && !s.handed.Load() {
		http.Error(w, "ending", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
