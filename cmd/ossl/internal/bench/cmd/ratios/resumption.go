package main

import (
	"fmt"
	"io"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// writeResumption writes the processor time of full and of resumed connections, of each implementation with itself.
func (r *results) writeResumption(w io.Writer) {
	var rows [][]string
	for _, n := range r.names {
		if n.base() != "Resumption" || n.key("server") != "std" || n != n.std() || n.key("resume") != "full" {
			continue
		}
		for _, impl := range []struct{ key, words string }{{"std", "crypto/tls"}, {"ossl", "ossl"}, {"c", "pure C"}} {
			full := n.with("server", impl.key).with("client", impl.key)
			for _, by := range []struct{ key, words string }{{"ticket", "ticket"}, {"id", "ID"}} {
				resumed := full.with("resume", by.key)
				saved := r.ratio(full, resumed, "server-ns/op")
				if saved.Rounds == 0 {
					continue
				}
				row := []string{fmt.Sprintf("TLS %s %s by %s, %s", n.key("version"), n.key("cert"), by.words, impl.words)}
				for _, unit := range []string{"client-ns/op", "server-ns/op"} {
					row = append(row, duration(r.median(full, unit)), duration(r.median(resumed, unit)))
				}
				rows = append(rows, append(row, saved.String()))
			}
		}
	}
	rounds.WriteMarkdown(w, []string{"processor time of a connection, full and resumed", "client: full", "resumed", "server: full",
		"resumed", "server: full / resumed"}, rows)
}
