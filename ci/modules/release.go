package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// A release is a version to be released, with the flags of the command.
type release struct {
	root, version, out string
	dry                bool
	w                  io.Writer
}

func (r *release) run(ctx context.Context) error {
	last, err := lastRelease(r.root)
	if err != nil {
		return err
	}
	if err := r.chooseVersion(last); err != nil {
		return err
	}
	status, err := git(r.root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		if err := r.refuse("the work tree has changes:\n%s", strings.TrimRight(status, "\n")); err != nil {
			return err
		}
	}
	out := r.out
	if out == "" {
		if out, err = os.MkdirTemp("", "ossl-release-"); err != nil {
			return err
		}
		defer os.RemoveAll(out)
	}
	s, err := newStage(r.root, out, r.version, r.writeChangelog)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "version"), []byte(r.version+"\n"), 0o644); err != nil {
		return err
	}
	if err := r.compare(ctx, s, last); err != nil {
		return err
	}
	if r.dry {
		return r.plan(s)
	}
	return r.commit(s)
}

// refuse returns an error, except in a dry run, which prints it and continues.
func (r *release) refuse(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if !r.dry {
		return err
	}
	fmt.Fprintf(r.w, "a release would be refused: %v\n", err)
	return nil
}

// chooseVersion checks r.version against the last release, which may be "", or replaces "next".
func (r *release) chooseVersion(last string) error {
	if r.version == "next" {
		if !r.dry {
			return errors.New("name a version; next is for dry runs")
		}
		r.version = fmt.Sprintf("%s-ci.%d.%d", nextMinor(last), time.Now().Unix(), os.Getpid())
	}
	switch v := r.version; {
	case !semver.IsValid(v) || semver.Canonical(v) != v:
		return fmt.Errorf("%s is not a version such as v0.1.0", v)
	case semver.Major(v) != "v0" && semver.Major(v) != "v1":
		return fmt.Errorf("%s: from v2 on, module paths end in the major version (go.dev/ref/mod#major-version-suffixes)", v)
	case last != "" && semver.Compare(v, last) <= 0:
		return fmt.Errorf("%s is not above the last release, %s", v, last)
	}
	return nil
}

// nextMinor returns the next minor version after last, or v0.1.0.
func nextMinor(last string) string {
	if last == "" {
		return "v0.1.0"
	}
	var major, minor int
	fmt.Sscanf(last, "v%d.%d", &major, &minor)
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}

// lastRelease returns the highest version that the core has a tag for, or "".
func lastRelease(root string) (string, error) {
	out, err := git(root, "tag", "--list", "v*")
	if err != nil {
		return "", err
	}
	tags := slices.DeleteFunc(strings.Fields(out), func(tag string) bool { return !semver.IsValid(tag) })
	if len(tags) == 0 {
		return "", nil
	}
	return slices.MaxFunc(tags, semver.Compare), nil
}

// writeChangelog makes the section of the release from the section Unreleased, if the release has
// none yet.
func (r *release) writeChangelog(tree string) error {
	name := filepath.Join(tree, "CHANGELOG.md")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := releaseChangelog(string(old), strings.TrimPrefix(r.version, "v"), time.Now())
	if err != nil {
		return r.refuse("CHANGELOG.md: %w", err)
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

const unreleased = "## [Unreleased]\n"

func releaseChangelog(text, version string, date time.Time) (string, error) {
	if regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(version) + `\] - \d{4}-\d\d-\d\d$`).MatchString(text) {
		return text, nil
	}
	before, after, ok := strings.Cut(text, unreleased)
	if !ok {
		return "", errors.New("no section Unreleased")
	}
	section, _, _ := strings.Cut(after, "\n## ")
	if !strings.Contains(section, "\n- ") {
		return "", errors.New("the section Unreleased is empty")
	}
	return fmt.Sprintf("%s%s\n## [%s] - %s\n%s", before, unreleased, version, date.Format(time.DateOnly), after), nil
}

// compare adds the modules of the last release to the proxy and checks the APIs.
func (r *release) compare(ctx context.Context, s *stage, last string) error {
	if last == "" {
		fmt.Fprintln(r.w, "no earlier release: there is no API to compare with")
		return nil
	}
	for _, m := range s.modules {
		if !m.released {
			continue
		}
		if _, err := git(r.root, "rev-parse", "--verify", "--quiet", m.tag(last)+"^{commit}"); err != nil {
			continue // a new module
		}
		packed, mod, err := packTag(r.root, m, last)
		if err != nil {
			return err
		}
		if _, err := publish(s.proxy, m.path, last, mod, packed); err != nil {
			return err
		}
	}
	return compareAPIs(ctx, r.w, s, last)
}

// packTag packs a module as the go command does for a tag.
func packTag(root string, m *goModule, version string) (packed, mod []byte, err error) {
	dir := m.dir
	if dir == "." {
		dir = ""
	}
	var b bytes.Buffer
	err = modzip.CreateFromVCS(&b, module.Version{Path: m.path, Version: version}, root, m.tag(version), dir)
	if err != nil {
		return nil, nil, err
	}
	text, err := git(root, "show", m.tag(version)+":"+path.Join(m.dir, "go.mod"))
	return b.Bytes(), []byte(text), err
}

// changed are the files in which a stage differs from the tree, except the licenses it adds.
func (r *release) changed(s *stage) ([]string, error) {
	names := []string{"CHANGELOG.md", "go.work"}
	for _, m := range s.modules {
		names = append(names, path.Join(m.dir, "go.mod"), path.Join(m.dir, "go.sum"))
	}
	var changed []string
	for _, name := range names {
		now, err := os.ReadFile(filepath.Join(s.tree, name))
		if os.IsNotExist(err) {
			continue // a module without requirements has no go.sum
		} else if err != nil {
			return nil, err
		}
		old, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if !bytes.Equal(old, now) {
			changed = append(changed, name)
		}
	}
	return changed, nil
}

// plan prints the changes and tags of a release.
func (r *release) plan(s *stage) error {
	changed, err := r.changed(s)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.w, "%s would be one commit that changes\n  %s\n", r.version, strings.Join(changed, "\n  "))
	fmt.Fprintln(r.w, "and has these tags:")
	for _, m := range s.modules {
		if m.released {
			fmt.Fprintf(r.w, "  %-30s %s\n", m.tag(r.version), strings.Fields(s.sums[m.path])[2])
		}
	}
	r.printPush(s)
	return nil
}

// commit changes the repository: a commit, a second one with the objects that no branch gets, and its tags.
// The hashes in go.sum must be the tags' hashes, so they are computed again from the tags. If they differ, the
// commits and the tags are removed.
func (r *release) commit(s *stage) (err error) {
	changed, err := r.changed(s)
	if err != nil {
		return err
	}
	head, err := git(r.root, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	var tags []string
	defer func() {
		if err == nil {
			return
		}
		if len(tags) > 0 {
			git(r.root, append([]string{"tag", "--delete"}, tags...)...)
		}
		git(r.root, "reset", "--hard", strings.TrimSpace(head))
	}()
	for _, name := range changed {
		if err := copyFile(filepath.Join(s.tree, name), filepath.Join(r.root, name)); err != nil {
			return err
		}
	}
	if _, err := git(r.root, append([]string{"add", "--"}, changed...)...); err != nil {
		return err
	}
	// With --allow-empty, a release that a person has prepared by hand can be tagged.
	if _, err := git(r.root, "commit", "--allow-empty", "-m", "release "+r.version); err != nil {
		return err
	}
	made := objects(r.root)
	if len(made) > 0 {
		if _, err := git(r.root, append([]string{"add", "--force", "--"}, made...)...); err != nil {
			return err
		}
		if _, err := git(r.root, "commit", "-m", "release "+r.version+": the objects"); err != nil {
			return err
		}
	}
	for _, m := range s.modules {
		if !m.released {
			continue
		}
		if _, err := git(r.root, "tag", "--annotate", "-m", m.path+" "+r.version, m.tag(r.version)); err != nil {
			return err
		}
		tags = append(tags, m.tag(r.version))
		if err := s.verify(r.root, m); err != nil {
			return err
		}
	}
	if len(made) > 0 { // the branch has no binary
		if _, err := git(r.root, "reset", "--keep", "HEAD~1"); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.w, "committed and tagged %s\n", r.version)
	r.printPush(s)
	return nil
}

// verify compares the hash of a module in its tag with the one that the other modules' go.sum have.
func (s *stage) verify(root string, m *goModule) error {
	packed, _, err := packTag(root, m, s.version)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "ossl-*.zip")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(packed)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	hash, err := dirhash.HashZip(file.Name(), dirhash.Hash1)
	if err != nil {
		return err
	}
	if staged := strings.Fields(s.sums[m.path])[2]; hash != staged {
		return fmt.Errorf("tag %s has the hash %s, its copy has %s", m.tag(s.version), hash, staged)
	}
	return nil
}

// printPush prints the command that publishes the release. All tags arrive at once: an adapter's tag
// without the core's can't be built, and the checksum database never forgets one that was seen.
func (r *release) printPush(s *stage) {
	fmt.Fprintf(r.w, "to publish it:\n  git push --atomic origin HEAD")
	for _, m := range s.modules {
		if m.released {
			fmt.Fprintf(r.w, " %s", m.tag(r.version))
		}
	}
	fmt.Fprintln(r.w)
}

// git runs a git command in dir.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return string(out), nil
}
