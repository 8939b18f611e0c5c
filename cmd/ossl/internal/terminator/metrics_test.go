package terminator_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestMetrics: the server's own metrics show its state, and their names and texts follow Prometheus's
// rules.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w, backend := newWorld(t), listen(t)
	site := tcp(backend.Addr().String())
	site.Pairs = []terminator.Pair{w.pair(false, "localhost")}
	config := w.config("ossl", site)
	config.Admin, config.Limits.PerAddress = "127.0.0.1:0", 1
	end := w.certificates(config.Sites[0].Pairs[0])[0].Leaf.NotAfter.Unix()
	r := w.start(config)
	_, admin := r.Addrs()
	expect := func(lines ...string) {
		t.Helper()
		var body string
		for late := time.Now().Add(patience); ; { // the client learns that it is refused before its place is free
			var status int
			status, body = get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
			missing := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
				return strings.Contains(body, "\nossl_serve_"+line)
			})
			if status == 200 && len(missing) == 0 {
				break
			}
			if time.Now().After(late) {
				t.Errorf("status %d, no %q in\n%s", status, missing, body)
				break
			}
		}
		problems, err := promlint.New(strings.NewReader(body)).Lint()
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "ossl_serve_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	expect("connections 0\n", `limited_connections_total{limit="per-address"} 0`, `reloads_total{result="succeeded"} 0`)
	r.mustDial(nil)
	accept(t, backend)
	if _, err := r.dial(nil); err == nil {
		t.Error("a second connection is accepted")
	}
	changed := *config
	if err := r.Reload(context.Background(), &changed); err != nil {
		t.Error(err)
	}
	w.write(config.Sites[0].Pairs[0].Cert, "garbage")
	if err := r.Reload(context.Background(), &changed); err == nil {
		t.Error("garbage is accepted")
	}
	r.ReloadFailed()
	expect("connections 1\n", `limited_connections_total{limit="per-address"} 1`, `reloads_total{result="succeeded"} 1`,
		`reloads_total{result="failed"} 2`, "ticket_key_start_timestamp_seconds ",
		`certificate_expiry_timestamp_seconds{certificate="1",site="*"} `+strconv.FormatFloat(float64(end), 'e', -1, 64))
	for deadline := time.Now().Add(patience); ; {
		if _, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics"); strings.Contains(body,
			`ossl_serve_certificate_changes_total{result="refused"} 1`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the garbage is not counted")
		}
		<-time.After(50 * time.Millisecond) // one scrape in a second looks at the files
	}
	http.DefaultClient.CloseIdleConnections()
}
