package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// compareAPIs prints the changes of each module's API since base, a version in the proxy. It returns
// an error if the version is too low for the changes.
func compareAPIs(ctx context.Context, w io.Writer, s *stage, base string) error {
	env, err := s.env()
	if err != nil {
		return err
	}
	// A version that is in the cache may have been made here from another tree.
	for _, version := range []string{s.version, base} {
		s.forget(version)
		defer s.forget(version)
	}
	var failed []error
	for _, m := range s.modules {
		if !m.released {
			continue
		}
		if _, err := os.Stat(cached(s.proxy, m.path, base+".zip")); err != nil {
			fmt.Fprintf(w, "--- API of %s: a new module\n", m.path)
			continue
		}
		old, err := loadAPI(ctx, env, m.path, base)
		if err != nil {
			return err
		}
		now, err := loadAPI(ctx, env, m.path, s.version)
		if err != nil {
			return err
		}
		report := apidiff.ModuleChanges(old, now)
		fmt.Fprintf(w, "--- API of %s since %s: %d changes\n", m.path, base, len(report.Changes))
		if err := report.Text(w); err != nil {
			return err
		}
		if err := allowed(s.version, report); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.path, err))
		}
	}
	return errors.Join(failed...)
}

// allowed returns an error if a version may not have the changes. Semantic Versioning allows all
// before v1; here a patch release breaks no callers even then.
func allowed(version string, report apidiff.Report) error {
	patch := !strings.HasPrefix(version, semver.MajorMinor(version)+".0")
	breaks := slices.ContainsFunc(report.Changes, func(c apidiff.Change) bool { return !c.Compatible })
	switch v0 := semver.Major(version) == "v0"; {
	case breaks && !v0:
		return fmt.Errorf("%s has incompatible changes, which need a new major version", version)
	case breaks && patch:
		return fmt.Errorf("%s has incompatible changes, which need a new minor version", version)
	case patch && !v0 && len(report.Changes) > 0:
		return fmt.Errorf("%s has additions, which need a new minor version", version)
	}
	return nil
}

// loadAPI loads the packages of a module that users can import.
func loadAPI(ctx context.Context, env []string, modPath, version string) (*apidiff.Module, error) {
	dir, err := os.MkdirTemp("", "ossl-api-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	user := fmt.Sprintf("module user\n\ngo 1.26.0\n\nrequire %s %s\n", modPath, version)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(user), 0o644); err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir, Env: append(slices.Clip(env), "GOFLAGS=-mod=mod"), Mode: packages.NeedName | packages.NeedTypes,
	}, modPath+"/...")
	if err != nil {
		return nil, err
	}
	m := &apidiff.Module{Path: modPath}
	var errs []error
	for _, p := range loaded {
		for _, err := range p.Errors {
			errs = append(errs, err)
		}
		if slices.Contains(strings.Split(p.PkgPath, "/"), "internal") || p.Name == "main" {
			continue
		}
		m.Packages = append(m.Packages, p.Types)
	}
	if len(loaded) == 0 {
		errs = append(errs, errors.New("no packages"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s@%s: %w", modPath, version, err)
	}
	return m, nil
}

// env is an environment in which the go command finds the modules of the stage in its proxy, and
// all others as usual.
func (s *stage) env() ([]string, error) {
	proxy, err := filepath.Abs(s.proxy)
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for _, name := range []string{"GOPROXY", "GONOSUMDB"} {
		if vars[name], err = goenv(name); err != nil {
			return nil, err
		}
	}
	var ours []string
	for _, m := range s.modules {
		ours = append(ours, m.path)
	}
	return append(os.Environ(), "GOWORK=off",
		"GOPROXY=file://"+filepath.ToSlash(proxy)+","+vars["GOPROXY"],
		"GONOSUMDB="+strings.Trim(strings.Join(ours, ",")+","+vars["GONOSUMDB"], ",")), nil
}

// forget removes a version of the stage's modules from the go command's cache: modules published
// here must not be taken for a release later.
func (s *stage) forget(version string) {
	cache, err := goenv("GOMODCACHE")
	if err != nil || cache == "" {
		return
	}
	for _, m := range s.modules {
		dir := filepath.Join(cache, filepath.FromSlash(m.path)+"@"+version)
		filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				os.Chmod(name, 0o755) // the go command takes the right to write away
			}
			return nil
		})
		os.RemoveAll(dir)
		download := filepath.Join(cache, "cache", "download")
		files, _ := filepath.Glob(cached(download, m.path, version+".*"))
		// The go command writes the list of versions anew whenever it adds one.
		for _, name := range append(files, cached(download, m.path, "list")) {
			os.Remove(name)
		}
	}
}

// cached returns the name of a module's file in a proxy or download cache.
func cached(dir, modPath, file string) string {
	escaped, err := module.EscapePath(modPath)
	if err != nil {
		escaped = modPath
	}
	return filepath.Join(dir, filepath.FromSlash(escaped), "@v", file)
}

func goenv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(out)), err
}
