//go:build unix

package terminator_test

import (
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestHandOverFails: a server goes on if the process that should take over can't be started, exits,
// or reports nothing.
func TestHandOverFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})}))
	ended, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		args []string
		want string
	}{
		{"no program", context.Background(), []string{"/nonexistent"}, "/nonexistent"},
		{"ends", context.Background(), []string{"/bin/sh", "-c", "exit 3"}, "exit status 3"},
		{"silent", ended, []string{"/bin/sh", "-c", "echo started; exec sleep 1000"}, "in time: context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(c.args[0], c.args[1:]...)
			reader, writer := io.Pipe()
			cmd.Stdout = writer
			go func() { // cancels ctx when the program runs
				if n, _ := reader.Read(make([]byte, 1)); n > 0 {
					cancel()
				}
				_, _ = io.Copy(io.Discard, reader)
			}()
			err := r.HandOver(c.ctx, cmd)
			_ = writer.Close()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if cmd.Process != nil && cmd.ProcessState == nil {
				t.Error("the process has not ended")
			}
			if status, body := get(t, r.client(false, nil), "https://localhost/"); status != 200 || body != "x" {
				t.Errorf("%d %q", status, body)
			}
		})
	}
	r.Drain(context.Background())
	if err := r.HandOver(context.Background(), exec.Command("/bin/true")); err == nil {
		t.Error("a server that has ended hands over")
	}
}

// TestInherit: an environment that no former process has made is refused.
func TestInherit(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"garbage", "garbage", "OSSL_SERVE_HANDOVER: "},
		{"nobody", `{"sockets":[{"place":"listen :1"}]}`, "do not set it"},
		{"another parent", `{"from":` + strconv.Itoa(1<<30) + `}`, "do not set it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("OSSL_SERVE_HANDOVER", c.value)
			in, err := terminator.Inherit()
			if in != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, error %v, want %q", in, err, c.want)
			}
			if in, err := terminator.Inherit(); in != nil || err != nil {
				t.Errorf("the second time: %v, %v", in, err)
			}
		})
	}
}
