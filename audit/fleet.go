package audit

import (
	"context"
	"fmt"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// maxFleet bounds the connections of the fleet matrix.
const maxFleet = 28

// fleet offers sessions of each address to the others. With few addresses it tries all pairs, and
// else each address and the next one: a ring, which shows each group of addresses that shares its
// sessions with no other.
func (r *run) fleet(ctx context.Context) error {
	var addresses []string
	for _, a := range r.facts.Addresses {
		if a.State == Tested {
			addresses = append(addresses, a.Address)
		}
	}
	if len(addresses) < 2 || r.options.OneAddress {
		return nil
	}
	f := &r.facts.Resumption
	var works []kind
	for _, k := range kinds {
		if facts := k.facts(f); facts.State == Tested && facts.Hits > 0 {
			works = append(works, k)
		}
	}
	left := maxFleet
	for _, k := range works {
		n := len(addresses)
		pairs := allPairs(n)
		if n+len(pairs) > maxFleet/len(works) {
			pairs = ring(n)
		}
		if n+len(pairs) > left {
			f.Fleet = append(f.Fleet, FleetFacts{Kind: k.name, From: addresses[0], To: addresses[1],
				Outcome: Outcome{NotTested, fmt.Sprintf("the name has %d addresses; this would need more than %d connections", n, maxFleet)}})
			continue
		}
		left -= n + len(pairs)
		if err := r.fleetOf(ctx, k, addresses, pairs); err != nil {
			return err
		}
	}
	return nil
}

func allPairs(n int) (pairs [][2]int) {
	for from := range n {
		for to := range n {
			if from != to {
				pairs = append(pairs, [2]int{from, to})
			}
		}
	}
	return pairs
}

func ring(n int) (pairs [][2]int) {
	for from := range n {
		pairs = append(pairs, [2]int{from, (from + 1) % n})
	}
	return pairs
}

// fleetOf fills the cells of one kind.
func (r *run) fleetOf(ctx context.Context, k kind, addresses []string, pairs [][2]int) error {
	sessions := make([][]*client.Session, len(addresses))
	for _, pair := range pairs {
		from, to := pair[0], pair[1]
		cell := FleetFacts{Kind: k.name, From: addresses[from], To: addresses[to]}
		cell.State = Tested
		if sessions[from] == nil {
			_, got, err := k.connect(ctx, r, addresses[from], nil)
			if err != nil {
				cell.Outcome = shakeOutcome(k.name[:len("TLS 1.3")], err)
			} else if len(got) == 0 {
				cell.Outcome = Outcome{NotTested, "the first address gives no session"}
			}
			sessions[from] = got
		}
		if cell.State == Tested {
			session := sessions[from][0]
			if k.version == hello.TLS13 { // one ticket, one try
				sessions[from] = sessions[from][1:]
				if len(sessions[from]) == 0 {
					sessions[from] = nil
				}
			}
			resumed, _, err := k.connect(ctx, r, addresses[to], session)
			if err != nil {
				cell.Outcome = shakeOutcome(k.name[:len("TLS 1.3")], err)
			} else if cell.Tries = 1; resumed {
				cell.Hits = 1
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.facts.Resumption.Fleet = append(r.facts.Resumption.Fleet, cell)
	}
	return nil
}
