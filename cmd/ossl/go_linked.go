package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// examineLinked examines the file that the linker of "ossl go" has made, with the linker's arguments.
func examineLinked(_ *cobra.Command, args []string) error {
	out := ""
	for i, a := range args {
		if a == "-o" && i+1 < len(args) {
			out = args[i+1]
		} else if name, ok := strings.CutPrefix(a, "-o="); ok {
			out = name
		}
	}
	if out == "" {
		return fmt.Errorf("the linker's arguments name no output: %q", args)
	}
	return nil
}
