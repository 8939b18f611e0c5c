package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// probeAddresses makes one handshake with each address that can be reached, if there are several.
func probeAddresses(ctx context.Context, r *run) error {
	reached := 0
	for _, a := range r.facts.Addresses {
		if a.State == Tested {
			reached++
		}
	}
	if reached < 2 {
		return nil
	}
	for i := range r.facts.Addresses {
		a := &r.facts.Addresses[i]
		if a.State != Tested {
			continue
		}
		err := r.compare(ctx, a)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.TLSError = err.Error()
		}
	}
	return nil
}

// compare makes a TLS 1.3 handshake with an address, or a TLS 1.2 handshake if the server lacks TLS 1.3.
func (r *run) compare(ctx context.Context, a *AddressFacts) error {
	var err error
	for _, version := range []uint16{hello.TLS13, hello.TLS12} {
		config := &client.Config{Hello: client.Default(r.serverName(), version)}
		var conn *shaken
		if conn, err = r.shake(ctx, a.Address, version, config); err == nil {
			state := conn.State
			conn.Close()
			a.Version, a.Suite = hello.VersionName(state.Version), hello.SuiteName(state.Suite)
			if state.Group != 0 {
				a.Group = hello.GroupName(state.Group)
			}
			if len(state.Certificates) > 0 {
				sum := sha256.Sum256(state.Certificates[0])
				a.Certificate = hex.EncodeToString(sum[:])
			}
			return nil
		}
		if errors.Is(err, errLost) || errors.Is(err, errBudget) || ctx.Err() != nil {
			return err
		}
	}
	var alert *client.AlertError
	if errors.As(err, &alert) {
		a.Refused = alert.Alert.String()
		return nil
	}
	return err
}
