package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestNarrow: the help of each command fits 80 columns, and loses nothing.
func TestNarrow(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		text := cmd.Long + "\n\n" + cmd.UsageString()
		got := narrow(text, narrowest)
		for line := range strings.SplitSeq(got, "\n") {
			if utf8.RuneCountInString(line) > narrowest && len(strings.Fields(line)) > 1 { // but an address
				t.Errorf("%s: too long: %q", cmd.CommandPath(), line)
			}
		}
		if !slices.Equal(strings.Fields(got), strings.Fields(text)) {
			t.Errorf("%s: other words than before:\n%s", cmd.CommandPath(), got)
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(rootCommand(new(bool)))

	const text = `A paragraph that is too long
for its width.

  --flag   a meaning that is long
           and goes on
  example one
  example two
`
	const want = `A paragraph that is
too long for its
width.

  --flag   a meaning
           that is
           long and
           goes on
  example one
  example two
`
	if got := narrow(text, 20); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Values of somebody's configuration don't fill the screen.
func TestCut(t *testing.T) {
	if got := cut(strings.Repeat("é", 2000)); utf8.RuneCountInString(got) != 2000 {
		t.Error(got)
	}
	if got := valueOf(strings.Repeat("é", 1<<20), true); got != strings.Repeat("é", 2000)+"…" {
		t.Error(len(got))
	}
}
