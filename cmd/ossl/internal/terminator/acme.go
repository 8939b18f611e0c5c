package terminator

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
)

// DefaultACMEDirectory is the authority that certificates come from if no other one is named.
const DefaultACMEDirectory = "https://acme-v02.api.letsencrypt.org/directory"

// ACME has the settings of the authority from which sites get their certificates by ACME (RFC 8555).
type ACME struct {
	Email     string `toml:"acme-email"`     // the authority's way to reach the administrator, or ""
	Directory string `toml:"acme-directory"` // the URL of the authority's directory; Check sets the default
	Roots     string `toml:"acme-roots"`     // the file of the directory host's authorities, or "" for the system's
	Storage   string `toml:"acme-storage"`   // the folder of keys and certificates, which servers may share; Check sets the default
	Agree     bool   `toml:"acme-agree"`     // to the authority's terms
	EABID     string `toml:"acme-eab-id"`    // the identifier of an account outside of ACME to which this one is bound, or ""
	EABKey    string `toml:"acme-eab-key"`   // the file of that account's key, in base64url
}

// An acmePlan is the part of a plan that is about certificates by ACME. It is nil if there are none.
type acmePlan struct {
	ACME
	sites  []*Site  // with ACME
	kinds  []string // of challenges that can be answered
	user   string   // that the process becomes, or ""
	engine string
}

// acmePlan returns the part of the plan. checkACME has set the defaults.
func (c *Config) acmePlan() *acmePlan {
	p := &acmePlan{ACME: c.ACME, kinds: []string{challengeALPN}, user: c.User, engine: c.Engine}
	for i := range c.Sites {
		if c.Sites[i].ACME {
			p.sites = append(p.sites, &c.Sites[i])
		}
	}
	if len(p.sites) == 0 {
		return nil
	}
	if len(c.Redirect) > 0 {
		p.kinds = append(p.kinds, challengeHTTP)
	}
	return p
}

// checkACME checks the settings of ACME, and sets defaults. The sites have been checked.
func (c *Config) checkACME() error {
	a := &c.ACME
	if !slices.ContainsFunc(c.Sites, func(s Site) bool { return s.ACME }) {
		if name := firstSet(setting{"acme-email", a.Email != ""}, setting{"acme-directory", a.Directory != ""},
			setting{"acme-roots", a.Roots != ""}, setting{"acme-storage", a.Storage != ""}, setting{"acme-agree", a.Agree},
			setting{"acme-eab-id", a.EABID != ""}, setting{"acme-eab-key", a.EABKey != ""}); name != "" {
			return fmt.Errorf("%s needs a site with acme", name)
		}
		return nil
	}
	a.Directory = cmp.Or(a.Directory, DefaultACMEDirectory)
	u, err := url.Parse(a.Directory)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil:
		return fmt.Errorf("acme-directory %q is not a URL such as %s", a.Directory, DefaultACMEDirectory)
	case a.Directory == DefaultACMEDirectory && !a.Agree:
		return errors.New("acme-agree is missing: Let's Encrypt demands agreement to its terms, https://letsencrypt.org/repository/")
	case (a.EABID == "") != (a.EABKey == ""):
		return errors.New("acme-eab-id and acme-eab-key go together")
	case strings.ContainsAny(a.Email, " ,?") || a.Email != "" && !strings.Contains(a.Email, "@"):
		return fmt.Errorf("acme-email %q is not the address of a mailbox", a.Email)
	case c.FIPS:
		return errACMEAndFIPS
	case a.Storage != "":
		return nil
	case c.User != "":
		return errors.New("acme-storage is missing: with user, the folder must be named, since that user has to write in it")
	}
	a.Storage, err = defaultACMEStorage()
	return err
}

// errACMEAndFIPS refuses ACME in FIPS mode.
var errACMEAndFIPS = errors.New("acme can't be used in FIPS mode: keys, and what they sign for the authority, are made by Go's " +
	"cryptography, which is not part of the FIPS module")

// defaultACMEStorage returns a folder in the one that systemd has for the service's state, or else the user has.
func defaultACMEStorage() (string, error) {
	if state, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); state != "" {
		return filepath.Join(state, "acme"), nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "ossl", "acme"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("acme-storage is missing, and there is no folder for the user's state: %w", err)
	}
	return filepath.Join(home, ".local", "state", "ossl", "acme"), nil
}

// checkACME refuses names that the challenges can't be for.
func (s *Site) checkACME() error {
	switch {
	case !s.ACME:
		return nil
	case len(s.Pairs) > 0:
		return errors.New("a site has either acme or a certificate and its key")
	case len(s.Names) == 0:
		return errors.New("acme needs the site's names")
	}
	for _, name := range s.Names {
		if strings.HasPrefix(name, "*") {
			return fmt.Errorf("acme: %q stands for many names, which only the challenge dns-01 proves, and that isn't supported", name)
		}
		if !isDNSName(name) {
			return fmt.Errorf("acme: %q is not a DNS name", name)
		}
	}
	return nil
}

// Places in the storage, below the folder of a directory.
const (
	acmeAccountKey   = "account-key.pem"
	acmeCertificates = "certificates"
)

// folder returns the authority's folder in the storage: authorities share no accounts and no certificates.
func (a *ACME) folder() string {
	_, place, _ := strings.Cut(a.Directory, "://")
	return filepath.Join(a.Storage, notInNames.ReplaceAllString(place, "-"))
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// file returns the file of a site's certificate, its chain and its key: one, so that they change at once. Sites with
// other names have other files: servers that share the storage would replace each other's certificates for ever.
func (a *ACME) file(s *Site) string {
	names := slices.Sorted(slices.Values(s.Names))
	name := names[0]
	if len(names) > 1 {
		sum := sha256.Sum256([]byte(strings.Join(names, " ")))
		name += fmt.Sprintf("+%x", sum[:4])
	}
	return filepath.Join(a.folder(), acmeCertificates, name+".pem")
}

// pair returns the certificate of a site with ACME.
func (a *ACME) pair(s *Site) Pair { return Pair{Cert: a.file(s), Key: a.file(s)} }

// secrets returns the secret files and folders of ACME.
func (p *acmePlan) secrets() (files []string) {
	if p == nil {
		return nil
	}
	files = append(files, p.Storage, filepath.Join(p.folder(), acmeAccountKey))
	for _, s := range p.sites {
		files = append(files, p.file(s))
	}
	return files
}

// makeStorage makes the storage if it is missing. It belongs to the user that the process becomes. Root
// doesn't read or write in it, because a symbolic link that this user has made there may lead to any file.
func (p *acmePlan) makeStorage() error {
	if p == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.Storage), 0o755); err != nil {
		return fmt.Errorf("acme-storage: %w", err)
	}
	err := os.Mkdir(p.Storage, 0o700)
	if err == nil && p.isStillRoot() {
		err = giveTo(p.user, p.Storage)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("acme-storage: %w", err)
	}
	info, err := os.Stat(p.Storage)
	switch {
	case err != nil:
		return fmt.Errorf("acme-storage: %w", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("acme-storage: others have access to %s, which is for keys: its mode must be 0700, and is %#o",
			p.Storage, info.Mode().Perm())
	}
	return nil
}

// isStillRoot reports whether the process has root's privileges, which it gives up later.
func (p *acmePlan) isStillRoot() bool { return p.user != "" && os.Geteuid() == 0 }

// tryStorage makes the folders in the storage that are missing. It returns an error if the process, which has given
// up root's privileges, can't write in them.
func (p *acmePlan) tryStorage() error {
	if p == nil {
		return nil
	}
	folder := p.folder()
	err := os.Mkdir(folder, 0o700)
	for _, name := range []string{acmeCertificates, challengeALPN, challengeHTTP} {
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Mkdir(filepath.Join(folder, name), 0o700)
		}
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = wholefile.CheckReplace(filepath.Join(folder, acmeCertificates, "try"))
	}
	if err != nil {
		return fmt.Errorf("acme-storage: the server can't write in it: %w", err)
	}
	return nil
}

// has reports whether a name is one that a certificate by ACME is for.
func (p *acmePlan) has(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return p != nil && slices.ContainsFunc(p.sites, func(s *Site) bool { return slices.Contains(s.Names, name) })
}
