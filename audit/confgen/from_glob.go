package confgen

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxVisited bounds the names that the patterns of a configuration's includes are compared with.
const maxVisited = 20_000

// maxPattern bounds the bytes of a pattern. Linux's paths have no more.
const maxPattern = 4096

// glob is [filepath.Glob], with a bound on its work. Its error is [filepath.ErrBadPattern] for a pattern that
// can match nothing.
func (r *reading) glob(pattern string) ([]string, error) {
	if len(pattern) > maxPattern {
		return nil, filepath.ErrBadPattern
	}
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, err
	}
	return r.matches(filepath.Clean(pattern))
}

func (r *reading) matches(pattern string) (found []string, err error) {
	if err := r.visit(1); err != nil {
		return nil, err
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		if _, err := os.Lstat(pattern); err == nil {
			found = []string{pattern}
		}
		return found, nil
	}
	folders, err := r.matches(filepath.Dir(pattern))
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		names, err := r.matchesIn(folder, filepath.Base(pattern))
		if err != nil {
			return nil, err
		}
		found = append(found, names...)
	}
	return found, nil
}

// matchesIn returns the names in a folder, with the folder's, that match a pattern. A folder that can't be
// read has none.
func (r *reading) matchesIn(folder, pattern string) (found []string, err error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	for {
		names, end := f.Readdirnames(1000)
		if err := r.visit(len(names)); err != nil {
			return nil, err
		}
		for _, name := range names {
			if ok, err := filepath.Match(pattern, name); err != nil {
				return nil, err
			} else if ok {
				found = append(found, filepath.Join(folder, name))
			}
		}
		if end != nil {
			slices.Sort(found)
			return found, nil
		}
	}
}

func (r *reading) visit(names int) error {
	if r.visited += names; r.visited > maxVisited {
		return fmt.Errorf("the configuration's includes look at more than %d names", maxVisited)
	}
	return nil
}
