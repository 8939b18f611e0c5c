package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
)

// examineLinked examines the program that the linker of "ossl go" has made with these arguments. It removes
// a program whose TLS isn't ossl's.
func examineLinked(args []string, stderr io.Writer) error {
	out := ""
	for i, a := range args {
		if a == "-o" && i+1 < len(args) {
			out = args[i+1]
		} else if name, ok := strings.CutPrefix(a, "-o="); ok {
			out = name
		}
	}
	if out == "" {
		return fmt.Errorf("the linker's arguments name no output: %q", args)
	}
	if isELF, err := beginsWith(out, elf.ELFMAG); err != nil {
		return err
	} else if !isELF { // an archive for C, or a program for another system
		fmt.Fprintln(stderr, "ossl go: warning: the output isn't an ELF file, and wasn't examined")
		return nil
	}
	p, err := inspect.ReadProgram(out)
	if err == nil {
		err = judgeLinked(p, stderr)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out))
	}
	return nil
}

// beginsWith reports whether a file begins with a text.
func beginsWith(name, text string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	begin := make([]byte, len(text))
	if _, err := io.ReadFull(f, begin); err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, err
	}
	return string(begin) == text, nil
}

func judgeLinked(p *inspect.Program, stderr io.Writer) error {
	if p.Engine == inspect.None {
		return nil
	}
	v := p.Judge("")
	switch {
	case v.OK:
		return nil
	case p.Unchanged != nil && p.Unchanged.Mode == "prefer":
		fmt.Fprintf(stderr, "ossl go: warning: %s. Its connections are crypto/tls's\n", v.Reason)
		return nil
	case p.Unchanged == nil:
		return errors.New("the linked program lacks ossl, because an overlay replaces a part of crypto/tls: build it without -overlay")
	}
	if v.Do == "" {
		return fmt.Errorf("the linked program: %s", v.Reason)
	}
	return fmt.Errorf("the linked program: %s. To mend it, %s", v.Reason, v.Do)
}
