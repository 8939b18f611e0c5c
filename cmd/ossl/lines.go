package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Output is for terminals of textWidth columns. Subjects have the width that HostPolicy.String
// gives them.
const textWidth, subjectWidth = 100, 16

// writeLine writes text beside its subject, in several lines if it has too many words for one.
func writeLine(w io.Writer, subject, text string) {
	for i, line := range wrap(printable(text), textWidth-subjectWidth) {
		if i > 0 {
			subject = ""
		}
		fmt.Fprintf(w, "%-*s%s\n", subjectWidth, subject, line)
	}
}

// printable replaces the characters that could control a terminal, except the ends of lines: texts
// come from configurations and from the logs of servers too.
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
		for line = strings.TrimRight(line, " "); utf8.RuneCountInString(line) > width; {
			at := breakOf(line, width)
			if at < 0 {
				break
			}
			lines = append(lines, strings.TrimRight(line[:at], " "))
			line = strings.TrimLeft(line[at:], " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// breakOf returns the position of the last space behind a word of line's first width characters, or
// else of the first one after them, or -1.
func breakOf(line string, width int) int {
	at, characters, word := -1, 0, false
	for i, r := range line {
		switch {
		case r != ' ':
			word = true
		case word && (characters <= width || at < 0):
			at = i
		}
		characters++
	}
	return at
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
