package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// A versionResult is the result of the command, as --json writes it. Its keys, and the keys of its
// parts, are a promise: keys are added, and none is removed or gets another type
// (testdata/version.keys).
type versionResult struct {
	Version string  `json:"version"`
	Go      string  `json:"go"`
	Object  string  `json:"object,omitempty"`
	Library library `json:"library"`
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions, the OpenSSL found on this host, and the host's policy for it",
		Long: `Version shows this command's version, the OpenSSL found on this host, and the host's policy for TLS.

If connections would fail here, because FIPS mode is required and not available or because the
host's policy can't be honoured, it shows the reason too, and its exit status is 1.

The keys of --json are stable: new ones may come, but none goes or changes its type.
  version, go           of this command
  object                the SHA-256 hash of the object with ossl's C code, if this command was built without
                        cgo; absent if cgo compiled the code
  library               the OpenSSL that was found; if there is none, only problems has a value:
    version             "3.5.7"; version_text is OpenSSL's own
    path, crypto_path   of libssl and libcrypto
    post_quantum_groups whether it has ML-KEM
    fips_module         whether its FIPS module can be used
    fips_required       why FIPS mode is required; absent if it isn't. fips_by is the module in use
    fips_unknown        why it is unknown whether FIPS mode is required; absent if known
    kernel_tls          the versions of TLS for which the kernel can encrypt
    shards              how many parts a Context has, so that many processors don't wait for each other
    host_policy         openssl.cnf: config_file, commands, and what they allow. A list that is null
                        is not restricted. unusable is the reason why it can't be honoured, if so
    problems            the reasons why connections fail, or []`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lib, err := findLibrary()
			if err != nil && !asJSON {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				e := json.NewEncoder(out)
				e.SetIndent("", "  ")
				if err := e.Encode(versionResult{version(), runtime.Version(), lib.object, lib}); err != nil {
					return err
				}
				return lib.err
			}
			writeLine(out, "ossl", version()+", "+runtime.Version())
			if lib.object != "" {
				writeLine(out, "built", "without cgo, with the object "+lib.object[:16]+"…")
			}
			writeLine(out, "OpenSSL", lib.VersionText)
			writeLine(out, "libssl", lib.Path)
			writeLine(out, "libcrypto", lib.CryptoPath)
			writeLine(out, "can do", lib.abilities())
			writeLine(out, "shards", fmt.Sprint(lib.Shards))
			writeFIPS(out, lib)
			fmt.Fprintln(out, lib.Policy.text)
			return lib.err
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
