package measure

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
)

// A process has one OpenSSL, so another one is measured by another process: this program again,
// which answers requests in lines of JSON.

// envWorker names the environment variable that makes a process a worker.
const envWorker = "OSSL_BENCH_WORKER"

// A request asks for the measurement of a row. The worker answers with an answer.
type request struct {
	Row      string        `json:"row"` // its Benchmark
	Duration time.Duration `json:"duration"`
}

type answer struct {
	// The first answer, which is to no request, has the version, and the Benchmarks of the rows
	// that the worker can measure.
	Version string   `json:"version,omitempty"`
	Rows    []string `json:"rows,omitempty"`

	Figure float64 `json:"figure,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// ServeWorker does nothing in a process that a user has started. In one that NewWorker has started
// it measures, and exits when its input is closed.
func ServeWorker() {
	if os.Getenv(envWorker) == "" {
		return
	}
	if err := work(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func work(in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	lib, err := ossl.Library()
	if err != nil {
		return answers.Encode(answer{Error: err.Error()})
	}
	rows, _ := Rows(nil, lib.FIPSRequired != "")
	first := answer{Version: lib.Version}
	for _, row := range rows {
		first.Rows = append(first.Rows, row.Benchmark)
	}
	if err := answers.Encode(first); err != nil {
		return err
	}
	for requests := json.NewDecoder(in); ; {
		var r request
		if err := requests.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		a := answer{Error: "unknown row"}
		for _, row := range rows {
			if row.Benchmark != r.Row {
				continue
			}
			a.Error = ""
			if a.Figure, err = Local(Both(bench.OSSL)).Measure(context.Background(), row, r.Duration); err != nil {
				a.Error = err.Error()
			}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// A worker is an engine in another process.
type worker struct {
	name    string
	rows    []string // their Benchmarks
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  io.Closer
	answers *json.Decoder
}

// NewWorker starts a process whose OpenSSL is library: a version, libssl's path or folder, or the
// path of a script that runs its arguments as a command on another OpenSSL, with the C library that
// this needs for example.
func NewWorker(ctx context.Context, library string) (Engine, error) {
	self, err := program()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, self)}
	w.cmd.Env = append(os.Environ(), envWorker+"=1", "OSSL_LIBRARY="+library)
	script, err := isScript(library)
	if err != nil {
		return nil, err
	}
	if script {
		w.cmd = exec.CommandContext(ctx, library, self)
		// The script chooses the library, not this process's OSSL_LIBRARY.
		w.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "OSSL_LIBRARY=") }),
			envWorker+"=1")
	}
	w.cmd.WaitDelay = workerEnd
	var stderr strings.Builder
	w.cmd.Stderr = &stderr
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.stdout, w.answers = stdout, json.NewDecoder(bufio.NewReader(stdout))
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	a, err := w.next()
	if err != nil {
		_ = w.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w", filepath.Base(library), errors.Join(err, errors.New(strings.TrimSpace(stderr.String()))))
	}
	w.name, w.rows = "ossl on "+a.Version, a.Rows
	return w, nil
}

// workerEnd is how long the processes of a script may run after the script has exited.
const workerEnd = 5 * time.Second

// program returns the path of this program, also if a script such as NewWorker's has started it
// through the C library's program loader, which is then the executable.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil || !strings.HasPrefix(filepath.Base(self), "ld-") {
		return self, err
	}
	return exec.LookPath(os.Args[0])
}

// isScript reports whether library is the path of a script.
func isScript(library string) (bool, error) {
	if !strings.ContainsRune(library, os.PathSeparator) {
		return false, nil
	}
	info, err := os.Stat(library)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil // ossl reports a path that doesn't exist
	}
	file, err := os.Open(library)
	if err != nil {
		return false, err
	}
	defer file.Close()
	head := make([]byte, 2)
	if _, err := io.ReadFull(file, head); err != nil || string(head) != "#!" {
		return false, nil // ossl reports a file that is not a library either
	}
	if info.Mode().Perm()&0o111 == 0 {
		return false, fmt.Errorf("%s: the script is not executable", filepath.Base(library))
	}
	return true, nil
}

func (w *worker) next() (a answer, err error) {
	switch err := w.answers.Decode(&a); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return a, fmt.Errorf("the process with the other OpenSSL has ended: %w", err)
	case err != nil:
		return a, fmt.Errorf("the process with the other OpenSSL doesn't answer in JSON: %w", err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func (w *worker) Name() string { return w.name }

func (w *worker) Lacks(row *Row) bool { return !slices.Contains(w.rows, row.Benchmark) }

func (w *worker) Measure(ctx context.Context, row *Row, d time.Duration) (float64, error) {
	// When a script exits, the processes that it has started go on, and hold the output open.
	stop := context.AfterFunc(ctx, func() { _ = w.stdout.Close() })
	defer stop()
	var a answer
	err := json.NewEncoder(w.stdin).Encode(request{row.Benchmark, d})
	if err == nil {
		a, err = w.next()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return a.Figure, err
}

// Close stops the process.
func (w *worker) Close() error {
	_ = w.stdin.Close()
	return w.cmd.Wait()
}
