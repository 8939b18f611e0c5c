package main

import (
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
)

// TestJudgeLinked: Go was replaced after "ossl go env".
func TestJudgeLinked(t *testing.T) {
	p := &inspect.Program{Engine: inspect.OSSL, GoVersion: "go1.26.9", Unchanged: &inspect.Marker{Mode: "prefer", Go: "go1.26.8"}}
	var warnings strings.Builder
	if err := judgeLinked(p, &warnings); err == nil || !strings.Contains(err.Error(), "again") {
		t.Errorf("another Go: %v", err)
	}
	p.Unchanged.Go = "go1.26.9"
	for _, experiment := range []string{"", " X:jsonv2", "-X:jsonv2"} {
		p.GoVersion = p.Unchanged.Go + experiment
		if err := judgeLinked(p, &warnings); err != nil || warnings.Len() > 0 {
			t.Errorf("the same Go, %q: %v, %s", experiment, err, &warnings)
		}
	}
}
