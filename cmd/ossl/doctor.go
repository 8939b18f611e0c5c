package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/cmd/ossl/internal/doctor"
)

func doctorCommand() *cobra.Command {
	var asJSON, noSpeed bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine this host: its OpenSSL, FIPS mode, kernel TLS, ciphers, limits",
		Long: `Doctor examines what decides on this host how fast and how safe TLS is, and says of each part what
to do: the OpenSSL in use and the others, the slow spots of old releases, the host's policy, FIPS
mode, kernel TLS, the processor, and which cipher is faster on it by the size of records, in OpenSSL
and in Go; limits and settings of the kernel; processes that still run an OpenSSL that was replaced.

The measurements take about a second. Other libraries are tried in processes of their own.

The exit status is 1 if there is a problem. Advice alone is no problem.

The keys of --json are stable: new ones may come, but none goes or changes its type.
  items         a list of objects with:
    id          library, libraries, slow-spots, policy, fips, kernel-tls, processor, ciphers,
                limits, sysctl, processes
    title       the line that the text begins with
    state       ok, advice, problem, or unknown
    found       what was found, a list of texts
    do          what to do
    libraries   of libraries: path, in_use, version, refused
    speed       of ciphers: engine, cipher, bytes (of a record), mb_per_second, ns_per_record
    processes   of processes: pid, name, files`,
		Example: `  ossl doctor
  ossl doctor --json --no-speed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := doctor.Examine(cmd.Context(), doctor.Options{Try: tryLibrary, NoSpeed: noSpeed})
			out := cmd.OutOrStdout()
			if asJSON {
				if err := writeJSON(out, report); err != nil {
					return err
				}
			} else {
				writeDoctor(out, report)
			}
			if err == nil && report.Worst() == doctor.Problem {
				return exitStatus(exitFailure)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().BoolVar(&noSpeed, "no-speed", false, "measure nothing")
	return cmd
}

// tryTime bounds the process that tries a library.
const tryTime = 10 * time.Second

// tryLibrary loads a library in another process: a process has only one.
func tryLibrary(ctx context.Context, path string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "version", "--json")
	cmd.Env = append(os.Environ(), "OSSL_LIBRARY="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	var result struct {
		Library struct {
			Version  string   `json:"version"`
			Problems []string `json:"problems"`
		} `json:"library"`
	}
	if parseErr := json.Unmarshal(b, &result); parseErr != nil {
		if err == nil {
			err = parseErr
		}
		return "", fmt.Errorf("%w: %s", err, firstLine(stderr.String()))
	}
	if result.Library.Version == "" {
		return "", errors.New(refusal(result.Library.Problems))
	}
	return result.Library.Version, nil
}

// refusal returns the reason why a library was refused, in one line: the first attempt's reason, if
// the problem lists attempts.
func refusal(problems []string) string {
	text := strings.Join(problems, "\n")
	head, attempts, _ := strings.Cut(text, "tried:\n")
	if line := firstLine(attempts); line != "" {
		return line
	}
	return firstLine(head)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// marks are the words before an item.
var marks = map[doctor.State]string{doctor.OK: "ok", doctor.Advice: "advice",
	doctor.Problem: "PROBLEM", doctor.Unknown: "unknown"}

func writeDoctor(w io.Writer, r *doctor.Report) {
	const indent = 9
	for i, item := range r.Items {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%-*s%s\n", indent, marks[item.State], item.Title)
		for _, line := range item.Found {
			writeIndented(w, indent, line)
		}
		writeSpeeds(w, indent, item.Speed)
		writeIndented(w, indent, "Do: "+item.Do+".")
	}
}

// writeSpeeds writes the measurements as a table: a row for each engine and cipher, a column for each
// size.
func writeSpeeds(w io.Writer, indent int, speeds []doctor.Speed) {
	row := ""
	for i, s := range speeds {
		if name := s.Engine + " " + s.Cipher; name != row {
			if row == "" {
				writeIndented(w, indent, "MB/s that a TLS 1.2 connection seals, measured through its Write, without a network")
				fmt.Fprintf(w, "%*s%-26s", indent, "", "records of")
				for _, t := range speeds[i:] {
					if t.Engine+" "+t.Cipher == name {
						fmt.Fprintf(w, "%10s", fmt.Sprintf("%d B", t.Bytes))
					}
				}
			}
			row = name
			fmt.Fprintf(w, "\n%*s%-26s", indent, "", name)
		}
		fmt.Fprintf(w, "%10.1f", s.MBs)
	}
	if len(speeds) > 0 {
		fmt.Fprintln(w)
	}
}
