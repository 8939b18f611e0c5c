package terminator

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A domain is the part of the system that Landlock leaves to a process and to the processes that it
// starts: landlock(7). Nothing can be added to it later.
type domain struct {
	ABI     int      `json:"abi"`     // the version of the kernel's interface
	Read    []string `json:"read"`    // folders whose files may be read, without symbolic links
	Sockets []string `json:"sockets"` // folders in which Unix sockets may be made and removed
	Write   []string `json:"write"`   // folders in which files may be made, changed and removed
	Connect bool     `json:"connect"` // connections of TCP may be made
}

// connectABI is the first version of Landlock that restricts connections of TCP.
const connectABI = 4

// needs returns the domain that a configuration needs, apart from the system's own files.
func needs(c *Config) (*domain, error) {
	d := &domain{}
	for _, file := range c.readFiles() {
		path, err := resolve(file)
		if err != nil {
			if _, exists := os.Stat(file); exists == nil { // such as /dev/fd/3 of a pipe, which no folder holds
				continue
			}
			return nil, err
		}
		d.Read = append(d.Read, filepath.Dir(path))
	}
	for i := range c.Sites {
		if root := c.Sites[i].Root; root != "" {
			path, err := resolve(root)
			if err != nil {
				return nil, err
			}
			d.Read = append(d.Read, path)
		}
	}
	for _, folder := range c.LandlockRead {
		path, err := resolve(folder)
		if err != nil {
			return nil, fmt.Errorf("landlock-read: %w", err)
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("landlock-read: %s is not a folder", folder)
		}
		d.Read = append(d.Read, path)
	}
	// All ports or none, because a reload may add a backend on another port.
	d.Connect = c.Redis != "" || len(c.acmeSites()) > 0 || slices.ContainsFunc(c.Sites, func(s Site) bool { return s.Root == "" })
	return d, errors.Join(d.addSockets(c), d.addACME(c))
}

// addACME adds the storage of certificates by ACME, which it makes if there is none.
func (d *domain) addACME(c *Config) error {
	if len(c.acmeSites()) == 0 {
		return nil
	}
	if err := c.makeACMEStorage(); err != nil {
		return err
	}
	folder, err := resolve(c.ACME.Storage)
	if err != nil {
		return err
	}
	d.Read, d.Write = append(d.Read, folder), append(d.Write, folder)
	return nil
}

// addSockets adds the folders of the Unix sockets on which a configuration listens.
func (d *domain) addSockets(c *Config) error {
	for _, address := range slices.Concat(c.Listen, c.Redirect, []string{c.Admin}) {
		path, ok := cutUnix(address)
		if !ok || strings.HasPrefix(path, "@") { // which has no file
			continue
		}
		folder, err := resolve(filepath.Dir(path))
		if err != nil {
			return err
		}
		d.Sockets = append(d.Sockets, folder)
	}
	return nil
}

// readFiles returns the names of the files that a configuration names, and its own.
func (c *Config) readFiles() (files []string) {
	add := func(names ...string) {
		for _, name := range names {
			if path, isFile := filePath(name); isFile && name != "" {
				files = append(files, path)
			}
		}
	}
	add(c.File, c.RedisSecret, c.RedisPassword, c.RedisCA, c.RedisCert, c.RedisKey)
	add(c.TicketKeys...)
	add(c.ACME.Roots, c.ACME.EABKey)
	for i := range c.Sites {
		s := &c.Sites[i]
		for _, p := range s.Pairs {
			add(p.Cert, p.Key, p.Password)
		}
		add(s.ClientCA...)
		add(s.Backend.CA, s.Backend.Cert, s.Backend.Key)
	}
	return files
}

// filePath returns the path of a file, which may be in a URI, and reports whether the name is one
// of a file. Those of other URIs are known to OpenSSL's providers alone.
func filePath(name string) (string, bool) {
	if !isURI(name) {
		return name, true
	}
	u, err := url.Parse(name)
	if err != nil || !strings.EqualFold(u.Scheme, "file") {
		return "", false
	}
	if u.Opaque != "" {
		return u.Opaque, true
	}
	return u.Path, u.Path != ""
}

// provided returns the scheme of the first URI in a configuration that isn't of a file, or "". The
// rest of the URI may have a PIN.
func (c *Config) provided() string {
	pairs := []Pair{{Cert: c.RedisCert, Key: c.RedisKey}}
	for i := range c.Sites {
		s := &c.Sites[i]
		pairs = append(append(pairs, s.Pairs...), Pair{Cert: s.Backend.Cert, Key: s.Backend.Key})
	}
	for _, p := range pairs {
		for _, name := range []string{p.Cert, p.Key} {
			if _, isFile := filePath(name); !isFile {
				scheme, _, _ := strings.Cut(name, ":")
				return scheme
			}
		}
	}
	return ""
}

// spare returns folders in which files that a configuration names may be after a change: those of
// links to them, which programs that renew certificates replace, and that of a link to a site's
// folder, which may soon name another folder beside it.
func spare(c *Config) (folders []string) {
	add := func(name string) {
		if folder, err := resolve(filepath.Dir(name)); err == nil {
			folders = append(folders, folder)
		}
	}
	for _, file := range c.readFiles() {
		add(file)
	}
	for i := range c.Sites {
		root := filepath.Clean(c.Sites[i].Root)
		if info, err := os.Lstat(root); err == nil && info.Mode()&os.ModeSymlink != 0 {
			add(root)
		}
	}
	return folders
}

// resolve returns a path without symbolic links.
func resolve(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// covers returns an error that names the first thing that a configuration needs and Landlock
// denies.
func (d *domain) covers(c *Config) error {
	const remedy = "stop the server and start it again"
	if c.Landlock == "off" || c.Landlock == "" {
		return fmt.Errorf("landlock can't be turned off: the process is confined already; %s", remedy)
	}
	if scheme := c.provided(); scheme != "" {
		return fmt.Errorf("landlock: keys of scheme %s need an OpenSSL provider, which may open any file; %s", scheme, remedy)
	}
	covered := func(outers []string, folder string) bool {
		return slices.ContainsFunc(outers, func(outer string) bool { return within(outer, folder) })
	}
	if len(c.acmeSites()) > 0 { // before needs makes the storage
		if folder, err := resolveNew(c.ACME.Storage); err != nil {
			return fmt.Errorf("acme-storage: %w", err)
		} else if !covered(d.Write, folder) {
			return fmt.Errorf("landlock: the process may not write in %s since it started; %s", folder, remedy)
		}
	}
	need, err := needs(c)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		verb       string
		want, have []string
	}{{"read", need.Read, d.Read}, {"make sockets in", need.Sockets, d.Sockets}} {
		for _, folder := range kind.want {
			if !covered(kind.have, folder) {
				return fmt.Errorf("landlock: the process may not %s %s since it started; %s, or name folders for later in landlock-read",
					kind.verb, folder, remedy)
			}
		}
	}
	if need.Connect && !d.Connect && d.ABI >= connectABI {
		return fmt.Errorf("landlock: the process may not connect to backends, Redis or an authority of ACME: "+
			"it had none when it started; %s", remedy)
	}
	return nil
}

// within reports whether a folder is outer, or below it.
func within(outer, folder string) bool {
	rest, err := filepath.Rel(outer, folder)
	return err == nil && filepath.IsLocal(rest)
}
