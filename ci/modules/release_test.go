package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// repository makes a repository of three modules: the core, an adapter, and examples that are not
// released.
func repository(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"} {
		t.Setenv(name, "Tester")
	}
	for _, name := range []string{"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "tester@example.org")
	}
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	root := t.TempDir()
	const path = "release.example.org/core"
	write(t, root, map[string]string{
		".gitignore":         "ignored\n",
		"ignored":            "not part of a module\n",
		"LICENSE":            "free\n",
		"CHANGELOG.md":       "# Changelog\n\n## [Unreleased]\n\n- It began.\n",
		"go.mod":             "module " + path + "\n\ngo 1.26.0\n",
		"core.go":            "package core\n\nfunc Old() int { return 1 }\n",
		"adapter/go.mod":     "module " + path + "/adapter\n\ngo 1.26.0\n\nrequire " + path + " v0.1.0\n",
		"adapter/adapter.go": "package adapter\n\nimport \"" + path + "\"\n\nfunc Two() int { return 2 * core.Old() }\n",
		"examples/go.mod": "module " + path + "/examples\n\ngo 1.26.0\n\nrequire " +
			path + "/adapter v0.1.0\n\nrequire " + path + " v0.1.0 // indirect\n",
		"examples/use/main.go": "package main\n\nimport \"" + path + "/adapter\"\n\nfunc main() { println(adapter.Two()) }\n",
		"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./adapter\n\t./examples\n)\n\nreplace (\n\t" +
			path + " v0.1.0 => ./\n\t" + path + "/adapter v0.1.0 => ./adapter\n)\n",
	})
	command(t, root, nil, "git", "init", "--quiet")
	commitAll(t, root)
	return root
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func commitAll(t *testing.T, root string) {
	t.Helper()
	command(t, root, nil, "git", "add", ".")
	command(t, root, nil, "git", "commit", "--quiet", "-m", "change")
}

func command(t *testing.T, dir string, env []string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

func do(t *testing.T, r release) (string, error) {
	t.Helper()
	var out strings.Builder
	r.w = &out
	err := r.run(t.Context())
	return out.String(), err
}

// TestRelease makes a release, and builds the tagged modules without the workspace.
func TestRelease(t *testing.T) {
	root, out := repository(t), t.TempDir()
	printed, err := do(t, release{root: root, version: "v0.1.0", out: out})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no earlier release", "git push --atomic origin HEAD v0.1.0 adapter/v0.1.0\n"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing in what it printed:\n%s", want, printed)
		}
	}
	tags := strings.Fields(command(t, root, nil, "git", "tag", "--points-at", "HEAD"))
	if want := []string{"adapter/v0.1.0", "v0.1.0"}; !slices.Equal(tags, want) {
		t.Errorf("tags %q, want %q", tags, want)
	}
	if status := command(t, root, nil, "git", "status", "--porcelain"); status != "" {
		t.Errorf("the release left changes:\n%s", status)
	}
	changes, _ := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if want := "## [Unreleased]\n\n## [0.1.0] - " + time.Now().Format(time.DateOnly); !strings.Contains(string(changes), want) {
		t.Errorf("CHANGELOG.md has no %q:\n%s", want, changes)
	}

	// The proxy serves modules that build, like a clone's modules without the workspace: the hashes
	// in go.sum are right and complete.
	s := &stage{proxy: filepath.Join(out, "proxy"), version: "v0.1.0"}
	if s.modules, err = modulesIn(root); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GOWORK=off", "GOPROXY=file://"+s.proxy, "GONOSUMDB=release.example.org")
	if got := command(t, filepath.Join(root, "examples"), env, "go", "run", "./use"); !strings.HasSuffix(got, "\n2\n") {
		t.Errorf("a clone's example printed %q", got)
	}
	command(t, filepath.Join(root, "examples"), env, "go", "mod", "tidy", "-diff")
	user := t.TempDir()
	write(t, user, map[string]string{
		"go.mod":  "module user\n",
		"main.go": "package main\n\nimport \"release.example.org/core/adapter\"\n\nfunc main() { println(adapter.Two()) }\n",
	})
	command(t, user, env, "go", "mod", "tidy")
	command(t, user, env, "go", "build", "-o", os.DevNull, ".")
}

// TestReleaseObjects: the tags have the objects, and the branch doesn't.
func TestReleaseObjects(t *testing.T) {
	root, out := repository(t), t.TempDir()
	const object = "nocgo/internal/object/object.go"
	write(t, root, map[string]string{".gitignore": "ignored\nobject*\n"})
	commitAll(t, root)
	write(t, root, map[string]string{object: "package object\n"})
	if _, err := do(t, release{root: root, version: "v0.1.0", out: out}); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{"HEAD": "", "v0.1.0": object + "\n", "adapter/v0.1.0": object + "\n"} {
		if got := command(t, root, nil, "git", "ls-tree", "-r", "--name-only", ref, object); got != want {
			t.Errorf("%s has %q; want %q", ref, got, want)
		}
	}
	parent := command(t, root, nil, "git", "rev-parse", "v0.1.0^{commit}~1", "HEAD")
	if len(slices.Compact(strings.Fields(parent))) != 1 {
		t.Errorf("the tag's parent and HEAD: %s", parent)
	}
	if status := command(t, root, nil, "git", "status", "--porcelain"); status != "" {
		t.Errorf("the release left changes:\n%s", status)
	}
}

// TestAPI makes releases after changes of the API.
func TestAPI(t *testing.T) {
	root := repository(t)
	if _, err := do(t, release{root: root, version: "v0.1.0"}); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name, code, version string
		refused, want       string
	}{
		{"added in a patch release", "func Old() int { return 1 }\n\nfunc More() {}\n", "v0.1.1", "", "More: added"},
		{"removed in a patch release", "func Old() int { return 1 }\n", "v0.1.2", "need a new minor version", "More: removed"},
		{"removed in a minor release", "func Old() int { return 1 }\n", "v0.2.0", "", "More: removed"},
	}
	for i, step := range steps {
		write(t, root, map[string]string{
			"core.go":      "package core\n\n" + step.code,
			"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n- " + step.name + strings.Repeat(".", i+1) + "\n",
		})
		commitAll(t, root)
		before := command(t, root, nil, "git", "rev-parse", "HEAD")
		printed, err := do(t, release{root: root, version: step.version})
		if !strings.Contains(printed, step.want) {
			t.Errorf("%s: printed\n%s", step.name, printed)
		}
		if step.refused == "" && err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if step.refused != "" && (err == nil || !strings.Contains(err.Error(), step.refused)) {
			t.Errorf("%s: error %v, want %q", step.name, err, step.refused)
		}
		if after := command(t, root, nil, "git", "rev-parse", "HEAD"); (before == after) != (step.refused != "") {
			t.Errorf("%s: HEAD was %s and is %s", step.name, before, after)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name, version string
		change        map[string]string
		commit        bool
		want          string
		plans         bool // whether a dry run continues
	}{
		{"changes", "v0.1.0", map[string]string{"new.go": "package core\n"}, false, "the work tree has changes", true},
		{"empty changelog", "v0.1.0", map[string]string{"CHANGELOG.md": "## [Unreleased]\n\n## [0.0.1]\n\n- Old.\n"}, true,
			"the section Unreleased is empty", true},
		{"no version", "0.1", nil, false, "not a version", false},
		{"next", "next", nil, false, "name a version", true},
		{"v2", "v2.0.0", nil, false, "major version", false},
		{"replace", "v0.1.0", map[string]string{
			"adapter/go.mod": "module release.example.org/core/adapter\n\nrequire release.example.org/core v0.1.0\n\n" +
				"replace release.example.org/core => ../\n",
		}, true, "has a replace directive", false},
		{"unreleased requirement", "v0.1.0", map[string]string{
			"adapter/go.mod":  "module release.example.org/core/adapter\n\nrequire release.example.org/core/examples v0.1.0\n",
			"examples/go.mod": "module release.example.org/core/examples\n",
		}, true, "which is not released", false},
		{"circle", "v0.1.0", map[string]string{
			"go.mod": "module release.example.org/core\n\nrequire release.example.org/core/adapter v0.1.0\n",
		}, true, "require one another", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := repository(t)
			write(t, root, test.change)
			if test.commit {
				commitAll(t, root)
			}
			before := command(t, root, nil, "git", "rev-parse", "HEAD")
			if _, err := do(t, release{root: root, version: test.version}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			printed, err := do(t, release{root: root, version: test.version, dry: true})
			if (err == nil) != test.plans {
				t.Errorf("dry run: error %v", err)
			}
			if test.plans && test.name != "next" && !strings.Contains(printed, "would be refused: ") {
				t.Errorf("dry run printed\n%s", printed)
			}
			if after := command(t, root, nil, "git", "rev-parse", "HEAD"); after != before {
				t.Error("there is a new commit")
			}
			if tags := command(t, root, nil, "git", "tag"); tags != "" {
				t.Errorf("there are tags %s", tags)
			}
		})
	}
}

// TestVerify: if a tag's files differ from the copy's, neither commit nor tags remain.
func TestVerify(t *testing.T) {
	root, out := repository(t), t.TempDir()
	r := release{root: root, version: "v0.1.0", w: new(strings.Builder)}
	s, err := newStage(root, out, r.version, r.writeChangelog)
	if err != nil {
		t.Fatal(err)
	}
	s.sums["release.example.org/core/adapter"] = s.sums["release.example.org/core"]
	before := command(t, root, nil, "git", "rev-parse", "HEAD")
	if err := r.commit(s); err == nil || !strings.Contains(err.Error(), "has the hash") {
		t.Errorf("error %v", err)
	}
	if after := command(t, root, nil, "git", "rev-parse", "HEAD"); after != before {
		t.Error("there is a new commit")
	}
	if left := command(t, root, nil, "git", "tag") + command(t, root, nil, "git", "status", "--porcelain"); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestNoSibling: an error of the API check names the module that can't be built.
func TestNoSibling(t *testing.T) {
	root := repository(t)
	if _, err := do(t, release{root: root, version: "v0.1.0"}); err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{
		"adapter/adapter.go": "package adapter\n\nfunc Two() int { return undefined }\n",
		"CHANGELOG.md":       "## [Unreleased]\n\n- More.\n",
	})
	commitAll(t, root)
	_, err := do(t, release{root: root, version: "v0.2.0"})
	if err == nil || !strings.Contains(err.Error(), "release.example.org/core/adapter@v0.2.0") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&release{root: root, version: "v0.2.0", w: new(strings.Builder)}).run(ctx); err == nil {
		t.Error("a release was made although it was interrupted")
	}
}
