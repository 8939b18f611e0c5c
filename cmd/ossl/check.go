package main

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/report"
	policies "github.com/ossl-go/ossl/policy"
)

// exitUntested is the exit status of a check that couldn't test something.
const exitUntested = 3

// An exitStatus is an error that sets the command's exit status. All messages have been printed already.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// checkFlags are the flags of the command.
type checkFlags struct {
	options   audit.Options
	policy    string
	at        string
	addresses []string
	roots     string
	crls      []string // files and folders
	file      string
	jobs      int
	failOn    string
	format    string
	output    string
	brief     bool
	verbose   bool
	quiet     bool
	noColor   bool
}

func checkCommand() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check [flags] HOST[:PORT]...",
		Short: "Audit the TLS of servers: what is wrong, why, how to mend it, and what it costs",
		Long: `Check connects to servers and judges their TLS by a policy. Each finding has its evidence, its
reason, a remedy, and a price: round trips, milliseconds, bytes or the server's processor time, as
measured here. Two grades from A to F, one for fast and one for safe, name the rule that stops the
next grade. A grade is "?" if a rule that could lower it failed to be tested.

A target is HOST or HOST:PORT; IPv6 addresses are in brackets. The port is 443 by default. Servers
that begin in plain text are named as in smtp://HOST: smtp, imap, pop3, ldap, postgres, mysql, xmpp.
Without a scheme, the port decides, and on other ports the server's answer does: https://HOST:PORT
says that it is HTTPS.
Check audits the first address of the name that it reaches, and compares the others with it.

Check is gentle: it makes few connections, most of which end before the server signs anything. A
connection that is lost is made again, alone; what stays unanswered has failed to test, and is never
taken for an answer. The report ends with the cost to the server.

Exit status:
  0    nothing to report
  1    findings at or above --fail-on
  2    the command line was wrong
  3    something couldn't be tested, and there are no such findings
  130  interrupted; the report of what was found is printed`,
		Example: `  ossl check example.com
  ossl check --policy mozilla-modern --fail-on high smtp://mail.example.com:587
  ossl check --file hosts.txt --jobs 8 --format html --output report.html
  ossl check --address 192.0.2.1 --address 192.0.2.2 example.com
  ossl check --at 2031-01-01 example.com    which values will their policies have outlived?`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && f.file == "" {
				return usageError("name a target: ossl check HOST[:PORT], or --file")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := f.parse(cmd, args)
			if err != nil {
				return err
			}
			return check(cmd, f, targets)
		},
	}
	f.register(cmd)
	return cmd
}

// register declares the flags.
func (f *checkFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.policy, "policy", "fast-and-safe",
		"judge by this policy: a `name` of 'ossl policy list', or a file that\nends in .json")
	flags.StringVar(&f.at, "at", "", "judge as on this `date`, such as 2031-01-01 (default today)")
	flags.StringVar(&f.failOn, "fail-on", "medium",
		"exit with 1 at findings of this `severity` or worse: info, low, medium,\nhigh, critical, or none")
	flags.StringVar(&f.file, "file", "", "read targets from this file too, one a line; - is standard input")
	flags.IntVar(&f.jobs, "jobs", 4, "audit this many targets at the same time")
	flags.StringVar(&f.format, "format", "text", "write "+strings.Join(report.Formats(), ", "))
	flags.BoolFunc("json", "the same as --format json", func(string) error { f.format = "json"; return nil })
	flags.StringVar(&f.output, "output", "", "write to this `file`, which appears when it is whole")
	flags.BoolVar(&f.brief, "brief", false, "write one screen for each target")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "write all facts and rules too")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	flags.BoolVar(&f.noColor, "no-color", false, "write text without colours, as if NO_COLOR were set")
	flags.StringSliceVar(&f.addresses, "address", nil, "connect to this `address` instead of the name's; may be repeated")
	flags.BoolVar(&f.options.OneAddress, "one-address", false, "stop at the first address that can be reached")
	flags.StringVar(&f.options.ServerName, "server-name", "", "ask for this `name` and verify it, instead of the target's")
	flags.StringVar(&f.options.Server, "server", "", "give remedies for this `product`:\n"+strings.Join(audit.Products, ", "))
	flags.StringVar(&f.roots, "roots", "", "trust the certificates in this `file`, in PEM, instead of the system's")
	flags.StringArrayVar(&f.crls, "crl", nil,
		"look the certificates up in the revocation lists in this `file` or\nfolder; may be repeated")
	flags.IntVar(&f.options.MaxConnections, "max-connections", 200,
		"make at most this many connections to a target (with --all, at most\n1000)")
	flags.Float64Var(&f.options.Rate, "rate", 0, "make at most this many connections a second to a target (default\nno bound)")
	flags.DurationVar(&f.options.Timeout, "timeout", 5*time.Second, "give up a connection after this time")
	flags.DurationVar(&f.options.Greeting, "greeting", 30*time.Second,
		"give up a server of SMTP, IMAP, POP3 or MySQL that hasn't sent its\ngreeting after this time, if it is more than --timeout")
	flags.DurationVar(&f.options.MaxTime, "max-time", 0,
		"give up a target after this time (default 3m, or more if --timeout,\n--rate, --watch, --precise or late greetings need it)")
	flags.BoolVar(&f.options.NoHTTP, "no-http", false, "send no HTTP requests")
	flags.BoolVar(&f.options.NoDNS, "no-dns", false, "look up no DNS records except addresses")
	flags.BoolVar(&f.options.NoClients, "no-clients", false, "simulate no clients")
	flags.BoolVar(&f.options.All, "all", false,
		"find all cipher suites and simulate all clients, even with more than\n60 connections")
	flags.BoolVar(&f.options.Extra, "extra", false,
		"judge the surroundings of TLS too: CAA records, certificate\ntimestamps, and headers that limit scripts and frames")
	flags.BoolVar(&f.options.NoTiming, "no-timing", false, "measure no times, so that prices have no milliseconds")
	flags.BoolVar(&f.options.Precise, "precise", false, "measure times in 60 rounds instead of 6, one or two connections each")
	flags.BoolVar(&f.options.Replay, "replay", false,
		"send GET requests in early data twice, to see whether the server\nexecutes both: for your own servers only")
	flags.StringVar(&f.options.ReplayPath, "replay-path", "/", "request this `path` with --replay")
	flags.DurationVar(&f.options.Watch, "watch", 0, "look at the keys of the server's tickets for this long")
	flags.DurationVar(&f.options.WatchEvery, "watch-every", time.Hour, "look once in this time with --watch")
	for name, values := range map[string][]string{
		"format":  report.Formats(),
		"fail-on": {"info", "low", "medium", "high", "critical", "none"},
		"server":  audit.Products,
		"policy":  policies.Names(),
	} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag isn't declared above
		}
	}
}

// parse checks the flags and returns the targets.
func (f *checkFlags) parse(cmd *cobra.Command, args []string) ([]audit.Target, error) {
	o := &f.options
	for _, bad := range []struct {
		is      bool
		problem string
	}{
		{f.jobs < 1, fmt.Sprintf("--jobs is %d, but must be positive", f.jobs)},
		{o.MaxConnections < 1, fmt.Sprintf("--max-connections is %d, but must be positive", o.MaxConnections)},
		{!(o.Rate >= 0), fmt.Sprintf("--rate is %v, but must not be negative", o.Rate)},
		{o.Rate > 0 && o.Rate < leastRate, fmt.Sprintf("--rate is %v, but must be %v at least", o.Rate, leastRate)},
		{o.Timeout <= 0, fmt.Sprintf("--timeout is %v, but must be positive", o.Timeout)},
		{o.Greeting <= 0, fmt.Sprintf("--greeting is %v, but must be positive", o.Greeting)},
		{o.MaxTime < 0, fmt.Sprintf("--max-time is %v, but must not be negative", o.MaxTime)},
		{o.Watch < 0, fmt.Sprintf("--watch is %v, but must not be negative", o.Watch)},
		{o.WatchEvery <= 0, fmt.Sprintf("--watch-every is %v, but must be positive", o.WatchEvery)},
		{!slices.Contains(report.Formats(), f.format),
			fmt.Sprintf("--format %q is none of %s", f.format, strings.Join(report.Formats(), ", "))},
		{f.failOn != "none" && audit.Severity(f.failOn).Rank() < 0, fmt.Sprintf("--fail-on %q is no severity", f.failOn)},
		{o.Server != "" && audit.Product(o.Server) == "",
			fmt.Sprintf("--server %q is none of %s", o.Server, strings.Join(audit.Products, ", "))},
		{f.brief && f.verbose, "--brief and --verbose contradict each other"},
		{(f.brief || f.verbose) && f.format != "text", "--brief and --verbose are for --format text"},
		{!strings.HasPrefix(o.ReplayPath, "/"), fmt.Sprintf("--replay-path %q doesn't begin with /", o.ReplayPath)},
		{strings.ContainsFunc(o.ReplayPath, func(r rune) bool { return r <= ' ' || r >= 0x7f }),
			fmt.Sprintf("--replay-path %q has characters that a path of HTTP can't have", o.ReplayPath)},
		{!notControl(o.ServerName), fmt.Sprintf("--server-name %q is no name", o.ServerName)},
		{cmd.Flags().Changed("replay-path") && !o.Replay, "--replay-path needs --replay"},
		{cmd.Flags().Changed("watch-every") && o.Watch == 0, "--watch-every needs --watch"},
	} {
		if bad.is {
			return nil, usageError(bad.problem)
		}
	}
	if o.All && !cmd.Flags().Changed("max-connections") {
		o.MaxConnections = 0 // the default of Check
	}
	if err := f.parseValues(cmd.Context()); err != nil {
		return nil, err
	}
	targets, err := f.targets(cmd, args)
	if err != nil {
		return nil, err
	}
	if len(f.addresses) > 0 {
		if len(targets) != 1 {
			return nil, usageError("--address is for one target")
		}
		if o.Addresses, err = parseAddresses(f.addresses, targets[0].Port); err != nil {
			return nil, err
		}
	}
	if o.ServerName != "" && len(targets) != 1 {
		return nil, usageError("--server-name is for one target")
	}
	return targets, nil
}

// leastRate is one connection in a day.
const leastRate = 1.0 / 86400

// notControl reports whether a name can stand in a line of a protocol.
func notControl(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

func parseAddresses(texts []string, port uint16) (all []netip.AddrPort, err error) {
	for _, text := range texts {
		address, err := netip.ParseAddrPort(text)
		if err != nil {
			ip, err := netip.ParseAddr(strings.Trim(text, "[]"))
			if err != nil {
				return nil, usageError(fmt.Sprintf("--address %q is no address, such as 192.0.2.1, [2001:db8::1] or 192.0.2.1:8443", text))
			}
			address = netip.AddrPortFrom(ip, port)
		}
		all = append(all, address)
	}
	return all, nil
}

// check audits the targets and writes the reports.
func check(cmd *cobra.Command, f *checkFlags, targets []audit.Target) error {
	ctx := cmd.Context()
	p := newCheckProgress(cmd.ErrOrStderr(), len(targets), f.quiet)
	document := &report.Document{Version: 1, Tool: "ossl " + version() + ", " + runtime.Version(), Written: time.Now()}
	document.Reports = auditAll(ctx, f, targets, p)
	document.Written = time.Now()
	p.stop()
	if err := f.write(cmd, document); err != nil {
		return err
	}
	return f.status(ctx, cmd, document)
}

// status returns the exit status, as an error.
func (f *checkFlags) status(ctx context.Context, cmd *cobra.Command, d *report.Document) error {
	untested, found := false, false
	for _, r := range d.Reports {
		if worst, ok := r.Worst(); ok && f.failOn != "none" && worst.Rank() >= audit.Severity(f.failOn).Rank() {
			found = true
		}
		untested = untested || r.Error != "" || r.Count(audit.Failed) > 0
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case found:
		return exitStatus(exitFailure)
	case untested:
		return exitStatus(exitUntested)
	}
	return nil
}
