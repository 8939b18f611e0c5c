//go:build !cgo && linux && (amd64 || arm64)

package link

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestRefusal(t *testing.T) {
	for _, test := range []struct {
		module *debug.Module
		want   string // "" for none
	}{
		{&debug.Module{Path: puregoPath, Version: puregoVersion}, ""},
		{&debug.Module{Path: "example.org/other", Version: "v9.0.0"}, ""},
		{&debug.Module{Path: puregoPath, Version: "v0.12.0"}, "with v0.12.0 of " + puregoPath},
		{&debug.Module{Path: puregoPath, Version: puregoVersion, Replace: &debug.Module{Path: "../fork"}},
			"with the replacement ../fork of " + puregoPath},
	} {
		got := refusal([]*debug.Module{test.module})
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q; want %q", test.module, got, test.want)
		}
	}
}
