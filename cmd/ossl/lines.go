package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Output is for terminals of textWidth columns: main sets it to the width of the terminal. Subjects have
// the width that HostPolicy.String gives them.
var textWidth = widest

const narrowest, widest, subjectWidth = 80, 100, 16

// widthOf returns the width for text that is written to w.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return widest
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return widest
	}
	return min(max(columns, narrowest), widest)
}

// narrow wraps the lines of a text that are longer than width. A line that has a second column, or that
// belongs to a paragraph without indentation, is wrapped together with the lines that continue it.
func narrow(text string, width int) string {
	var out []string
	lines := strings.Split(text, "\n")
	for len(lines) > 0 {
		indent, column := columnsOf(lines[0])
		n, long := 1, utf8.RuneCountInString(lines[0]) > width
		words := strings.Fields(lines[0][column:])
		for (column > indent || column == 0) && len(words) > 0 && n < len(lines) {
			i, c := columnsOf(lines[n])
			if i != column || c != column || strings.TrimSpace(lines[n]) == "" {
				break
			}
			long = long || utf8.RuneCountInString(lines[n]) > width
			words = append(words, strings.Fields(lines[n])...)
			n++
		}
		if !long {
			out = append(out, lines[:n]...)
		} else {
			start := lines[0][:column]
			for _, line := range wrap(strings.Join(words, " "), width-column) {
				out = append(out, start+line)
				start = strings.Repeat(" ", column)
			}
		}
		lines = lines[n:]
	}
	return strings.Join(out, "\n")
}

// columnsOf returns the indentation of a line, and the beginning of its second column, which two spaces
// separate from the first, or the indentation if there is none.
func columnsOf(line string) (indent, column int) {
	indent = len(line) - len(strings.TrimLeft(line, " "))
	gap := strings.Index(line[indent:], "  ")
	if gap < 0 {
		return indent, indent
	}
	rest := line[indent+gap:]
	return indent, indent + gap + len(rest) - len(strings.TrimLeft(rest, " "))
}

// writeLine writes text next to its subject, in several lines if it has too many words for one.
func writeLine(w io.Writer, subject, text string) {
	for i, line := range wrap(printable(text), textWidth-subjectWidth) {
		if i > 0 {
			subject = ""
		}
		fmt.Fprintf(w, "%-*s%s\n", subjectWidth, subject, line)
	}
}

// printable replaces the characters that could control a terminal, except newlines: texts come from
// configurations and from the logs of servers too.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}

// wrap splits text into lines of at most width characters, unless a single word has more. Runs of
// spaces in a line stay.
func wrap(text string, width int) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " ")
		for at := breakOf(line, width); at >= 0; at = breakOf(line, width) {
			lines = append(lines, strings.TrimRight(line[:at], " "))
			line = strings.TrimLeft(line[at:], " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// breakOf returns the position of the last space behind a word of line's first width characters, or
// else of the first one after them, or -1, also if the line has at most width characters.
func breakOf(line string, width int) int {
	at, characters, word := -1, 0, false
	for i, r := range line {
		if characters > width && at >= 0 { // the rest is the next calls' business
			return at
		}
		switch {
		case r != ' ':
			word = true
		case word && (characters <= width || at < 0):
			at = i
		}
		characters++
	}
	if characters <= width {
		return -1
	}
	return at
}

// cut returns a text without the characters after the first 2,000.
func cut(text string) string {
	characters := 0
	for i := range text {
		if characters == 2000 {
			return text[:i] + "…"
		}
		characters++
	}
	return text
}

// writeFIPS writes whether FIPS mode is required, and the module that is in force, if it is.
func writeFIPS(w io.Writer, lib library) {
	switch {
	case lib.FIPSUnknown != "":
		writeLine(w, "FIPS mode", "unknown whether it is required; no connection can be made")
	case lib.FIPSRequired == "":
		writeLine(w, "FIPS mode", "not asked for")
	case lib.FIPSModule == "":
		writeLine(w, "FIPS mode", lib.FIPSRequired)
		writeLine(w, "", "not in force: no connection can be made")
	default:
		writeLine(w, "FIPS mode", lib.FIPSRequired)
		writeLine(w, "", "by "+lib.FIPSModule)
	}
}
