package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ossl-go/ossl/cmd/ossl/internal/gofarm"
)

// goFlags are the flags of the command.
type goFlags struct {
	gofarm.Options
	source   string
	settings string
	examine  bool // a linked program
}

func goCommand() *cobra.Command {
	f := &goFlags{}
	cmd := &cobra.Command{
		Use:   "go [flags] COMMAND [ARGS...]",
		Short: "Build any Go program, unchanged, with its TLS on the host's OpenSSL",
		Long: `Go runs a command of the go tool so that the programs it builds have their TLS from the host's
OpenSSL. Nothing of a program is edited: not its source, not its go.mod. It may be somebody else's:

  ossl go build ./cmd/server
  ossl go install github.com/nats-io/nats-server/v2@latest
  ossl go --mode require test ./...

The command is any of "go help": build, install, run, test, vet, list and so on. The Go is yours,
or the one that go.mod asks for. Three commands, without arguments, are ossl's own:

  ossl go env      for other tools that run go: eval "$(ossl go env)"
  ossl go diff     the changes to Go's crypto/tls
  ossl go clean    removes what "ossl go" keeps in the user's cache

How: the go tool gets a GOROOT of links to Go's own, in the user's cache, in which crypto/tls hands the
methods of its connections to ossl. Whatever imports crypto/tls is built with it. QUIC stays with
crypto/tls. The programs need OpenSSL's run-time library, and to be built cgo or, with CGO_ENABLED=0,
a released ossl (Linux, amd64 and arm64).

OpenSSL can't honour some configurations, such as TLS 1.0. --mode decides about their connections:

  prefer    crypto/tls makes them. Each reason is counted, and written to standard error once
  require   the handshake fails with the reason. A program that can't load OpenSSL, such as one that is
            linked statically, isn't built

The environment of such a program:

  OSSL_MODE   require is stricter than the program's own mode. off switches back to crypto/tls, unless the
              mode or FIPS mode requires ossl
  OSSL_LOG    off: reasons are counted but not written
  OSSL_SETTINGS
              a file of settings that takes the place of the one of --settings
  OSSL_FIPS, OSSL_LIBRARY, OSSL_RECORDS and the others as for every program of ossl

The exit status is the go tool's.`,
		Example: `  ossl go build -o server ./cmd/server && ./server
  ossl go test -race ./...
  eval "$(ossl go env)" && make`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("the command line is not of the form: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: f.run,
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if errors.As(err, new(*pflag.NotExistError)) {
			err = fmt.Errorf("%w; write flags of the go tool after its command", err)
		}
		return err
	})
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&f.Mode, "mode", "prefer", "`MODE` of the programs: prefer or require")
	flags.StringVar(&f.settings, "settings", "", "`FILE` of settings for the programs: sessions, ticket keys, kernel TLS, a policy")
	flags.StringVar(&f.source, "source", "", "`FOLDER` of ossl's sources; the default is what this command was built from")
	flags.BoolVar(&f.UnknownGo, "unknown-go", false, "try a version of Go with which ossl was not tested")
	flags.BoolVar(&f.examine, "examine-linked", false, "")
	_ = flags.MarkHidden("examine-linked")
	return cmd
}

// run runs the command. Its error reaches the eval of "ossl go env".
func (f *goFlags) run(cmd *cobra.Command, args []string) (err error) {
	own := ""
	if len(args) == 1 {
		own = args[0]
	}
	if own == "env" {
		defer func() {
			if err != nil { // else eval "$(ossl go env)" && make would go on with the stock Go
				fmt.Fprintln(cmd.OutOrStdout(), "false")
			}
		}()
	}
	if f.Mode != "prefer" && f.Mode != "require" {
		return usageError(fmt.Sprintf("--mode is %q, but must be prefer or require", f.Mode))
	}
	if f.examine {
		return examineLinked(args, cmd.ErrOrStderr())
	}
	if own == "clean" {
		n, err := gofarm.Clean()
		if err == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "GOROOTs removed: %d\n", n)
		}
		return err
	}
	t, err := gofarm.Find(cmd.Context(), args)
	if err != nil {
		return err
	}
	if f.Source, err = gofarm.FindSource(cmd.Context(), f.source); err != nil {
		return err
	}
	if f.settings != "" {
		if f.Settings, err = gofarm.ReadSettings(f.settings); err != nil {
			return err
		}
	}
	plan, err := gofarm.NewPlan(cmd.Context(), t, &f.Options)
	if err != nil {
		return err
	}
	if own == "diff" {
		text, err := plan.Diff()
		if err == nil {
			_, err = cmd.OutOrStdout().Write(text)
		}
		return err
	}
	if err := plan.Make(cmd.Context()); err != nil {
		return err
	}
	ossl, err := os.Executable()
	if err != nil {
		return err
	}
	if own == "env" {
		for _, e := range plan.Environment(ossl) {
			fmt.Fprintf(cmd.OutOrStdout(), "export %s=%s\n", e[0], gofarm.Quote(e[1]))
		}
		return nil
	}
	return plan.Exec(ossl, args)
}
