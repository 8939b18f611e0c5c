package main

import (
	"fmt"
	"io"
)

// writeResumption writes the processor time of full and of resumed connections, of each implementation with itself.
func (r *results) writeResumption(w io.Writer) {
	wrote := false
	for _, n := range r.names {
		if n.base() != "Resumption" || n.key("server") != "std" || n != n.std() || n.key("resume") != "full" {
			continue
		}
		for _, impl := range []struct{ key, words string }{{"std", "crypto/tls"}, {"ossl", "ossl"}, {"c", "pure C"}} {
			full := n.with("server", impl.key).with("client", impl.key)
			for _, by := range []struct{ key, words string }{{"ticket", "ticket"}, {"id", "ID"}} {
				resumed := full.with("resume", by.key)
				if len(r.values[full]["server-ns/op"]) == 0 || len(r.values[resumed]["server-ns/op"]) == 0 {
					continue
				}
				if !wrote {
					fmt.Fprint(w, "\n| processor time of a connection, full and resumed | client: full | resumed | server: full | resumed ",
						"| server: full / resumed |\n|---|--:|--:|--:|--:|--:|\n")
					wrote = true
				}
				fmt.Fprintf(w, "| TLS %s %s by %s, %s |", n.key("version"), n.key("cert"), by.words, impl.words)
				for _, unit := range []string{"client-ns/op", "server-ns/op"} {
					fmt.Fprintf(w, " %s | %s |", duration(median(r.values[full][unit])), duration(median(r.values[resumed][unit])))
				}
				fmt.Fprintf(w, " **%.2f** |\n", median(r.values[full]["server-ns/op"])/median(r.values[resumed]["server-ns/op"]))
			}
		}
	}
}
