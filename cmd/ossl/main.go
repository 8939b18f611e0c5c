// Ossl is the command of the ossl library: TLS for Go on the host's OpenSSL.
//
//	ossl bench      measurements of TLS on this machine, with charts, or of a server's handshakes
//	ossl cert       certificates for development, by an authority of your own
//	ossl check      audits of servers' TLS: findings, remedies and prices
//	ossl config     TLS configurations of servers, for their version and their OpenSSL
//	ossl demo       real traffic on the host's OpenSSL, compared with crypto/tls
//	ossl doctor     this host: what decides how fast and how safe TLS is here
//	ossl inspect    Go programs and processes: whether their TLS is on OpenSSL
//	ossl man        the manual pages, where man finds them
//	ossl policy     the policies by which servers are judged and configured
//	ossl proxy      TLS in front of a backend of TCP or HTTP
//	ossl serve      files over HTTPS
//	ossl trace      the handshake with a server, message by message
//	ossl version    the OpenSSL found on this host, and its features
//
// Its exit status is 0 on success, 1 if something failed, and 2 if the command line was wrong. "ossl
// check" and "ossl inspect" have more.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/cmd/ossl/internal/measure"
)

// Exit codes.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as in shells
)

// A usageError is an error in the command line that a command reports itself.
type usageError string

func (e usageError) Error() string { return string(e) }

// patience is the time that a command has after a signal to print its report, to stop the servers
// that it started and to remove their files.
const patience = 5 * time.Second

func main() {
	bench.ServeIdle()
	measure.ServeWorker()
	ctx, cancel := context.WithCancelCause(context.Background())
	signal.Notify(commandSignals, interrupts()...)
	go func() {
		cancel(interrupted{<-commandSignals})
		// If a command runs for more than some seconds after the first signal, the next signal kills it.
		time.AfterFunc(patience, func() { signal.Stop(commandSignals) })
	}()
	textWidth = widthOf(os.Stdout)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// commandSignals gets the signal that cancels the commands' context.
var commandSignals = make(chan os.Signal, 1)

// interrupted is the cause of the end of the commands' context.
type interrupted struct{ os.Signal }

func (i interrupted) Error() string { return i.String() }

func (interrupted) Is(target error) bool { return target == context.Canceled }

// interruption returns the signal that has canceled a command's context, or nil.
func interruption(ctx context.Context) os.Signal {
	var i interrupted
	errors.As(context.Cause(ctx), &i)
	return i.Signal
}

// interrupts are the signals that stop a command. SIGTERM, and SIGHUP when a terminal is closed,
// are among them because a command must stop a trial's servers and remove its keys. If nohup(1) has
// made the process ignore SIGHUP, it stays ignored.
func interrupts() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// run runs the command that args name and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false // cobra has found the command and accepted its flags
	root := rootCommand(&started)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "ossl: interrupted")
		return exitInterrupted
	case !started || errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "ossl: %s\nSee '%s'.\n", printable(err.Error()), helpOf(cmd))
		return exitUsage
	}
	// The library's errors begin with its name, which is this command's too.
	text := "ossl: " + strings.TrimPrefix(printable(err.Error()), "ossl: ")
	if isTerminal(stderr) {
		text = strings.Join(wrap(text, textWidth), "\n")
	}
	fmt.Fprintln(stderr, text)
	return exitFailure
}

// exactly checks that a command has as many arguments as its usage line names.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("the command line is not of the form: %s", cmd.UseLine())
		}
		return nil
	}
}

// helpOf returns the command line that explains a command.
func helpOf(cmd *cobra.Command) string {
	name, rest, _ := strings.Cut(cmd.CommandPath(), " ")
	return strings.TrimSpace(name + " help " + rest)
}

// spellings are the flags that commands have instead of others: former names, and names that other commands
// have for the same.
var spellings = map[string][]string{
	"servername":  {"server-name"},
	"all-clients": {"all"},
	"html":        {"format html --output FILE"},
	"output":      {"html FILE"},
	"format":      {"json"},
	"ca":          {"roots FILE"},
	"cafile":      {"roots FILE"},
}

// environment lists the environment variables that the commands read, and the exit statuses.
const environment = `Programs on the library, and this command, read these environment variables:
  OSSL_LIBRARY     the OpenSSL to load: a version (3, 3.5), the path of libssl, or of its folder
  OSSL_FIPS        "require": every connection uses OpenSSL's FIPS module, or fails
  OSSL_RECORDS     who encrypts after the handshake: "libssl", "direct" (ossl, or the connection
                   fails), or "auto" (the default: ossl if it can)
  OSSL_SLIM        "off": no slim library context, which only makes handshakes cheaper
  OSSL_TRIM        "off": free memory of C stays with the process after a burst of handshakes
  OSSL_SHARDS      the number of parts, 1 to 32, among which connections are divided, so that many
                   processors don't wait for each other; the default is one for every 4 processors
  OSSL_TRACE       "stderr" or a file: the messages of each handshake are printed to it
  OSSL_KEYLOG      a file that gets the keys of all connections, to decrypt a capture with
                   Wireshark; refused in FIPS mode
OpenSSL itself reads:
  OPENSSL_CONF     the configuration file, with the host's policy; the default is openssl.cnf
  OPENSSL_MODULES  the folder of providers, such as the FIPS module
  SSL_CERT_FILE, SSL_CERT_DIR
                   the trusted authorities; OpenSSL reads them in FIPS mode, otherwise Go does
Exit status: 0 on success, 1 if something failed, 2 if the command line was wrong.`

// rootCommand returns the command with all its commands.
func rootCommand(started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:              "ossl",
		Short:            "TLS for Go on the host's OpenSSL",
		Long:             "Ossl is the command of the ossl library: TLS for Go on the host's OpenSSL.\n\n" + environment,
		Version:          version() + ", " + runtime.Version(),
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { *started = true },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			for _, other := range spellings[unknown.GetSpecifiedName()] {
				if cmd.Flags().Lookup(strings.Fields(other)[0]) != nil {
					return fmt.Errorf("%w; write --%s", err, other)
				}
			}
		}
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := strings.TrimSpace(cmd.Long) + "\n\n" + cmd.UsageString()
		if cmd == root { // its use comes first
			text = cmd.Short + "\n\n" + cmd.UsageString() + "\n" + environment + "\n"
		} else if cmd.Long == "" {
			text = cmd.Short + "\n\n" + cmd.UsageString()
		}
		fmt.Fprint(cmd.OutOrStdout(), narrow(text, textWidth))
	})
	root.SetVersionTemplate("ossl {{.Version}}\n")
	root.AddCommand(benchCommand(), certCommand(), checkCommand(), configCommand(), demoCommand(), doctorCommand(), goCommand(),
		inspectCommand(), manCommand(), policyCommand(), proxyCommand(), serveCommand(), traceCommand(), versionCommand())
	return root
}
