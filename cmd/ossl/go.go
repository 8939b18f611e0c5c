package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/cmd/ossl/internal/gofarm"
)

func goCommand() *cobra.Command {
	var o gofarm.Options
	var source string
	var linked bool
	cmd := &cobra.Command{
		Use:   "go [flags] COMMAND...",
		Short: "Build any Go program, unchanged, with its TLS on the host's OpenSSL",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if linked {
				return examineLinked(args)
			}
			if args[0] == "clean" && len(args) == 1 {
				n, err := gofarm.Clean()
				if err == nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "%d removed\n", n)
				}
				return err
			}
			t, err := gofarm.Find(cmd.Context(), args)
			if err != nil {
				return err
			}
			if o.Command, err = os.Executable(); err != nil {
				return err
			}
			if o.Source, err = gofarm.FindSource(cmd.Context(), source); err != nil {
				return err
			}
			root, err := gofarm.Make(cmd.Context(), t, &o)
			if err != nil {
				return err
			}
			env := goEnvironment(root)
			if args[0] == "env" && len(args) == 1 {
				for _, e := range env {
					name, value, _ := strings.Cut(e, "=")
					fmt.Fprintf(cmd.OutOrStdout(), "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
				}
				return nil
			}
			run := exec.Command(filepath.Join(root, "bin", "go"), args...)
			run.Env = append(os.Environ(), env...)
			run.Stdin, run.Stdout, run.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
			err = run.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exitStatus(exit.ExitCode())
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&o.Mode, "mode", "prefer", "prefer")
	flags.StringVar(&source, "source", "", "source")
	flags.BoolVar(&o.UnknownGo, "unknown-go", false, "unknown")
	flags.BoolVar(&linked, "examine-linked", false, "")
	return cmd
}

func goEnvironment(root string) []string {
	return []string{"GOROOT=" + root, "GOTOOLCHAIN=local", "PATH=" + filepath.Join(root, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH")}
}

func examineLinked(args []string) error { return nil }
