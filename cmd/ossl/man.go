package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
)

// manCommand writes the manual pages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man [FOLDER]",
		Short: "Write the manual pages to where man finds them",
		Long: `Man writes the manual pages of this command to FOLDER. The default is ../share/man/man1 beside the
program's own folder: man looks there if that is in $PATH.`,
		Example: `  ossl man && man ossl-check
  sudo ossl man /usr/local/share/man/man1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("name one folder, or none")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := manFolder()
			if len(args) == 1 {
				folder, err = args[0], nil
			}
			if err == nil {
				err = os.MkdirAll(folder, 0o755)
			}
			if err != nil {
				return err
			}
			for name, text := range manPages(cmd.Root()) {
				err := wholefile.Replace(filepath.Join(folder, name), func(w io.Writer) error {
					_, err := io.WriteString(w, text)
					return err
				})
				if err != nil {
					return err
				}
			}
			fmt.Fprintln(cmd.OutOrStdout(), folder)
			return nil
		},
	}
}

// manFolder returns the folder of section 1 that man-db, and man of BSD and macOS, look in if this program's
// folder is in $PATH.
func manFolder() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(filepath.Dir(program)), "share", "man", "man1"), nil
}

// manPages returns the manual page of each command, by its file's name.
func manPages(cmd *cobra.Command) map[string]string {
	pages := map[string]string{pageName(cmd) + ".1": manPage(cmd)}
	for _, child := range cmd.Commands() {
		if !documented(child) {
			continue
		}
		for name, text := range manPages(child) {
			pages[name] = text
		}
	}
	return pages
}

// documented reports whether a command has a page: those that cobra adds have none.
func documented(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion"
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns a page in the language of man(7). It has no date, so that it changes only with the
// command.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"ossl\" \"ossl manual\"\n", strings.ToUpper(roff(pageName(cmd))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	if text := strings.TrimSpace(cmd.Long); text != "" {
		b.WriteString(".SH DESCRIPTION\n")
		const indentation = 7 // of man
		literal(&b, narrow(text, narrowest-indentation))
	}
	var flags strings.Builder
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			manFlag(&flags, f)
		}
	})
	if flags.Len() > 0 {
		b.WriteString(".SH OPTIONS\n" + flags.String())
	}
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		literal(&b, strings.TrimRight(cmd.Example, "\n"))
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, pageName(cmd.Parent()))
	}
	for _, child := range cmd.Commands() {
		if documented(child) {
			others = append(others, pageName(child))
		}
	}
	if others != nil {
		b.WriteString(".SH SEE ALSO\n")
		for i, name := range others {
			end := ","
			if i == len(others)-1 {
				end = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(name), end)
		}
	}
	return b.String()
}

func manFlag(b *strings.Builder, f *pflag.Flag) {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	value, usage := pflag.UnquoteUsage(f)
	fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(name))
	if value != "" {
		fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
	}
	usage = strings.ReplaceAll(usage, "\n", " ")
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(b, "\n%s\n", roff(usage))
}

// literal writes text with its line breaks, since the commands' texts have columns.
func literal(b *strings.Builder, text string) {
	b.WriteString(".nf\n")
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(roff(line) + "\n")
	}
	b.WriteString(".fi\n")
}

// roff escapes text.
func roff(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	text = strings.ReplaceAll(text, "-", `\-`)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
