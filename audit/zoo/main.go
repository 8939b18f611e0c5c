// Zoo starts TLS servers on loopback, sound ones and broken ones, and prints the verdicts that an
// audit of each must give. With -check it audits them and compares.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/internal/zoo"
)

func main() {
	check := flag.Bool("check", false, "audit the servers, print verdicts beside the expected ones, and end")
	debian := flag.String("debian", "", "also the servers that ci/openssl-versions -servers unpacked into `FOLDER`")
	only := flag.String("only", "", "only servers whose names match `REGEXP`")
	roots := flag.String("roots", "", "write the roots of the servers into `FOLDER`, a file for each")
	limit := flag.Int("limit", 0, "with -check: let `N` connections a second pass to each server, and close the others")
	jobs := flag.Int("jobs", 1, "with -check: audit `N` servers at once")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(),
			"usage: go run ./audit/zoo [-check [-limit N] [-jobs N]] [-debian FOLDER] [-only REGEXP] [-roots FOLDER]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "zoo:", err)
		os.Exit(2)
	}
	var servers []*zoo.Server
	all := zoo.Local()
	if *debian != "" {
		all = append(all, zoo.Debian(*debian)...)
	}
	for _, s := range all {
		if wanted.MatchString(s.Name) {
			servers = append(servers, s)
		}
	}
	if len(servers) == 0 {
		fmt.Fprintln(os.Stderr, "zoo: no server has such a name")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *check {
		err = audits(ctx, servers, *limit, *jobs)
	} else {
		err = serve(ctx, servers, *roots)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "zoo:", err)
		stop()
		os.Exit(1)
	}
}

// serve starts the servers and waits for an interrupt.
func serve(ctx context.Context, servers []*zoo.Server, roots string) (err error) {
	var running []*zoo.Running
	defer func() {
		for _, r := range running {
			err = errors.Join(err, r.Close())
		}
	}()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tPROTOCOL\tADDRESSES\tEXPECTED VERDICTS\t")
	var failed []string
	for _, s := range servers {
		if ctx.Err() != nil {
			return nil
		}
		if s.Everywhere {
			failed = append(failed, fmt.Sprintf("%s is not started: %s", s.Name, s.About))
			continue
		}
		r, err := s.Start()
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s is not started: %v", s.Name, err))
			continue
		}
		running = append(running, r)
		var addresses []string
		for _, a := range r.Addresses {
			addresses = append(addresses, a.String())
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", s.Name, r.Target().Protocol, strings.Join(addresses, " "), verdicts(s.Expect))
		if roots != "" {
			if err := os.WriteFile(filepath.Join(roots, s.Name+".pem"), r.PEM(), 0o644); err != nil {
				return err
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, line := range failed {
		fmt.Println(line)
	}
	fmt.Println("Ctrl-C ends the servers.")
	<-ctx.Done()
	return nil
}

func verdicts(all []zoo.Verdict) string {
	if len(all) == 0 {
		return "fine"
	}
	var names []string
	for _, v := range all {
		names = append(names, v.Rule)
	}
	return strings.Join(names, " ")
}

// An outcome is the outcome of a server's audit.
type outcome struct {
	err    error
	result zoo.Result
}

// audits audits the servers and prints their verdicts in order.
func audits(ctx context.Context, servers []*zoo.Server, limit, jobs int) error {
	outcomes := make([]outcome, len(servers))
	slots := make(chan struct{}, max(jobs, 1))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			outcomes[i].err = ctx.Err()
			if outcomes[i].err == nil {
				outcomes[i].result, outcomes[i].err = one(ctx, s, limit)
			}
		})
	}
	all.Wait()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tVERDICT\tFAST\tSAFE\tCONNECTIONS\tSIGNATURES\tSECONDS\tFOUND\t")
	var reasons []string
	wrong := 0
	for i, s := range servers {
		result := outcomes[i].result
		word := "as expected"
		switch {
		case outcomes[i].err != nil:
			wrong++
			word = "NOT STARTED"
			reasons = append(reasons, outcomes[i].err.Error())
		case !result.OK():
			wrong++
			word = "WRONG"
			reasons = append(reasons, explain(s.Name, result)...)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", s.Name, word, figures(result.Report))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, reason := range reasons {
		fmt.Println(reason)
	}
	fmt.Printf("%d servers, %d of them with other verdicts than expected\n", len(servers), wrong)
	if wrong > 0 {
		return fmt.Errorf("%d of %d servers have other verdicts than expected", wrong, len(servers))
	}
	return nil
}

// one audits a server.
func one(ctx context.Context, s *zoo.Server, limit int) (zoo.Result, error) {
	r, err := s.Start()
	if err != nil {
		return zoo.Result{}, err
	}
	if limit > 0 {
		if err := r.Limit(limit, false); err != nil {
			return zoo.Result{}, errors.Join(err, r.Close())
		}
	}
	result := r.Check(ctx)
	return result, r.Close()
}

// figures returns the columns of a report.
func figures(report *audit.Report) string {
	if report == nil {
		return "\t\t\t\t\t"
	}
	var found []string
	for _, f := range report.Findings {
		if f.Severity != audit.Info {
			found = append(found, f.Rule)
		}
	}
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%.2f\t%s", report.Fast.Mark, report.Safe.Mark, report.Cost.Connections,
		report.Cost.Signatures,
		report.Seconds, strings.Join(found, " "))
}

// explain returns the reasons why an audit isn't as expected.
func explain(name string, result zoo.Result) (lines []string) {
	if result.Err != nil {
		lines = append(lines, fmt.Sprintf("%s: the audit failed: %v", name, result.Err))
	}
	for _, v := range result.Missing {
		lines = append(lines, fmt.Sprintf("%s: %s is not found: %s", name, v.Rule, v.Why))
	}
	for _, f := range result.Extra {
		lines = append(lines, fmt.Sprintf("%s: %s is found: %s", name, f.Rule, f.Evidence))
	}
	for _, r := range result.Untried {
		lines = append(lines, fmt.Sprintf("%s: %s failed to be tested: %s", name, r.Rule, r.Reason))
	}
	for _, rule := range result.Claimed {
		lines = append(lines, fmt.Sprintf("%s: %s can't have been tested", name, rule))
	}
	return lines
}
