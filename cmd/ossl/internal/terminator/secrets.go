package terminator

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A namedFile is a file that a Config names, or the URI of a certificate or a key.
type namedFile struct {
	name     string
	secret   bool // no client may read it
	provided bool // it may have a URI that OpenSSL's providers alone know
}

// namedFiles returns all files that the Config names, and the file of the Config itself, except the
// files of sites' folders and the files that ACME keeps. Settings that name further ones belong here.
func (c *Config) namedFiles() (all []namedFile) {
	add := func(secret bool, names ...string) {
		for _, name := range names {
			all = append(all, namedFile{name: name, secret: secret})
		}
	}
	addPair := func(cert, key string) {
		all = append(all, namedFile{cert, false, true}, namedFile{key, true, true})
	}
	add(true, c.File, c.RedisSecret, c.RedisPassword, c.ACME.EABKey)
	add(true, c.TicketKeys...)
	add(false, c.RedisCA, c.ACME.Roots)
	add(false, c.CRLs...)
	addPair(c.RedisCert, c.RedisKey)
	for i := range c.Sites {
		s := &c.Sites[i]
		for _, p := range s.Pairs {
			addPair(p.Cert, p.Key)
			add(true, p.Password)
		}
		add(false, s.ClientCA...)
		add(false, s.Backend.CA)
		add(false, s.Backend.CRLs...)
		addPair(s.Backend.Cert, s.Backend.Key)
	}
	return slices.DeleteFunc(all, func(f namedFile) bool { return f.name == "" })
}

// filePath returns the path of a file, which may be in a URI, and reports whether name stands for a
// file. Other URIs are known to OpenSSL's providers alone.
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

// secretNames returns the names of the files that a configuration and the environment name, and that
// no client may read.
func (c *Config) secretNames(acme *acmePlan) []string {
	names := acme.secrets()
	for _, f := range c.namedFiles() {
		if path, isFile := filePath(f.name); isFile && f.secret && path != "" {
			names = append(names, path)
		}
	}
	if name := os.Getenv("OSSL_KEYLOG"); name != "" && c.Engine == "ossl" {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkSecrets returns an error if a secret file is in the folder of a site.
func checkSecrets(names []string, all []*sitePlan) error {
	sites := map[string]*sitePlan{} // the first ones, by their folders
	for _, s := range all {
		if s.Root == "" {
			continue
		}
		if root, err := resolve(s.Root); err == nil && sites[root] == nil { // else the site can't be served
			sites[root] = s
		}
	}
	if len(sites) == 0 {
		return nil
	}
	for _, name := range names {
		path, err := resolveNew(name)
		for last := ""; err == nil && path != last; last, path = path, filepath.Dir(path) { // itself, if it is a folder of secrets
			if s := sites[path]; s != nil {
				return s.fault(fmt.Errorf("the folder %s has %s in it, a secret of this server, which every client could read: "+
					"serve a folder that has nothing but the files to serve", s.Root, name))
			}
		}
	}
	return nil
}

// resolveNew returns the path of a file, which need not exist yet, without symbolic links.
func resolveNew(name string) (string, error) {
	if path, err := resolve(name); err == nil {
		return path, nil
	}
	folder, err := resolve(filepath.Dir(name))
	return filepath.Join(folder, filepath.Base(name)), err
}

// A secretFiles recognizes the files of names under other names too: hard links and bind mounts.
type secretFiles struct {
	names []string

	mu    sync.Mutex
	asked time.Time     // guarded by mu
	files []fs.FileInfo // guarded by mu; of the names, or nil
}

// secretsFor is the time for which the names lead to the same files. A renewal replaces them.
const secretsFor = time.Second

func newSecretFiles(names []string) *secretFiles {
	s := &secretFiles{names: names, files: make([]fs.FileInfo, len(names))}
	s.ask()
	return s
}

// has reports whether an open file is in s.
func (s *secretFiles) has(file fs.FileInfo) bool {
	s.mu.Lock()
	due := time.Since(s.asked) >= secretsFor
	if due {
		s.asked = time.Now() // so that only one request waits if the file system hangs
	}
	s.mu.Unlock()
	if due {
		s.ask()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.files, func(secret fs.FileInfo) bool { return secret != nil && os.SameFile(secret, file) })
}

// ask finds out to which files the names lead. One that can't be found out, since the user of the
// process has changed, remains.
func (s *secretFiles) ask() {
	for i, name := range s.names {
		info, err := os.Stat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s.mu.Lock()
		s.files[i], s.asked = info, time.Now()
		s.mu.Unlock()
	}
}
