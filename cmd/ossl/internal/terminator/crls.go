package terminator

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ossl-go/ossl"
)

// A crlPlan is the part of a plan that is about the revocation lists for clients, or for a site's backends.
type crlPlan struct {
	files []string // and folders; none means that no lists are looked at
	soft  bool     // certificates without a list that counts pass
	fips  bool     // the module verifies the lists
}

// check returns an error if soft fail is asked for without lists. prefix is that of the settings' names.
func (p crlPlan) check(prefix string) error {
	if p.soft && len(p.files) == 0 {
		return fmt.Errorf("%scrl-soft-fail needs %scrl", prefix, prefix)
	}
	return nil
}

// crlFiles are revocation lists that follow their files.
type crlFiles struct {
	lists *ossl.CRLs
	watch *ossl.Watch
}

// crlStore has all revocation lists of a configuration, by their plans' keys. The lists outlive the
// generation that loaded them: those that a new one takes from the same files may not be older.
type crlStore map[string]*crlFiles

// key returns the settings that lists are loaded for.
func (p crlPlan) key() string { return fmt.Sprintf("%q %t", p.files, p.fips) }

// crls returns the plans of all lists.
func (p *plan) crls() []crlPlan {
	all := []crlPlan{p.tls.crls}
	for _, s := range p.sites {
		if s.backends != nil {
			all = append(all, s.backends.crls)
		}
	}
	return all
}

// loadCRLs returns the lists of a plan. Those that a former configuration has too are read again.
func loadCRLs(p *plan, former crlStore, log *slog.Logger) (crlStore, error) {
	store := crlStore{}
	for _, c := range p.crls() {
		key := c.key()
		if len(c.files) == 0 || store[key] != nil {
			continue
		}
		var err error
		if store[key] = former[key]; store[key] != nil {
			err = store[key].watch.Reload()
		} else {
			store[key], err = followCRLs(c.files, log)
		}
		if err != nil {
			store.end(former)
			return nil, err
		}
	}
	store.warn(log)
	return store, nil
}

// followCRLs loads lists, which follow their files from then on.
func followCRLs(files []string, log *slog.Logger) (*crlFiles, error) {
	lists, err := ossl.LoadCRLs(ossl.CRLFiles(files...))
	if err != nil {
		return nil, err
	}
	watch := ossl.NewWatch(lists.Reload, files...)
	watch.OnEvent = func(e ossl.WatchEvent) {
		if e.Err != nil {
			log.Error("revocation lists not replaced", "error", e.Err)
		} else {
			log.Info("revocation lists replaced")
		}
	}
	return &crlFiles{lists, watch}, watch.Start(context.Background(), 0)
}

// warn logs the lists that have expired.
func (s crlStore) warn(log *slog.Logger) {
	for _, c := range s {
		for _, l := range c.lists.Lists() {
			if time.Now().After(l.NextUpdate) {
				log.Warn("a revocation list has expired", "issuer", l.Issuer, "until", l.NextUpdate.UTC().Format(time.RFC3339))
			}
		}
	}
}

// end stops to follow the files of the lists, except those that other has too. It returns the changes
// of those that it has stopped to follow.
func (s crlStore) end(other crlStore) (sum changeCounts) {
	for key, c := range s {
		if c != nil && c != other[key] {
			c.watch.Close()
			sum = sum.plus(c.changes())
		}
	}
	return sum
}

// changes returns the changes of the files since the lists were loaded.
func (c *crlFiles) changes() changeCounts {
	stats := c.watch.Stats()
	return changeCounts{Used: max(stats.Used, 1) - 1, Refused: stats.Refused} // the first contents are no change
}

// nextUpdate returns the first time at which a list expires, or the zero time if there is no list.
func (s crlStore) nextUpdate() (first time.Time) {
	for _, c := range s {
		for _, l := range c.lists.Lists() {
			if first.IsZero() || l.NextUpdate.Before(first) {
				first = l.NextUpdate
			}
		}
	}
	return first
}

// options returns the options by which a Context looks at the lists of a plan.
func (s crlStore) options(p crlPlan) []ossl.Option {
	if len(p.files) == 0 {
		return nil
	}
	fail := ossl.WithCRLHardFail()
	if p.soft {
		fail = ossl.WithCRLSoftFail()
	}
	return []ossl.Option{ossl.WithCRLs(s[p.key()].lists), fail}
}
