package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
)

// writeInspected writes a program, or a table of several. Errors go to errs.
func writeInspected(w, errs io.Writer, all []inspectedProgram) {
	var read []inspectedProgram
	for _, r := range all {
		if r.Error != "" {
			fmt.Fprintf(errs, "ossl: %s: %s\n", printable(r.Path), printable(r.Error))
		} else {
			read = append(read, r)
		}
	}
	if len(all) == 1 && len(read) == 1 {
		writeLine(w, "program", read[0].Path)
		writeVerdict(w, read[0].Verdict)
		writeProgram(w, read[0].Program)
		return
	}
	if len(read) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "on ossl\tengine\tmode\tGo\tprogram")
	for _, r := range read {
		mode := ""
		if r.Unchanged != nil {
			mode = r.Unchanged.Mode
		}
		cells := []string{yesOrNo(r.OK), r.Engine, mode, r.GoVersion, r.Path}
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(printable(cell), "\n", " ")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush()
	writeVerdicts(w, read)
	for _, r := range read {
		if len(r.Modules) > 0 {
			fmt.Fprintln(w)
			writeIndented(w, 0, r.Path)
			writeModules(w, r.Modules)
		}
	}
}

// writeVerdicts writes each reason why programs are not on ossl once.
func writeVerdicts(w io.Writer, read []inspectedProgram) {
	var verdicts []inspect.Verdict
	paths := map[inspect.Verdict][]string{}
	for _, r := range read {
		if r.OK {
			continue
		}
		if paths[r.Verdict] == nil {
			verdicts = append(verdicts, r.Verdict)
		}
		paths[r.Verdict] = append(paths[r.Verdict], r.Path)
	}
	for _, v := range verdicts {
		fmt.Fprintln(w)
		writeIndented(w, 0, strings.Join(paths[v], ", ")+": "+v.Reason)
		if v.Do != "" {
			writeIndented(w, 2, "Do: "+v.Do+".")
		}
	}
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func writeVerdict(w io.Writer, v inspect.Verdict) {
	if v.OK {
		writeLine(w, "on ossl", "yes")
		return
	}
	writeLine(w, "on ossl", "no: "+v.Reason)
	if v.Do != "" {
		writeLine(w, "", "Do: "+v.Do+".")
	}
}

func writeProgram(w io.Writer, p *inspect.Program) {
	writeLine(w, "engine", engineText(p))
	if m := p.Unchanged; m != nil {
		writeLine(w, "mode", m.Mode)
		if m.Settings != "" {
			writeLine(w, "settings", m.Settings)
		}
		writeLine(w, "built by", strings.TrimSpace("'ossl go' with "+m.Go+", build "+m.Build))
	}
	writeLine(w, "Go", buildText(p))
	if p.Main.Path != "" {
		text := moduleText(p.Main)
		if p.Package != p.Main.Path {
			text += ", package " + p.Package
		}
		writeLine(w, "module", text)
	}
	if len(p.Modules) > 0 {
		fmt.Fprintln(w, "modules")
		writeModules(w, p.Modules)
	}
}

func engineText(p *inspect.Program) string {
	unchanged, library := "ossl, under crypto/tls", "ossl "+p.Library+", as a library"
	if p.Unchanged != nil {
		unchanged = "ossl " + p.Unchanged.Version + ", under crypto/tls"
	}
	switch p.Engine {
	case inspect.OSSL:
		return unchanged
	case inspect.Library:
		return library + "; connections that are made with crypto/tls itself stay there"
	case inspect.Twice:
		return unchanged + ", and " + library + ": two copies, each with its own settings"
	}
	return p.Engine
}

func buildText(p *inspect.Program) string {
	words := []string{p.GoVersion, p.GOOS + "/" + p.GOARCH}
	if p.GoVersion == "" {
		words[0] = "unknown version, since the build information was removed"
	}
	if p.GOOS == "" {
		words = words[:1]
	}
	if p.CGO != nil {
		words = append(words, map[bool]string{true: "with cgo", false: "without cgo"}[*p.CGO])
	}
	for _, w := range []struct {
		has  bool
		word string
	}{
		{p.Static, "linked statically"}, {p.PIE, "PIE"}, {p.Race, "with the race detector"},
		{len(p.Tags) > 0, "tags " + strings.Join(p.Tags, ",")},
	} {
		if w.has {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

func writeModules(w io.Writer, modules []inspect.Module) {
	for _, m := range modules {
		writeIndented(w, 2, moduleText(m))
	}
}

func moduleText(m inspect.Module) string {
	text := strings.TrimSpace(m.Path + " " + m.Version)
	if m.Replaced != "" {
		text += " => " + m.Replaced
	}
	return text
}

func writeProcess(w io.Writer, r *inspectedProcess) {
	writeLine(w, "process", strings.TrimSpace(fmt.Sprintf("%d %s", r.PID, r.Name)))
	if r.Report != nil {
		writeVerdict(w, r.Verdict)
		writeReport(w, r.Report)
		return
	}
	writeLine(w, "no answer", r.Silent)
	if r.Remedy != "" {
		writeLine(w, "", "Do: "+r.Remedy+".")
	}
	fmt.Fprintln(w, "\nIts program:")
	writeVerdict(w, r.Verdict)
	writeProgram(w, r.Program)
}

// writeReport writes a process's answer.
func writeReport(w io.Writer, r *inspect.Report) {
	writeLine(w, "ossl", r.Version)
	writeLine(w, "mode", r.Mode)
	if r.OpenSSL.Version == "" {
		writeLine(w, "OpenSSL", "not loaded")
	} else {
		writeLine(w, "OpenSSL", r.OpenSSL.Version)
		writeLine(w, "libssl", r.OpenSSL.Path)
	}
	if r.OpenSSL.FIPS == "" {
		writeLine(w, "FIPS mode", "no")
	} else {
		writeLine(w, "FIPS mode", "by "+r.OpenSSL.FIPS)
	}
	subject := "settings"
	for _, s := range r.Settings {
		text := s.Name + "=" + s.Value
		if s.Refused != "" {
			text += ", refused: " + s.Refused
		}
		writeLine(w, subject, text)
		subject = ""
	}
	subject = "connections"
	for _, engine := range []string{"ossl", "crypto/tls"} {
		var counts []string
		for _, c := range r.Connections {
			if c.Engine == engine {
				counts = append(counts, fmt.Sprintf("%s %d", c.Role, c.Count))
			}
		}
		if counts != nil {
			writeLine(w, subject, "on "+engine+": "+strings.Join(counts, ", "))
			subject = ""
		}
	}
	writeReasons(w, "because", r.Left)
	writeReasons(w, "refused", r.Refused)
	writeLine(w, "records", fmt.Sprintf("%d connections sealed by ossl (%d by the kernel), %d by libssl", r.Records.Direct,
		r.Records.Kernel, r.Records.Libssl))
	writeLine(w, "contexts", fmt.Sprintf("%d compiled, %d in use", r.Contexts.Compiled, r.Contexts.InUse))
	writeLine(w, "asked", fmt.Sprintf("%d answers before, %d refusals to other users, %d failures", r.Asked.Answered,
		r.Asked.Refused, r.Asked.Failed))
}

func writeReasons(w io.Writer, subject string, reasons []inspect.Reason) {
	for _, r := range reasons {
		writeLine(w, subject, fmt.Sprintf("%d: %s", r.Count, r.Text))
		subject = ""
	}
}
