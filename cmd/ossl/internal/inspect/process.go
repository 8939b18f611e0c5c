package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ossl-go/ossl/internal/status"
)

// A Report is the answer of a process, and a Reason a part of it.
type (
	Report = status.Report
	Reason = status.Reason
)

// A Process is a running program.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"` // of its program's file, or "" if that can't be read

	// Report is the process's answer. If it hasn't answered, Silent is the reason, Remedy what to do if
	// there is anything, and Program the program that it runs.
	Report  *Report  `json:"report,omitempty"`
	Silent  string   `json:"silent,omitempty"`
	Remedy  string   `json:"do_for_an_answer,omitempty"`
	Program *Program `json:"program,omitempty"`
}

// ReadProcess asks a process, and reads its program if it doesn't answer.
func ReadProcess(ctx context.Context, pid int) (*Process, error) {
	p := &Process{PID: pid}
	file := fmt.Sprintf("/proc/%d/exe", pid)
	if name, err := os.Readlink(file); err == nil {
		p.Name = name
	}
	r, err := status.Ask(ctx, pid)
	if err == nil {
		p.Report = &r
		return p, nil
	}
	var e *status.AskError
	if ctx.Err() != nil || !errors.As(err, &e) || e.Problem == status.NoProcess {
		return nil, err
	}
	p.Silent, p.Remedy = e.Text, e.Do
	if p.Program, err = ReadProgram(file); err != nil {
		text := fmt.Sprintf("%s; its program %s: %v", p.Silent, cmp.Or(p.Name, file), err)
		if p.Remedy != "" {
			text += "; " + p.Remedy
		}
		return nil, errors.New(text)
	}
	return p, nil
}

// Judge judges a process by its answer, or by its program if there is none. If a mode is required, the
// process must have it, or a stricter one.
func (p *Process) Judge(required string) Verdict {
	if p.Report == nil {
		return p.Program.Judge(required)
	}
	if v := judgeMode(p.Report.Mode, required); !v.OK {
		return v
	}
	if problem := p.Report.OpenSSL.Problem; problem != "" {
		return bad("", "%s", strings.TrimSuffix(problem, "."))
	}
	if ossl, left := p.counts(); ossl == 0 && left > 0 {
		return bad("", "all its connections (%d) were left to crypto/tls", left)
	}
	return Verdict{OK: true}
}

// counts returns the numbers of connections on ossl and of those left to crypto/tls.
func (p *Process) counts() (ossl, left uint64) {
	for _, c := range p.Report.Connections {
		switch {
		case c.Engine == OSSL:
			ossl += c.Count
		case c.Role != "QUIC":
			left += c.Count
		}
	}
	return ossl, left
}
