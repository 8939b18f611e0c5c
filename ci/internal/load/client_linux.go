package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// A Visit is a turn of the client in C, ci/handshakes/programs/client.c: Clients at a time make new
// connections.
type Visit struct {
	Program   string // the client, compiled
	Port, CA  string // of 127.0.0.1; a file
	Version   string // 1.2 or 1.3
	Way, Kind string // of resumption: ticket or id; full, resumed, or none for no handshake
	Clients   int
	Request   int // the bytes of each connection's request, answered with 1 KB; 0 for none
	Most      int // connections; 0 for no limit but Turn
	Turn      time.Duration
}

// Run has the clients visit a server, and calls ready right before they do. It returns the number of
// connections, and the time that they took. It fails if a connection was resumed and should not
// have been, or the reverse.
func (v Visit) Run(ctx context.Context, patience time.Duration, ready func() error) (n int, took time.Duration, err error) {
	args := []string{v.Port, v.CA, v.Version, v.Way, strconv.Itoa(v.Clients), v.Kind}
	for _, n := range []int{v.Request, v.Most, int(v.Turn.Milliseconds())} {
		args = append(args, strconv.Itoa(n))
	}
	ctx, cancel := context.WithTimeout(ctx, v.Turn+patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, v.Program, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	lines := bufio.NewScanner(stdout)
	if lines.Scan() && lines.Text() == "ready" {
		err = ready()
		if err == nil {
			_, err = stdin.Write([]byte("\n"))
		}
		if err != nil {
			stdin.Close() // which ends the client
		}
		lines.Scan()
	}
	stdin.Close()
	text := lines.Text()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return 0, 0, fmt.Errorf("the client: %w: %s", err, said.String())
	}
	if _, err := fmt.Sscan(text, &n, &took); err != nil || n == 0 {
		return 0, 0, fmt.Errorf("the client says %q", text)
	}
	return n, took, nil
}
