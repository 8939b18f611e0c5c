package promossl_test

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
	"github.com/ossl-go/ossl/promossl"
	"github.com/ossl-go/ossl/session"
)

// A program exports the statistics of all its connections.
func Example() {
	prometheus.MustRegister(promossl.NewCollector(metrics.Process))
	http.Handle("/metrics", promhttp.Handler())
}

// A program has two servers with statistics of their own.
func ExampleNewCollector() {
	var contexts metrics.Contexts
	prometheus.MustRegister(promossl.NewCollector(&contexts))

	for name, config := range map[string]*tls.Config{"web": {}, "mail": {}} { // with certificates
		ctx, err := ossl.NewContext(config)
		if err != nil {
			panic(err)
		}
		remove, err := contexts.Add(name, ctx) // ossl_tls_open_connections{context="web"} and others
		if err != nil {
			panic(err)
		}
		defer remove()
	}
}

// A program exports since when its ticket keys are in use.
func ExampleNewWatchCollector() {
	ring := new(session.Ring) // for ossl.WithTicketKeys
	watch := ossl.NewWatch(func() error {
		keys, err := session.ReadTicketKeyFiles("ticket.key")
		if err != nil {
			return err
		}
		return ring.Set(keys...)
	}, "ticket.key")
	prometheus.MustRegister(promossl.NewWatchCollector("ticket keys", watch)) // ossl_watch_failing{watch="ticket keys"} and others
	if err := watch.Start(context.Background(), 0); err != nil {
		panic(err)
	}
}
