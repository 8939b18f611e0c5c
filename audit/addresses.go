package audit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// maxAddresses bounds the addresses of one name.
const maxAddresses = 32

// reach finds the addresses of the target, connects to each, and chooses the first that answers.
func (r *run) reach(ctx context.Context) error {
	addresses, err := r.resolve(ctx)
	if err != nil {
		return err
	}
	r.facts.Addresses = make([]AddressFacts, len(addresses))
	r.facts.reachAll(ctx, r, addresses)
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range r.facts.Addresses {
		if r.facts.Addresses[i].State == Tested {
			r.address = r.facts.Addresses[i].Address
			r.facts.Address = r.address
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, r.facts.Addresses[0].Reason)
}

// reachAll connects to all addresses, a few at a time. With OneAddress it stops at the first that
// answers.
func (f *Facts) reachAll(ctx context.Context, r *run, addresses []netip.AddrPort) {
	var wait sync.WaitGroup
	turns := make(chan struct{}, 4)
	if r.options.OneAddress {
		turns = make(chan struct{}, 1)
	}
	done := false // of OneAddress, under the turn
	for i, address := range addresses {
		f.Addresses[i].Address = address.String()
		turns <- struct{}{}
		if r.options.OneAddress && done {
			f.Addresses[i].Outcome = Outcome{NotTested, "only one address was to be audited"}
			<-turns
			continue
		}
		wait.Go(func() {
			defer func() { <-turns }()
			f.Addresses[i].Outcome, f.Addresses[i].RoundTrip = r.connect(ctx, address.String())
			if r.options.OneAddress {
				done = f.Addresses[i].State == Tested
			}
		})
	}
	wait.Wait()
}

// connect connects to an address, and once again if that fails.
func (r *run) connect(ctx context.Context, address string) (Outcome, *Interval) {
	for try := 0; ; try++ {
		start := time.Now()
		conn, err := r.dial(ctx, address)
		if err == nil {
			ms := float64(time.Since(start)) / float64(time.Millisecond)
			conn.Close()
			return Outcome{State: Tested}, &Interval{ms, ms, ms}
		}
		var slow net.Error
		switch {
		case errors.Is(err, errBudget):
			return Outcome{NotTested, err.Error()}, nil
		case r.options.Dial == nil && ctx.Err() == nil && routeless(address):
			return Outcome{NotTested, "this host has no route to it: " + err.Error()}, nil
		case ctx.Err() != nil, try == 1, errors.As(err, &slow) && slow.Timeout(): // TCP itself tried again
			return Outcome{Failed, err.Error()}, nil
		}
		r.count(func(c *Cost) { c.Retried++ })
		if err := sleep(ctx, lostPause); err != nil {
			return Outcome{Failed, err.Error()}, nil
		}
	}
}

// routeless reports whether this host has no route to an address, as hosts without IPv6 have none
// to IPv6's. That is no fact about the server. Connecting a UDP socket sends no packet.
var routeless = func(address string) bool {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return true
	}
	conn.Close()
	return false
}

// resolve returns the target's addresses, in the resolver's order.
func (r *run) resolve(ctx context.Context) ([]netip.AddrPort, error) {
	if len(r.options.Addresses) > 0 {
		return r.options.Addresses, nil
	}
	if ip, err := netip.ParseAddr(r.target.Host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), r.target.Port)}, nil
	}
	resolver := r.options.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	lookup, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	ips, err := resolver.LookupNetIP(lookup, "ip", r.target.Host)
	if err != nil {
		return nil, err
	}
	var addresses []netip.AddrPort
	seen := map[netip.Addr]bool{}
	for _, ip := range ips {
		if ip = ip.Unmap(); !seen[ip] && len(addresses) < maxAddresses {
			seen[ip] = true
			addresses = append(addresses, netip.AddrPortFrom(ip, r.target.Port))
		}
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: net.JoinHostPort(r.target.Host, strconv.Itoa(int(r.target.Port)))}
	}
	return addresses, nil
}
