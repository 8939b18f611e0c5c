// Package trial starts an installed server twice, with two configurations, and compares its
// behaviour: by an audit of each, and by measurements in alternating rounds. Servers run on the
// loopback address, without root's rights, with throw-away keys. Nothing is left when Run returns.
package trial

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/confgen"
	"github.com/ossl-go/ossl/internal/freeport"
)

// Options are the options of [Run].
type Options struct {
	Ours   confgen.Options // the layout's names and files are replaced
	Yours  *confgen.Config // as confgen.Read returns it; nil stands for the server's defaults
	Keys   []string        // kinds of keys, as in confgen.ThrowAway; ECDSA if empty
	Rounds int             // of measurements
	// Progress is called with each step.
	Progress func(string)
}

// A Side is one of the two configurations.
type Side struct {
	// Stopped is the error of a server that didn't start, and Directive the directive without which
	// it starts, if it is one of the first 100.
	Stopped, Directive string
	LeftOut            []string // the names of directives that weren't copied into the trial
	Report             *audit.Report
	AuditError         string
	Full, Resumed      []float64 // milliseconds of handshakes, one for each round
	FirstByte          []float64 // milliseconds from the connection's begin to a response's first byte
	Bulk               []float64 // megabytes a second
	Offered, Hits      int       // TLS sessions offered again, and resumed
	Version, Group     string    // that a current client gets
}

// A Result is the result of [Run].
type Result struct{ Yours, Ours Side }

const bulkBytes = 16 << 20

// Run compares two configurations. It returns an error if it couldn't make the comparison. A server
// that doesn't start with its configuration is a result, not an error.
func Run(ctx context.Context, o Options) (*Result, error) {
	dir, err := os.MkdirTemp("", "ossl-trial-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	root, backend, err := content(dir)
	if err != nil {
		return nil, err
	}
	defer backend.Close()
	if len(o.Keys) == 0 {
		o.Keys = []string{"ECDSA"}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	result := &Result{}
	var running []*running
	defer func() {
		for _, r := range running {
			r.process.Stop()
		}
	}()
	for _, side := range []struct {
		name string
		side *Side
	}{{"yours", &result.Yours}, {"ours", &result.Ours}} {
		o.Progress("starting " + o.Ours.Server.Kind + " with " + side.name)
		config, roots, err := configuration(o, filepath.Join(dir, side.name), root, strings.TrimPrefix(backend.URL, "http://"))
		if err != nil {
			return nil, err
		}
		if side.name == "yours" {
			if side.side.LeftOut, err = copyYours(config, o.Yours); err != nil {
				return nil, err
			}
		}
		r, err := start(ctx, config, roots, side.side)
		if err != nil {
			return nil, err
		}
		if r != nil {
			running = append(running, r)
		}
	}
	for _, r := range running {
		o.Progress("auditing")
		if err := r.audit(ctx, o); err != nil {
			return nil, err
		}
	}
	for i := range o.Rounds {
		o.Progress(fmt.Sprintf("measuring, round %d of %d", i+1, o.Rounds))
		if i%2 == 1 {
			slices.Reverse(running) // so that neither is always the first
		}
		for _, r := range running {
			if err := r.measure(ctx); err != nil {
				return nil, err
			}
		}
	}
	return result, nil
}

// content makes the files of the site, and a server for those that stand behind a proxy.
func content(dir string) (string, *httptest.Server, error) {
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return "", nil, err
	}
	bulk := make([]byte, bulkBytes)
	rand.Read(bulk)
	for name, b := range map[string][]byte{"index.html": []byte("hello\n"), "bulk": bulk} {
		if err := os.WriteFile(filepath.Join(root, name), b, 0o644); err != nil {
			return "", nil, err
		}
	}
	return root, httptest.NewServer(http.FileServer(http.Dir(root))), nil
}

// configuration returns our configuration, in the scaffold that both have.
func configuration(o Options, dir, root, backend string) (*confgen.Config, *x509.CertPool, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, nil, err
	}
	keys := o.Keys
	if kind := o.Ours.Server.Kind; kind != "nginx" && kind != "apache" && kind != "haproxy" {
		keys = keys[:1] // the others have one certificate
	}
	roots, certs, err := confgen.ThrowAway(dir, o.Ours.Server.Kind, keys...)
	if err != nil {
		return nil, nil, err
	}
	port, err := freeport.Take()
	if err != nil {
		return nil, nil, err
	}
	plain, err := freeport.Take()
	if err != nil {
		return nil, nil, err
	}
	options := o.Ours
	options.OCSP = false // throw-away certificates name no responder
	options.Layout = confgen.Layout{Names: []string{"localhost"}, Certificates: certs, Address: "127.0.0.1", Port: port,
		PlainPort: plain, Root: root, Backend: backend, State: dir, Modules: options.Server.Modules}
	c, err := confgen.Generate(options)
	return c, roots, err
}

// copyYours replaces the directives of c by the directives of yours that can be copied, and returns the
// names of the others.
func copyYours(c, yours *confgen.Config) (leftOut []string, err error) {
	c.Directives = nil
	if yours != nil {
		if c.Directives, leftOut, err = yours.Copyable(); err != nil {
			return nil, fmt.Errorf("your configuration can't be tried: %w", err)
		}
		for i := range c.Directives {
			c.Directives[i].Value = strings.Replace(c.Directives[i].Value, ":STATE/", ":"+c.Layout.State+"/", 1)
		}
	}
	if c.Server.Kind == "postgresql" && !slices.ContainsFunc(c.Directives,
		func(d confgen.Directive) bool { return d.Name == "ssl" }) {
		c.Directives = append(c.Directives, confgen.Directive{Name: "ssl", Value: "on", Scope: "main"})
	}
	return leftOut, nil
}

// A running is a server that has started.
type running struct {
	side    *Side
	process *confgen.Process
	config  *confgen.Config
	roots   *x509.CertPool
}

// maxSearched bounds the directives that start looks at, since it starts the server's check for each.
const maxSearched = 100

// start starts a server. If its configuration stops it, it looks for the directive.
func start(ctx context.Context, c *confgen.Config, roots *x509.CertPool, side *Side) (*running, error) {
	file, err := c.Write(ctx)
	if err != nil {
		return nil, err
	}
	if err = c.Check(ctx, file); err == nil {
		var p *confgen.Process
		if p, err = c.Start(ctx, file); err == nil {
			return &running{side, p, c, roots}, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !confgen.IsRefused(err) {
		return nil, err
	}
	side.Stopped = err.Error()
	for i, d := range c.Directives[:min(len(c.Directives), maxSearched)] {
		without := *c
		without.Directives = slices.Delete(slices.Clone(c.Directives), i, i+1)
		if file, err = without.Write(ctx); err == nil {
			err = without.Check(ctx, file)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			side.Directive = strings.TrimSpace(d.Name + " " + d.Value)
			break
		}
	}
	return nil, nil
}

func (r *running) audit(ctx context.Context, o Options) error {
	target := audit.Target{Host: "127.0.0.1", Port: uint16(r.config.Layout.Port), Protocol: "https"}
	if r.config.Server.Kind == "postgresql" {
		target.Protocol = "postgres"
	}
	report, err := audit.Check(ctx, target, audit.Options{Policy: o.Ours.Policy, At: o.Ours.At, ServerName: "localhost",
		Roots: r.roots, NoDNS: true})
	r.side.Report = report
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.side.AuditError = err.Error()
	}
	return nil
}

var errEnded = errors.New("the server ended while it was measured")

func (r *running) measure(ctx context.Context) error {
	select {
	case <-r.process.Ended():
		return errEnded
	default:
	}
	err := r.side.measure(ctx, r.process.Address, r.roots, r.config.Server.Kind == "postgresql")
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // and no error of the connection that was broken off
	}
	return err
}
