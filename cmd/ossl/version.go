package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show this command's version, the OpenSSL found on this host, and the host's policy for it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lib, err := findLibrary()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				e := json.NewEncoder(out)
				e.SetIndent("", "  ")
				return e.Encode(struct {
					Version string  `json:"version"`
					Go      string  `json:"go"`
					Library library `json:"library"`
				}{version(), runtime.Version(), lib})
			}
			fmt.Fprintf(out, "ossl        %s, %s\n", version(), runtime.Version())
			fmt.Fprintf(out, "OpenSSL     %s\n", lib.VersionText)
			fmt.Fprintf(out, "libssl      %s\n", lib.Path)
			fmt.Fprintf(out, "libcrypto   %s\n", lib.CryptoPath)
			fmt.Fprintf(out, "can do      %s\n", lib.abilities())
			fmt.Fprintln(out, lib.Policy.text)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// version returns the version of the module that this command was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
