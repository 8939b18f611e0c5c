package terminator_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestLogWriter: lines arrive whole and in their order, those that are waiting at the end too.
func TestLogWriter(t *testing.T) {
	log := newLogs()
	w := terminator.NewLogWriter(log)
	logger := slog.New(slog.NewTextHandler(w, nil))
	for i := range 1000 {
		logger.Info("line", "n", i)
	}
	for range 2 {
		if !w.Close(context.Background()) {
			t.Error("Close has not ended in time")
		}
	}
	logger.Info("late")
	n := 0
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, " n="+strconv.Itoa(n)+"\n") {
			t.Fatalf("line %d is %q", n, line)
		}
		n++
	}
	if lost, failed := w.Losses(); n != 1000 || lost != 1 || failed != 0 {
		t.Errorf("%d lines, %d lost, %d failed", n, lost, failed)
	}
}

// TestLogWriterBlocked: a writer whose reader has stopped takes a bounded number of bytes and stops
// nobody; when the reader goes on, so does the log.
func TestLogWriterBlocked(t *testing.T) {
	reader, pipe := io.Pipe()
	w := terminator.NewLogWriter(pipe)
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range 1000 {
		if n, err := w.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	lost, _ := w.Losses()
	if lost < 400 || lost > 800 { // 256 wait, and at most as many are being written
		t.Errorf("%d lines lost", lost)
	}
	got := make(chan int)
	go func() {
		b, _ := io.ReadAll(reader)
		got <- len(b)
	}()
	if !w.Close(context.Background()) {
		t.Error("not closed")
	}
	_ = pipe.Close()
	if n := <-got; n != (1000-int(lost))*len(line) {
		t.Errorf("%d bytes, and %d lines lost", n, lost)
	}

	_, pipe = io.Pipe()
	w = terminator.NewLogWriter(pipe)
	_, _ = w.Write(line)
	if w.Close(ended) {
		t.Error("Close says that a line was written that nobody has read")
	}
	_ = pipe.CloseWithError(errors.New("the end of the test"))
}

// TestLogWriterFails: lines that can't be written are counted.
func TestLogWriterFails(t *testing.T) {
	reader, pipe := io.Pipe()
	_ = reader.CloseWithError(errors.New("disk full"))
	w := terminator.NewLogWriter(pipe)
	for range 3 {
		_, _ = w.Write([]byte("line\n"))
	}
	w.Close(context.Background())
	if lost, failed := w.Losses(); lost != 0 || failed != 3 {
		t.Errorf("%d lost, %d failed", lost, failed)
	}
}
