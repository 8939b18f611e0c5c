package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ossl-go/ossl"
)

// library reports the OpenSSL in use.
func library(_ context.Context, _ *Options, item *Item) {
	lib, err := ossl.Library()
	if err != nil {
		item.find(err.Error())
		if name := os.Getenv("OSSL_LIBRARY"); name != "" {
			item.judge(Problem, fmt.Sprintf("correct OSSL_LIBRARY, which is %q, or unset it; the libraries found are below", name))
			return
		}
		item.judge(Problem, "install OpenSSL's libraries (libssl3 in Debian, openssl-libs in Fedora), or name one by OSSL_LIBRARY")
		return
	}
	item.find(lib.VersionText)
	item.find("libssl: " + lib.Path)
	item.find("libcrypto: " + lib.CryptoPath)
	if end, do := support(lib.Version); do != "" {
		item.find(end)
		item.judge(Advice, do)
	}
}

// versionOf returns the first two numbers of a version: 3 and 5 of "3.5.7".
func versionOf(version string) (major, minor int) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0
	}
	major, _ = strconv.Atoi(parts[0])
	minor, _ = strconv.Atoi(parts[1])
	return major, minor
}

// support returns the state of the OpenSSL project's support of a version, and advice if the
// version isn't supported any more: openssl-library.org/policies/releasestrat.
func support(version string) (found, do string) {
	switch major, minor := versionOf(version); {
	case major < 3:
		return "the OpenSSL project's support of 1.1.1 ended in September 2023",
			"see that your distribution still mends it, and plan for 3.5, which is supported until April 2030"
	case major == 3 && minor == 0:
		return "the OpenSSL project's support of 3.0 ended in September 2026",
			"see that your distribution still mends it, and plan for 3.5, which is supported until April 2030"
	case major == 3 && minor < 5:
		return fmt.Sprintf("the OpenSSL project's support of %d.%d has ended", major, minor),
			"see that your distribution still mends it, or use 3.5, which is supported until April 2030"
	}
	return "", ""
}

// A Found is an OpenSSL library on this host.
type Found struct {
	Path    string `json:"path"`              // without symbolic links
	InUse   bool   `json:"in_use"`            // this process has it
	Version string `json:"version,omitempty"` // if it can be loaded
	Refused string `json:"refused,omitempty"` // why it can't be
}

// libraryFolders are where libraries are; the asterisk stands for the machine's triple.
var libraryFolders = []string{"lib", "lib64", "lib/*-linux-*", "usr/lib", "usr/lib64", "usr/lib/*-linux-*",
	"usr/local/lib", "usr/local/lib64",
	"usr/local/ssl/lib*", "usr/local/openssl*/lib*", "opt/openssl*/lib*", "opt/*/openssl*/lib*"}

// maxLibraries bounds the libraries that are tried.
const maxLibraries = 32

// libraries lists the other libssl on this host, and tries them.
func libraries(ctx context.Context, o *Options, item *Item) {
	inUse := ""
	if lib, err := ossl.Library(); err == nil {
		inUse = lib.Path
	}
	var paths []string
	for _, folder := range libraryFolders {
		matches, _ := filepath.Glob(filepath.Join(o.path(folder), "libssl.so*")) // the patterns are well formed
		for _, m := range matches {
			real, err := filepath.EvalSymlinks(m)
			if err == nil && !slices.Contains(paths, real) && len(paths) < maxLibraries {
				paths = append(paths, real)
			}
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		f := Found{Path: path, InUse: path == inUse}
		text := path
		switch {
		case f.InUse:
			text += ": in use"
		case o.Try == nil:
			text += ": not tried"
		default:
			var err error
			if f.Version, err = o.Try(ctx, path); err != nil {
				f.Refused, _, _ = strings.Cut(err.Error(), "\n")
				text += ": refused: " + f.Refused
			} else {
				text += ": OpenSSL " + f.Version + ", usable by OSSL_LIBRARY=" + path
			}
		}
		item.Libraries = append(item.Libraries, f)
		item.find(text)
	}
	if len(paths) == 0 {
		item.find("no libssl.so in the usual folders")
		if inUse == "" {
			item.judge(Unknown, "name the folder by OSSL_LIBRARY if there is one elsewhere")
		}
	}
}

// slowSpots reports the gains of a later OpenSSL. The figures are from docs/figures.
func slowSpots(_ context.Context, _ *Options, item *Item) {
	lib, err := ossl.Library()
	if err != nil {
		item.judge(Unknown, "see 'OpenSSL in use' first")
		return
	}
	if major, minor := versionOf(lib.Version); major > 3 || major == 3 && minor >= 5 {
		item.find("none that a later release mends: " + lib.Version)
		return
	}
	const figures = "ratios to crypto/tls on the project's machine, in docs/PERFORMANCE.md"
	item.find("bulk data: 1.3 times crypto/tls's throughput on OpenSSL 3.0, 1.9 on 3.5 and 4.0 (" + figures + ")")
	item.find("handshakes with RSA-2048: 0.73 of crypto/tls's time on 3.0, 0.68 on 3.5, 0.65 on 4.0")
	item.find("handshakes with ECDSA P-256: 1.35 of crypto/tls's time on 3.0, 1.21 on 3.5, 1.12 on 4.0")
	item.find("post-quantum key exchange (X25519MLKEM768): from 3.5 on")
	item.judge(Advice, "use OpenSSL 3.5 or later: Debian 13 has 3.5")
}

// hostPolicy reports the restrictions in openssl.cnf.
func hostPolicy(_ context.Context, _ *Options, item *Item) {
	lib, err := ossl.Library()
	if err != nil {
		item.judge(Unknown, "see 'OpenSSL in use' first")
		return
	}
	p := lib.HostPolicy
	for line := range strings.Lines(p.String()) {
		item.find(strings.Join(strings.Fields(line), " "))
	}
	switch {
	case p.Err != nil:
		do := "mend " + p.ConfigFile + ": connections fail until then"
		if lib.FIPSUnknown == nil && lib.FIPSRequired == "" {
			do += ", except those of contexts with WithoutHostPolicy"
		}
		item.judge(Problem, do)
	case p.MinVersion != 0 && p.MinVersion < tls.VersionTLS12:
		item.judge(Advice, "nothing for programs on ossl, which refuse versions below TLS 1.2; "+
			"other programs may offer them: set MinProtocol")
	case p.SecurityLevel < 2:
		item.judge(Advice, fmt.Sprintf("raise the security level of %d in %s to 2: "+
			"CipherString = DEFAULT@SECLEVEL=2", p.SecurityLevel, p.ConfigFile))
	}
}

// fips reports whether FIPS mode is required, and possible.
func fips(_ context.Context, _ *Options, item *Item) {
	lib, err := ossl.Library()
	if err != nil {
		item.judge(Unknown, "see 'OpenSSL in use' first")
		return
	}
	switch {
	case lib.FIPSUnknown != nil:
		item.find("unknown whether it is required: " + lib.FIPSUnknown.Error())
		item.judge(Problem, "mend that: no connection can be made until then")
	case lib.FIPSRequired != "" && !lib.FIPS:
		item.find("required: " + lib.FIPSRequired + "; not in force")
		_, err := ossl.NewContext(&tls.Config{}, ossl.WithFIPS())
		if err != nil {
			item.find(err.Error())
		}
		item.judge(Problem, "set the module up as docs/FIPS.md says: every connection fails until then")
	case lib.FIPSRequired != "":
		item.find("required: " + lib.FIPSRequired)
		if ctx, err := ossl.NewContext(&tls.Config{}); err == nil {
			item.find("in force: " + ctx.FIPS().String())
		} else {
			item.find("the module works, but contexts can't be made: " + err.Error())
			item.judge(Problem, "mend that: every connection fails until then")
		}
	case lib.FIPS:
		item.find("not required; the module works")
	default:
		item.find("not required; no usable module")
		item.Do = "nothing, unless you need FIPS mode: docs/FIPS.md"
	}
}
