package gofarm_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/gofarm"
	"github.com/ossl-go/ossl/internal/unchanged/settings"
)

// TestSettings: a farm has the settings, and its marker names them.
func TestSettings(t *testing.T) {
	toolchain, err := gofarm.Find(t.Context(), []string{"build"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := gofarm.FindSource(t.Context(), filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	const built = "crypto/tls/internal/ossl/internal/unchanged/built.go"
	for _, text := range []string{"", `{"format": 1}`, `{"format": 1, "servers": {"kernel_tls": true}}`} {
		o := &gofarm.Options{Mode: "prefer", Source: source, UnknownGo: true, Settings: []byte(text)}
		if text == "" {
			o.Settings = nil
		}
		plan, err := gofarm.NewPlan(t.Context(), toolchain, o)
		if err != nil {
			t.Fatal(err)
		}
		files, err := plan.Files()
		if err != nil {
			t.Fatal(err)
		}
		names[plan.Root] = true
		file := string(files[built])
		if strings.Contains(file, "kernel_tls") != strings.Contains(text, "kernel_tls") {
			t.Errorf("%s is %s", built, file)
		}
		if strings.Contains(file, `\"settings\":\"\"`) != (text == "") {
			t.Errorf("the marker is in %s", file)
		}
	}
	if len(names) != 3 {
		t.Errorf("the farms are %v: settings must be part of a name", names)
	}
	o := &gofarm.Options{Mode: "prefer", Source: source, UnknownGo: true, Settings: []byte(`{"format": 1, "key_log": "/keys"}`)}
	if _, err := gofarm.NewPlan(t.Context(), toolchain, o); !errors.As(err, new(*settings.Error)) {
		t.Errorf("a key log at the build: %v", err)
	}
}

func TestReadSettings(t *testing.T) {
	for text, key := range map[string]string{
		`{"format": 1}`:                     "",
		`{"format": 1, "x": 1}`:             "x",
		`{"format": 1, "key_log": "/keys"}`: "key_log",
	} {
		name := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := gofarm.ReadSettings(name)
		var e *settings.Error
		if key == "" && (err != nil || string(got) != text) || key != "" && (!errors.As(err, &e) || e.Key != key) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
