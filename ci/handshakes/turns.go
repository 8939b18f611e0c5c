//go:build linux

package main

import (
	"context"
	"time"

	"github.com/ossl-go/ossl/ci/internal/load"
)

// requestSize is the size of requests and of the bodies of answers.
const requestSize = 1024

// take does a turn.
func (r *runner) take(ctx context.Context, t turn) (sample, error) {
	s := r.servers[t.row.server(t.stack)]
	v := load.Visit{Program: r.client, Port: s.port, CA: r.file("ca.pem"), Version: t.row.version, Way: t.row.way,
		Kind: t.row.kind, Clients: r.clients, Most: r.full, Turn: r.turn}
	if t.row.kind == "resumed" {
		v.Most = r.resumed
	}
	if t.row.request {
		v.Port, v.Request = s.requestPort, requestSize
	}
	pids := s.processes()
	var before time.Duration
	n, took, err := v.Run(ctx, 3*patience, func() (err error) {
		before, err = load.Used(pids)
		return err
	})
	if err != nil {
		return sample{}, err
	}
	after, err := load.Used(pids)
	by := float64(n)
	return sample{float64(after-before) / by / float64(time.Microsecond), by / took.Seconds()}, err
}
