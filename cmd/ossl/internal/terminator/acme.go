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

// acmeSites returns the sites that get their certificates by ACME.
func (c *Config) acmeSites() (sites []*Site) {
	for i := range c.Sites {
		if c.Sites[i].ACME {
			sites = append(sites, &c.Sites[i])
		}
	}
	return sites
}

// checkACME checks the settings of ACME, and sets defaults. The sites have been checked.
func (c *Config) checkACME() error {
	a := &c.ACME
	if len(c.acmeSites()) == 0 {
		for _, s := range []struct {
			name string
			set  bool
		}{
			{"acme-email", a.Email != ""}, {"acme-directory", a.Directory != ""}, {"acme-roots", a.Roots != ""},
			{"acme-storage", a.Storage != ""}, {"acme-agree", a.Agree}, {"acme-eab-id", a.EABID != ""}, {"acme-eab-key", a.EABKey != ""},
		} {
			if s.set {
				return fmt.Errorf("%s needs a site with acme", s.name)
			}
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

// acmeFiles returns the secret files and folders of ACME.
func (c *Config) acmeFiles() (files []string) {
	sites := c.acmeSites()
	if len(sites) == 0 {
		return nil
	}
	files = append(files, c.ACME.Storage, filepath.Join(c.ACME.folder(), acmeAccountKey))
	for _, s := range sites {
		files = append(files, c.ACME.file(s))
	}
	return files
}

// makeACMEStorage makes the storage if it is missing. It belongs to the user that the process becomes. Root
// doesn't read or write in it, because a symbolic link that this user has made there may lead to any file.
func (c *Config) makeACMEStorage() error {
	if len(c.acmeSites()) == 0 {
		return nil
	}
	a := &c.ACME
	if err := os.MkdirAll(filepath.Dir(a.Storage), 0o755); err != nil {
		return fmt.Errorf("acme-storage: %w", err)
	}
	err := os.Mkdir(a.Storage, 0o700)
	if err == nil && c.isStillRoot() {
		err = giveTo(c.User, a.Storage)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("acme-storage: %w", err)
	}
	info, err := os.Stat(a.Storage)
	switch {
	case err != nil:
		return fmt.Errorf("acme-storage: %w", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("acme-storage: others have access to %s, which is for keys: its mode must be 0700, and is %#o",
			a.Storage, info.Mode().Perm())
	}
	return nil
}

// isStillRoot reports whether the process has root's privileges, which it gives up later.
func (c *Config) isStillRoot() bool { return c.User != "" && os.Geteuid() == 0 }

// tryACMEStorage makes the folders in the storage that are missing. It returns an error if the process, which has given
// up root's privileges, can't write in them.
func (c *Config) tryACMEStorage() error {
	if len(c.acmeSites()) == 0 {
		return nil
	}
	folder := c.ACME.folder()
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

// hasACME reports whether a name is one that a certificate by ACME is for.
func (c *Config) hasACME(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return slices.ContainsFunc(c.acmeSites(), func(s *Site) bool { return slices.Contains(s.Names, name) })
}
