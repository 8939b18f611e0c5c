package terminator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A domain is the part of the system that Landlock leaves to a process and to the processes that it
// starts: landlock(7). Nothing can be added to it later.
type domain struct {
	ABI     int      `json:"abi"`     // the version of the kernel's interface
	Read    []string `json:"read"`    // folders whose files may be read, without symbolic links
	Sockets []string `json:"sockets"` // folders in which Unix sockets may be made and removed
	Write   []string `json:"write"`   // folders in which files may be made, changed and removed
	Connect bool     `json:"connect"` // TCP connections may be made
}

// connectABI is the first version of Landlock that restricts TCP connections.
const connectABI = 4

// needs returns the domain that the process needs, apart from the system's own files.
func (p *confinement) needs() (*domain, error) {
	d := &domain{Connect: p.connect} // all ports or none, because a reload may add a backend on another port
	for _, file := range p.files {
		path, err := resolve(file)
		if err != nil {
			if _, exists := os.Stat(file); exists == nil { // such as /dev/fd/3 of a pipe, which no folder holds
				continue
			}
			return nil, err
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() { // else it is a folder of revocation lists
			path = filepath.Dir(path)
		}
		d.Read = append(d.Read, path)
	}
	for _, root := range p.roots {
		path, err := resolve(root)
		if err != nil {
			return nil, err
		}
		d.Read = append(d.Read, path)
	}
	for _, folder := range p.folders {
		path, err := resolve(folder)
		if err != nil {
			return nil, fmt.Errorf("landlock-read: %w", err)
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("landlock-read: %s is not a folder", folder)
		}
		d.Read = append(d.Read, path)
	}
	return d, errors.Join(d.addSockets(p.places), d.addACME(p.acme))
}

// addACME adds the storage of certificates by ACME, which it makes if there is none.
func (d *domain) addACME(acme *acmePlan) error {
	if acme == nil {
		return nil
	}
	if err := acme.makeStorage(); err != nil {
		return err
	}
	folder, err := resolve(acme.Storage)
	if err != nil {
		return err
	}
	d.Read, d.Write = append(d.Read, folder), append(d.Write, folder)
	return nil
}

// addSockets adds the folders of Unix sockets.
func (d *domain) addSockets(places []place) error {
	for _, p := range places {
		if p.network != "unix" || p.address[0] == '@' { // which has no file
			continue
		}
		folder, err := resolve(filepath.Dir(p.address))
		if err != nil {
			return err
		}
		d.Sockets = append(d.Sockets, folder)
	}
	return nil
}

// spare returns folders in which files that a configuration names may be after a change: the folders
// of links to them, which programs that renew certificates replace, and the folder of a link to a
// site's folder, which may soon name another folder beside it.
func (p *confinement) spare() (folders []string) {
	add := func(name string) {
		if folder, err := resolve(filepath.Dir(name)); err == nil {
			folders = append(folders, folder)
		}
	}
	for _, file := range slices.Concat(p.files, p.roots) {
		if info, err := os.Lstat(filepath.Clean(file)); err != nil || !info.IsDir() {
			add(file)
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
func (d *domain) covers(p *confinement) error {
	const remedy = "stop the server and start it again"
	if p.off() {
		return fmt.Errorf("landlock can't be turned off: the process is confined already; %s", remedy)
	}
	if p.provided != "" {
		return fmt.Errorf("landlock: keys of scheme %s need an OpenSSL provider, which may open any file; %s", p.provided, remedy)
	}
	covered := func(outers []string, folder string) bool {
		return slices.ContainsFunc(outers, func(outer string) bool { return within(outer, folder) })
	}
	if p.acme != nil { // before needs makes the storage
		if folder, err := resolveNew(p.acme.Storage); err != nil {
			return fmt.Errorf("acme-storage: %w", err)
		} else if !covered(d.Write, folder) {
			return fmt.Errorf("landlock: the process may not write in %s since it started; %s", folder, remedy)
		}
	}
	need, err := p.needs()
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
