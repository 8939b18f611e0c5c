package audit

import (
	"context"
	"crypto/tls"
	"net"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// openConn counts the connections that are open.
type openConn struct {
	net.Conn
	open   *atomic.Int32
	closed atomic.Bool
}

func (c *openConn) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// TestAhead audits a server that is far away, with a bounded rate and without. The facts are the
// same, the server sees one and two connections at a time, and none is left.
func TestAhead(t *testing.T) {
	address := serveGo(t, &tls.Config{Certificates: []tls.Certificate{testcert.Root(testcert.Template{}).TLS()}})
	target, err := ParseTarget("tls://" + address)
	if err != nil {
		t.Fatal(err)
	}
	var want ProtocolFacts
	var cost int
	for _, test := range []struct {
		name  string
		rate  float64
		most  int32 // connections at a time
		extra int   // connections
	}{{name: "bounded", rate: 1e6, most: 1}, {name: "ahead", most: 2, extra: len(probes)}} {
		t.Run(test.name, func(t *testing.T) {
			var open, most atomic.Int32
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				if err := sleep(ctx, farTrip); err != nil {
					return nil, err
				}
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				most.Store(max(most.Load(), open.Add(1)))
				return &openConn{Conn: conn, open: &open}, nil
			}
			report, err := Check(t.Context(), target, Options{Dial: dial, Rate: test.rate, NoTiming: true, NoClients: true, NoDNS: true,
				NoHTTP: true})
			if err != nil {
				t.Fatal(err)
			}
			if n := open.Load(); n != 0 {
				t.Errorf("%d connections are open", n)
			}
			if n := most.Load(); n != test.most {
				t.Errorf("%d connections at a time", n)
			}
			if test.rate > 0 {
				want, cost = report.Facts.Protocols, report.Cost.Connections
			}
			if !reflect.DeepEqual(report.Facts.Protocols, want) {
				t.Errorf("versions, suites and groups differ: %+v", report.Facts.Protocols)
			}
			if n := report.Cost.Connections; n < cost || n > cost+test.extra {
				t.Errorf("%d connections, %d with a bounded rate", n, cost)
			}
		})
	}
}
