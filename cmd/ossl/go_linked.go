package main

import (
	"debug/elf"
	"errors"
	"fmt"
	goversion "go/version"
	"io"
	"os"
	"strings"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
)

// examineLinked examines the program that the linker of "ossl go" has made with these arguments. It removes
// a program whose TLS isn't ossl's.
func examineLinked(args []string, stderr io.Writer) error {
	all, err := readArguments(args)
	if err != nil {
		return err
	}
	out := ""
	for i, a := range all {
		if a == "-o" && i+1 < len(all) {
			out = all[i+1]
		} else if name, ok := strings.CutPrefix(a, "-o="); ok {
			out = name
		}
	}
	if out == "" {
		return fmt.Errorf("the linker's arguments name no output: %q", all)
	}
	if isELF, err := beginsWith(out, elf.ELFMAG); err != nil {
		return err
	} else if !isELF { // an archive for C, or a program for another system
		fmt.Fprintln(stderr, "ossl go: warning: the output isn't an ELF file, so it wasn't examined: its TLS may be crypto/tls's")
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

// readArguments returns the arguments with those in files. The go command passes long ones as @FILE.
func readArguments(args []string) (all []string, err error) {
	for _, a := range args {
		file, ok := strings.CutPrefix(a, "@")
		if !ok {
			all = append(all, a)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			all = append(all, strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(strings.TrimSuffix(line, "\n")))
		}
	}
	return all, nil
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
	v := p.Judge("")
	text := v.Reason
	if v.Do != "" {
		text += ". To mend it, " + v.Do
	}
	switch built, _, _ := strings.Cut(p.GoVersion, " "); { // without experiments
	case p.Engine == inspect.Go || p.Engine == inspect.Library:
		return errors.New("the linked program lacks ossl, because an overlay replaces a part of crypto/tls: build it without -overlay")
	case p.Engine == inspect.None:
		return nil
	case v.OK && built != "" && p.Unchanged != nil && goversion.Compare(built, p.Unchanged.Go) != 0:
		return fmt.Errorf("the program was removed: its crypto/tls is that of %s, and the rest of %s: "+
			"run eval \"$(ossl go env)\" again", p.Unchanged.Go, built)
	case v.OK:
		return nil
	case p.Unchanged != nil && p.Unchanged.Mode == "prefer":
		fmt.Fprintf(stderr, "ossl go: warning: the program's TLS is crypto/tls's: %s\n", text)
		return nil
	}
	return fmt.Errorf("the program was removed: %s", text)
}
