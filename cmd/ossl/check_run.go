package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/report"
	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
	policies "github.com/ossl-go/ossl/policy"
)

// parseValues reads the values of flags that aren't plain.
func (f *checkFlags) parseValues(ctx context.Context) error {
	if f.at != "" {
		at, err := time.Parse(time.DateOnly, f.at)
		if err != nil {
			return usageError(fmt.Sprintf("--at %q is no date, such as 2031-01-01", f.at))
		}
		f.options.At = at
	}
	if f.roots != "" {
		var err error
		if f.options.Roots, err = readRoots(ctx, f.roots); err != nil {
			return err
		}
	}
	if f.crls != nil {
		lists, err := ossl.LoadCRLs(ossl.CRLFiles(f.crls...))
		if err != nil {
			return inputError("--crl", err)
		}
		f.options.CheckCRL = func(cert, issuer *x509.Certificate) (revoked bool, reason string) {
			err := lists.Check(cert, issuer, time.Now())
			if err == nil {
				return false, ""
			}
			e, ok := errors.AsType[*ossl.RevocationError](err)
			return ok && e.State == ossl.CertificateRevoked, strings.TrimPrefix(err.Error(), "ossl: ")
		}
	}
	if f.output != "" {
		if folder, err := os.Stat(filepath.Dir(f.output)); err != nil || !folder.IsDir() {
			return usageError("--output: there is no folder " + filepath.Dir(f.output))
		}
	}
	var err error
	if f.options.Policy, err = policyOrFile(ctx, f.policy); err != nil {
		return inputError("--policy", err)
	}
	return nil
}

// policyOrFile returns the policy of a name, or of a file if the name has the suffix .json.
func policyOrFile(ctx context.Context, name string) (*policies.Policy, error) {
	if !strings.HasSuffix(name, ".json") {
		p, err := policies.Get(name)
		if err != nil {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "policy: "))
		}
		return p, nil
	}
	text, err := readInput(ctx, nil, name)
	if err != nil {
		return nil, err
	}
	return policies.Parse(text)
}

// targets returns the targets of the arguments and of the file, each once.
func (f *checkFlags) targets(cmd *cobra.Command, args []string) (targets []audit.Target, err error) {
	var problems []string
	seen := map[audit.Target]bool{}
	add := func(where, text string) {
		t, err := audit.ParseTarget(text)
		switch {
		case err != nil:
			problems = append(problems, where+err.Error())
		case !seen[t]:
			seen[t] = true
			targets = append(targets, t)
		}
	}
	for _, arg := range args {
		add("", arg)
	}
	if f.file != "" {
		lines, err := readInput(cmd.Context(), cmd.InOrStdin(), f.file)
		if err != nil {
			return nil, inputError("--file", err)
		}
		n := 0
		for line := range strings.Lines(string(lines)) {
			n++
			text, _, _ := strings.Cut(line, "#")
			if text = strings.TrimSpace(text); text != "" {
				add(fmt.Sprintf("%s, line %d: ", f.file, n), text)
			}
		}
	}
	if problems != nil {
		return nil, usageError(strings.Join(problems, "\n"))
	}
	if len(targets) == 0 {
		return nil, usageError("--file " + f.file + " names no target")
	}
	return targets, nil
}

// auditAll audits the targets, a few at a time. Its reports are in the order of the targets.
// Targets that weren't begun when the context was done have no report.
func auditAll(ctx context.Context, f *checkFlags, targets []audit.Target, p *checkProgress) []*audit.Report {
	reports := make([]*audit.Report, len(targets))
	turns := make(chan struct{}, f.jobs)
	var wait sync.WaitGroup
	for i, target := range targets {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() { <-turns }()
			options := f.options
			options.Progress = func(probe string) { p.step(target, probe) }
			// The error is in the report.
			reports[i], _ = audit.Check(ctx, target, options)
			p.done(target)
		})
	}
	wait.Wait()
	begun := reports[:0]
	for _, r := range reports {
		if r != nil {
			begun = append(begun, r)
		}
	}
	return begun
}

// write writes the document to standard output, or to the file of --output.
// A file isn't written after an interruption: the report goes to standard output then.
func (f *checkFlags) write(cmd *cobra.Command, d *report.Document) error {
	options := report.Options{Brief: f.brief, Verbose: f.verbose}
	if f.output == "" || cmd.Context().Err() != nil {
		options.Colour, options.Width = colours(cmd.OutOrStdout(), f.noColor), textWidth
		return report.Write(cmd.OutOrStdout(), d, f.format, options)
	}
	err := wholefile.Replace(f.output, func(w io.Writer) error { return report.Write(w, d, f.format, options) })
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// A checkProgress shows the progress of a check: one line that is repainted on a terminal, and a
// line for each target that is done elsewhere.
type checkProgress struct {
	w        io.Writer
	terminal bool
	total    int

	mu       sync.Mutex
	finished int
	shown    bool
}

func newCheckProgress(w io.Writer, total int, quiet bool) *checkProgress {
	if quiet {
		w = io.Discard
	}
	return &checkProgress{w: w, terminal: isTerminal(w), total: total}
}

// step shows that a probe begins.
func (p *checkProgress) step(t audit.Target, probe string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		text := []rune(fmt.Sprintf("%d of %d done; %s: %s", p.finished, p.total, t.Host, probe))
		fmt.Fprintf(p.w, "\r\x1b[K%s", string(text[:min(len(text), 79)]))
		p.shown = true
	}
}

// done shows that a target is done.
func (p *checkProgress) done(t audit.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished++
	if !p.terminal && p.total > 1 {
		fmt.Fprintf(p.w, "checked %d of %d: %s:%d\n", p.finished, p.total, t.Host, t.Port)
	}
}

// stop removes the line.
func (p *checkProgress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
