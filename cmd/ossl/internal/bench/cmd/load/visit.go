//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
)

// visit runs client/client.c, which makes new connections to a server, several at a time. visit calls
// ready right before they begin. It returns the number of connections, and the time that they
// took. It fails if a connection was resumed and should not have been, or the reverse.
func (r *runner) visit(ctx context.Context, row row, server *server, ready func() error) (s sample, err error) {
	port, most := server.port, r.full
	if row.bare() && row.request > 0 {
		port = server.requestPort
	}
	if row.kind == "resumed" {
		most = r.resumed
	}
	args := []string{port, r.file("ca.pem"), row.version, row.way, strconv.Itoa(r.clientsOf(row)), row.kind,
		strconv.Itoa(row.request), strconv.Itoa(most), strconv.Itoa(int(r.turn.Milliseconds()))}
	ctx, cancel := context.WithTimeout(ctx, r.turn+patience)
	defer cancel()
	program, args := row.server("").pin(r.programs[clientC], args)
	cmd := exec.CommandContext(ctx, program, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return s, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	lines := bufio.NewScanner(stdout)
	if lines.Scan() && lines.Text() == "ready" {
		err = ready()
		if err == nil {
			_, err = stdin.Write([]byte("\n"))
		}
		if err != nil {
			stdin.Close() // this makes the client exit
		}
		lines.Scan()
	}
	stdin.Close()
	text := lines.Text()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return s, fmt.Errorf("the client: %w: %s", err, said.String())
	}
	var n int
	if _, err := fmt.Sscan(text, &n, &s.took); err != nil || n == 0 {
		return s, fmt.Errorf("the client says %q", text)
	}
	s.work = float64(n)
	return s, nil
}
