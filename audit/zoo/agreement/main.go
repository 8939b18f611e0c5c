// Agreement audits servers of the zoo, has testssl.sh and sslyze scan them, and prints which facts
// the three agree on. A disagreement that decisions.go doesn't decide is an error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/internal/testcert"
	"github.com/ossl-go/ossl/audit/internal/zoo"
)

// scanned matches the names of the servers that are scanned. The others have no answers that the
// tools could agree on, or differ in things that audits alone look at.
var scanned = regexp.MustCompile(`^(go|go-1.2-only|go-1.0-only|go-1.0-up|go-3des|go-rc4|go-prime256v1|go-two-keys|` +
	`no-resumption|` +
	`zero-ticket-key|ossl|ssl-2|ssl-3|ssl-3-up|export|rc4|null|dh-1024|compression|rate-limit|` +
	`certificate-(good|stapled|expired|wrong-name|missing-intermediate|wrong-order|root-sent|self-signed|rsa-1024|sha-1|` +
	`untrusted-root)|` +
	`nginx-(bookworm|trixie)|nginx-bookworm-(modern|no-tickets|early-data)|(apache|lighttpd|caddy|gnutls|haproxy)-sid|` +
	`postgres-trixie|` +
	`s-server-(bookworm-renegotiation|trixie-old|trixie-no-ems|sid-early-data))$`)

type programs struct{ testssl, data, openssl, sslyze, results string }

func main() {
	var p programs
	debian := flag.String("debian", "", "the `FOLDER` of ci/openssl-versions")
	flag.StringVar(&p.sslyze, "sslyze", "sslyze", "the `PROGRAM` sslyze")
	flag.StringVar(&p.results, "results", "",
		"keeps what the tools answer in `FOLDER`, and doesn't ask again for answers that are there")
	only := flag.String("only", ".", "only servers whose names match `REGEXP`")
	jobs := flag.Int("jobs", 2, "servers at once")
	flag.Parse()
	p.testssl = filepath.Join(*debian, "testssl/usr/bin/testssl")
	p.data = filepath.Join(*debian, "testssl/etc/testssl")
	p.openssl = "/usr/bin/openssl"
	wanted, err := regexp.Compile(*only)
	if err != nil || *debian == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if p.results == "" {
		folder, err := os.MkdirTemp("", "ossl-agreement-")
		if err != nil {
			fatal(err)
		}
		defer os.RemoveAll(folder)
		p.results = folder
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var servers []*zoo.Server
	for _, s := range append(zoo.Local(), zoo.Debian(*debian)...) {
		if scanned.MatchString(s.Name) && wanted.MatchString(s.Name) {
			servers = append(servers, s)
		}
	}
	rows := make([]row, len(servers))
	errs := make([]error, len(servers))
	slots := make(chan struct{}, *jobs)
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if errs[i] = ctx.Err(); errs[i] == nil {
				rows[i], errs[i] = p.scan(ctx, s)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		fatal(err)
	}
	if undecided := table(os.Stdout, rows); undecided > 0 {
		fatal(fmt.Errorf("%d disagreements aren't decided", undecided))
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "agreement:", err)
	os.Exit(1)
}

// A row has each tool's answers about a server.
type row struct {
	server                *zoo.Server
	ours, testssl, sslyze answers
	seconds               [3]float64
	connections           int
}

// scan asks the three tools about a server.
func (p programs) scan(ctx context.Context, s *zoo.Server) (row, error) {
	r, err := s.Start()
	if err != nil {
		return row{}, err
	}
	defer r.Close()
	result := row{server: s}
	report, err := audit.Check(ctx, r.Target(), r.CheckOptions())
	if err != nil {
		return row{}, fmt.Errorf("%s: %w", s.Name, err)
	}
	result.ours, result.seconds[0], result.connections = ourAnswers(report), report.Seconds, report.Cost.Connections
	roots, trusted := filepath.Join(r.Folder, "roots.pem"), r.PEM()
	if len(trusted) == 0 { // the tools refuse an empty file
		trusted = testcert.Root(testcert.Template{CA: true, Name: "Unrelated Root"}).PEM()
	}
	if err := os.WriteFile(roots, trusted, 0o600); err != nil {
		return row{}, err
	}
	address := fmt.Sprintf("localhost:%d", r.Addresses[0].Port())
	if result.seconds[1], err = p.runTestssl(ctx, s, r, roots, address); err != nil {
		return row{}, err
	}
	if result.seconds[2], err = p.runSslyze(ctx, s, r, roots, address); err != nil {
		return row{}, err
	}
	for name, to := range map[string]struct {
		read func([]byte) (answers, error)
		into *answers
	}{"testssl": {testsslAnswers, &result.testssl}, "sslyze": {sslyzeAnswers, &result.sslyze}} {
		b, err := os.ReadFile(p.path(s, name))
		if err != nil {
			return row{}, err
		}
		if *to.into, err = to.read(b); err != nil {
			return row{}, fmt.Errorf("%s: %s: %w", s.Name, name, err)
		}
	}
	return result, nil
}

func (p programs) path(s *zoo.Server, tool string) string {
	return filepath.Join(p.results, s.Name+"."+tool+".json")
}

// run runs a tool that writes its answers to a file, unless the answers are there. It returns the
// seconds that it took.
func (p programs) run(ctx context.Context, s *zoo.Server, tool string, command func(out string) *exec.Cmd) (float64, error) {
	path := p.path(s, tool)
	var took float64
	if b, err := os.ReadFile(path + ".seconds"); err == nil {
		return took, json.Unmarshal(b, &took)
	}
	cmd := command(path)
	cmd.SysProcAttr, cmd.Cancel = group(cmd)
	cmd.WaitDelay = 5 * time.Second
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if _, missing := os.Stat(path); missing != nil {
		return 0, fmt.Errorf("%s: %s wrote nothing (%v): %s", s.Name, tool, err, out)
	}
	took = time.Since(start).Seconds()
	return took, os.WriteFile(path+".seconds", fmt.Append(nil, took), 0o644)
}

func (p programs) runTestssl(ctx context.Context, s *zoo.Server, r *zoo.Running, roots, address string) (float64, error) {
	return p.run(ctx, s, "testssl", func(out string) *exec.Cmd {
		args := []string{p.testssl, "--openssl=" + p.openssl, "--color", "0", "--quiet", "--warnings", "off", "--ip", "127.0.0.1",
			"--add-ca", roots, "--nodns=min", "--jsonfile", out, "--overwrite", "-p", "-P", "-f", "-S", "-R", "-C", "-Z"}
		if s.Protocol == "postgres" {
			args = append(args, "--starttls", "postgres")
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Minute)
		context.AfterFunc(ctx, cancel)
		cmd := exec.CommandContext(limited, "bash", append(args, address)...)
		cmd.Env = append(os.Environ(), "TESTSSL_INSTALL_DIR="+p.data, "TERM=dumb", "TMPDIR="+r.Folder)
		cmd.Dir = r.Folder
		return cmd
	})
}

func (p programs) runSslyze(ctx context.Context, s *zoo.Server, r *zoo.Running, roots, address string) (float64, error) {
	return p.run(ctx, s, "sslyze", func(out string) *exec.Cmd {
		args := strings.Fields("--quiet --mozilla_config disable --sslv2 --sslv3 --tlsv1 --tlsv1_1 --tlsv1_2 --tlsv1_3 --certinfo " +
			"--resum --reneg --fallback --ems --early_data --compression --elliptic_curves")
		args = append(args, "--certinfo_ca_file", roots, "--json_out="+out)
		if s.Protocol == "postgres" {
			args = append(args, "--starttls", "postgres")
		}
		cmd := exec.CommandContext(ctx, p.sslyze, append(args, address)...)
		cmd.Dir = r.Folder
		return cmd
	})
}

// names returns the facts of all rows, sorted.
func names(rows []row) (all []string) {
	for _, r := range rows {
		for _, a := range []answers{r.ours, r.testssl, r.sslyze} {
			for fact := range a {
				if !slices.Contains(all, fact) {
					all = append(all, fact)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}
