package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
)

type certFlags struct {
	folder, out  string
	clients      []string
	key, keyOfCA string
	days         int
}

func certCommand() *cobra.Command {
	f := &certFlags{}
	cmd := &cobra.Command{
		Use:   "cert [flags] [NAME...]",
		Short: "Make certificates for development, by an authority of your own",
		Long: `Cert makes a certificate for a server and its key. Each NAME is a DNS name, which may begin with
"*.", an IP address, an email address or a URI. With --client it makes a certificate for a client,
too.

The first run makes an authority, in a folder of yours. The certificates are trusted by programs
that you give its certificate, and by no others: cert changes no list of trusted authorities. The
authority issues certificates for TLS alone, no further authorities, and ends after ten years.
Whoever has its key can pass for any server to the programs that trust it, so keep it on this
machine, and don't trust it on machines that are not for development.

The files are named for the first NAME: NAME.pem and NAME-key.pem. No file is ever replaced, each
appears when it is whole, and keys have the mode 0600.`,
		Example: `  ossl cert localhost 127.0.0.1 ::1 example.test
  ossl cert --client alice@example.test
  ossl cert --key rsa --days 30 --out certs '*.example.test'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && len(f.clients) == 0 {
				return usageError("give the names of a server, such as localhost and 127.0.0.1, or --client")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.OutOrStdout(), args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.clients, "client", nil,
		"make a certificate for a client with this `name`: an email address, a\nURI, a DNS name or any text; may be repeated")
	flags.StringVar(&f.key, "key", string(localca.ECDSA),
		"the `kind` of key: ecdsa (P-256), rsa (3072 bits), ed25519, or, if ossl\nwas built with Go 1.27, mldsa44, mldsa65, mldsa87")
	flags.IntVar(&f.days, "days", 90, "the certificate is valid for this many `days`")
	flags.StringVar(&f.out, "out", ".", "write the certificate and its key to this `folder`")
	flags.StringVar(&f.folder, "dir", "", "the authority's `folder` (default ossl/ca in your folder for configurations)")
	flags.StringVar(&f.keyOfCA, "ca-key", "", "the `kind` of the authority's key, when it is made (default ecdsa)")
	for _, name := range []string{"key", "ca-key"} {
		complete := cobra.FixedCompletions(localca.Kinds, cobra.ShellCompDirectiveNoFileComp)
		if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
			panic(err) // the flag isn't declared above
		}
	}
	return cmd
}

func (f *certFlags) run(out io.Writer, names []string) error {
	kind, err := localca.ParseKind(f.key)
	if err != nil {
		return usageError("--key " + err.Error())
	}
	var kindOfCA localca.Kind
	if f.keyOfCA != "" {
		if kindOfCA, err = localca.ParseKind(f.keyOfCA); err != nil {
			return usageError("--ca-key " + err.Error())
		}
	}
	const mostDays = 3650
	if f.days < 1 || f.days > mostDays {
		return usageError(fmt.Sprintf("--days is %d, but must be from 1 to %d", f.days, mostDays))
	}
	if f.folder == "" {
		if f.folder, err = authorityFolder(); err != nil {
			return err
		}
	}
	var requests []localca.Request
	request := localca.Request{Kind: kind, Lifetime: time.Duration(f.days)*24*time.Hour - localca.Early}
	if len(names) > 0 {
		request.Names = names
		requests = append(requests, request)
	}
	for _, name := range f.clients {
		request.Names, request.Client = []string{name}, true
		requests = append(requests, request)
	}
	files := map[string]string{} // the names that they are for
	for _, r := range requests { // before anything is made
		if err := r.Check(); err != nil {
			return usageError(err.Error())
		}
		file, _ := r.Files(f.out)
		if other, ok := files[file]; ok {
			return usageError(fmt.Sprintf("%q and %q would have the same file, %s: make them one after the other, with --out for one",
				other, r.Names[0], file))
		}
		files[file] = r.Names[0]
	}
	authority, err := localca.Open(f.folder, kindOfCA)
	if err != nil {
		return err
	}
	age := "exists"
	if authority.Made {
		age = "made now"
	}
	fmt.Fprintf(out, "authority  %s (%s; until %s)\n", authority.File, age, authority.Certificate.NotAfter.Format(time.DateOnly))
	for _, r := range requests {
		issued, err := authority.Issue(r, f.out)
		if err != nil {
			return err
		}
		describe(out, authority, r, issued)
	}
	return nil
}

// authorityFolder returns the folder of the authority if none is given.
func authorityFolder() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for your configurations (%w): give --dir", err)
	}
	return filepath.Join(folder, "ossl", "ca"), nil
}

// describe prints which files were made, and how to use them.
func describe(out io.Writer, authority *localca.Authority, r localca.Request, issued *localca.Issued) {
	who := "server"
	if r.Client {
		who = "client"
	}
	fmt.Fprintf(out, "%s     %s, %s\n", who, issued.CertificateFile, issued.KeyFile)
	fmt.Fprintf(out, "           for %s; until %s\n",
		printable(strings.Join(issued.Names, ", ")), issued.NotAfter.Format(time.DateOnly))
	ca, cert, key := shellWord(authority.File), shellWord(issued.CertificateFile), shellWord(issued.KeyFile)
	if r.Client {
		fmt.Fprintf(out, "           curl --cacert %s --cert %s --key %s https://localhost:8443/\n", ca, cert, key)
		return
	}
	fmt.Fprintf(out, "           ossl serve --cert %s --key %s FOLDER     # of files to serve, without keys\n", cert, key)
	fmt.Fprintf(out, "           curl --cacert %s https://%s:8443/\n", ca, urlHost(issued.Names[0]))
}

// urlHost returns a certificate's name as the host of a URL.
func urlHost(name string) string {
	switch {
	case strings.HasPrefix(name, "*."):
		return "www" + name[1:]
	case strings.Contains(name, "://") || strings.Contains(name, "@"):
		return "localhost"
	case strings.Contains(name, ":"):
		return "[" + name + "]"
	}
	return name
}

// shellWord quotes a word for a shell if it needs that.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-@:+", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
