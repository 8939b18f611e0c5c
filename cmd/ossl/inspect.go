package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
)

// An inspectResult is the result of the command, as --json writes it.
type inspectResult struct {
	Programs []inspectedProgram `json:"programs,omitempty"`
	Process  *inspectedProcess  `json:"process,omitempty"`
}

type inspectedProgram struct {
	Path  string `json:"path"`
	Error string `json:"error,omitempty"` // the reason why nothing else is known
	inspect.Verdict
	*inspect.Program
}

type inspectedProcess struct {
	inspect.Verdict
	*inspect.Process
}

// inspectFlags are the flags of the command.
type inspectFlags struct {
	pid     int
	require string
	modules bool
	asJSON  bool
}

func inspectCommand() *cobra.Command {
	f := &inspectFlags{}
	cmd := &cobra.Command{
		Use:   "inspect [flags] PROGRAM... | --pid PID",
		Short: "Show whether Go programs, or a running one, have their TLS on OpenSSL",
		Long: `Inspect reads Go programs, which are ELF files, and shows the engine of their TLS: ossl, in a program
that 'ossl go' has built or whose own code uses the library, or crypto/tls. It shows ossl's version
and mode, and how the program was built. Names of functions decide, which stay in programs without
symbols (-ldflags=-s -w).

--pid asks a running program that 'ossl go' has built for the OpenSSL in use, its FIPS mode, the
settings, and the counts of connections on OpenSSL and of those left to crypto/tls, with the reasons.
The process answers to its own user and to root, from its first TLS connection on, by a socket of
Linux that has neither a file nor a port. If there is no answer, inspect shows the reason, and reads
the process's program.

Exit status:
  0  all have their TLS on OpenSSL, and the mode of --require
  1  one has not; its reason and the remedy are shown
  2  the command line was wrong, or a program couldn't be read

The keys of --json are stable: new ones may come, but none goes or changes its type.
  programs     a list of objects with path, and either error, or:
    on_ossl    whether its TLS is on OpenSSL; if not, reason and do have the reason and the remedy
    engine     ossl, ossl-library, ossl-twice (both), crypto/tls, or none
    unchanged  the mark of 'ossl go': format, version, build, mode, go, settings
    library    the version of the library that the program's own code uses
    go, goos, goarch, cgo, tags, race, static, pie
               how it was built; "" or null if unknown
    package, module
               the main package, and its module: path, version, replaced
    modules    of --modules: the other modules
  process      of --pid: pid, name, on_ossl, reason, do as above, and report; without an answer, silent
               (the reason), do_for_an_answer, and program, with the keys above
    report     format, version, mode, settings, openssl, connections, left_to_crypto_tls and
               refused (with reasons), contexts, records, asked`,
		Example: `  ossl inspect ./server
  ossl inspect --require require bin/*
  ossl inspect --pid $(pgrep -o nats-server)`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch asks := cmd.Flags().Changed("pid"); {
			case asks && len(args) > 0:
				return usageError("--pid is for a process, so name no program")
			case asks && f.pid <= 0:
				return usageError(fmt.Sprintf("--pid is %d, but must be positive", f.pid))
			case asks && f.modules:
				return usageError("--modules is for programs, and --pid for a process")
			case !asks && len(args) == 0:
				return usageError("name a program: ossl inspect PROGRAM, or --pid PID")
			case f.require != "" && f.require != "prefer" && f.require != "require":
				return usageError(fmt.Sprintf("--require %q is none of prefer, require", f.require))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.pid > 0 {
				return f.process(cmd)
			}
			return f.programs(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.pid, "pid", 0, "ask the process with this `ID`")
	flags.StringVar(&f.require, "require", "", "demand this `mode` of 'ossl go', or a stricter one: prefer, require")
	flags.BoolVar(&f.modules, "modules", false, "show the modules that the programs were built from")
	flags.BoolVar(&f.asJSON, "json", false, "write JSON")
	modes := cobra.FixedCompletions([]string{"prefer", "require"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("require", modes); err != nil {
		panic(err) // the flag isn't declared above
	}
	return cmd
}

// programs inspects programs. Those that can't be read are reported, and the others shown.
func (f *inspectFlags) programs(cmd *cobra.Command, paths []string) error {
	var all []inspectedProgram
	status := 0
	for _, path := range paths {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		r := inspectedProgram{Path: path}
		p, err := inspect.ReadProgram(path)
		if err != nil {
			r.Error, status = err.Error(), exitUsage
		} else {
			if !f.modules {
				p.Modules = nil
			}
			r.Program, r.Verdict = p, p.Judge(f.require)
			if !r.OK {
				status = max(status, exitFailure)
			}
		}
		all = append(all, r)
	}
	if f.asJSON {
		if err := writeJSON(cmd.OutOrStdout(), inspectResult{Programs: all}); err != nil {
			return err
		}
	} else {
		writeInspected(cmd.OutOrStdout(), cmd.ErrOrStderr(), all)
	}
	return statusError(status)
}

// process inspects a process.
func (f *inspectFlags) process(cmd *cobra.Command) error {
	p, err := inspect.ReadProcess(cmd.Context(), f.pid)
	if err != nil && context.Cause(cmd.Context()) != nil {
		return context.Cause(cmd.Context())
	}
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "ossl: "+printable(err.Error()))
		return exitStatus(exitUsage)
	}
	r := &inspectedProcess{p.Judge(f.require), p}
	if p.Program != nil {
		p.Program.Modules = nil
	}
	if f.asJSON {
		if err := writeJSON(cmd.OutOrStdout(), inspectResult{Process: r}); err != nil {
			return err
		}
	} else {
		writeProcess(cmd.OutOrStdout(), r)
	}
	if !r.OK {
		return exitStatus(exitFailure)
	}
	return nil
}

// statusError returns an exit status as an error, or nil.
func statusError(status int) error {
	if status == 0 {
		return nil
	}
	return exitStatus(status)
}
