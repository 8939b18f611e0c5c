package terminator

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ossl-go/ossl"
)

// Settle prepares the process for serving a Config: it listens, and gives up all other access
// that the Config doesn't need, for good. It returns the sockets, for StartWith.
//
// Linux confines single threads by Landlock, and has no safe way to reach all threads of a program
// with C: a signal to each of them, as in libcap's psx, may find it in malloc, and never returns
// then. So Settle confines one thread, which executes the program again: the same process, with the
// same arguments and the sockets, whose threads all descend from that one. In it, Settle finds that
// it is done. What it has not done yet in the process that returns is not necessary or not possible;
// then [Server.Landlock] has the reason. The timers are relaxed in the same way.
//
// in is what Inherit has returned. last is called before the program is executed; an error that it
// returns is Settle's.
func Settle(c *Config, in *Inherited, last func() error) (*Inherited, error) {
	if in == nil {
		in = &Inherited{}
	}
	all, err := c.compile()
	if err != nil {
		return in, err
	}
	p := all.confinement
	if in.domain != nil { // the kernel bounds the number of domains within each other
		if err := in.domain.covers(p); err != nil {
			return in, err
		}
	}
	if in.settled {
		// The configuration may have been read once more in the program that was executed.
		if in.domain == nil && (p.landlock == "on" || in.unconfined == landlockOff && !p.off()) {
			return in, errors.New("landlock has changed in the configuration while the program started: start it again")
		}
		return in, nil
	}
	d, err := in.domainFor(p)
	if err != nil {
		return in, err
	}
	sockets, err := listenAll(all.places, in)
	if err != nil {
		return in, err
	}
	in.sockets = append(in.sockets, sockets...)
	in.settled = true
	if in.unmet == nil && (d != nil || timersAreDue()) {
		err = in.executeAgain(p, d, last)
	}
	return in, err
}

// domainFor returns the domain to enter, or nil if there is none: the process is in one, or in.unconfined
// has the reason. in.unmet is set if the domain isn't known, since a file or the library is missing,
// which StartWith has better words for.
func (in *Inherited) domainFor(p *confinement) (*domain, error) {
	if in.domain != nil {
		return nil, nil
	}
	if p.off() {
		in.unconfined = landlockOff
		return nil, nil
	}
	if p.provided != "" {
		in.unconfined = "not used: keys of scheme " + p.provided + " need an OpenSSL provider, which may open any file and port"
		return nil, nil
	}
	abi, err := landlockVersion()
	if err == nil {
		_, err = programFile()
	}
	if err != nil {
		return nil, in.withoutLandlock(p, err)
	}
	d, err := p.needs()
	var library []string
	if err == nil && p.engine == "ossl" {
		library, err = libraryFolders()
	}
	if err != nil {
		in.unmet = err
		return nil, nil
	}
	d.ABI = abi
	d.Read = slices.Concat(d.Read, p.spare(), library, systemFolders())
	for _, list := range []*[]string{&d.Read, &d.Sockets, &d.Write} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return d, nil
}

// libraryFolders loads OpenSSL, and returns the folder of its configuration. Those of the libraries
// that are loaded with it are found by mappedFolders.
func libraryFolders() ([]string, error) {
	info, err := ossl.Library()
	if err != nil {
		return nil, err
	}
	if privileged() {
		// Refuses the variables of the environment that would be in force in the program without privileges.
		if _, err := ossl.NewContext(nil); err != nil {
			return nil, err
		}
	}
	if folder, err := resolve(filepath.Dir(info.HostPolicy.ConfigFile)); err == nil && info.HostPolicy.ConfigFile != "" {
		return []string{folder}, nil
	}
	return nil, nil
}

// withoutLandlock notes the reason why there is no domain, or returns it as an error if there must be one.
func (in *Inherited) withoutLandlock(p *confinement, reason error) error {
	if p.landlock == "on" {
		return fmt.Errorf("landlock: %w", reason)
	}
	in.unconfined = "not used: " + reason.Error()
	return nil
}
