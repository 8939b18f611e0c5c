// Package report writes the reports of audits: as text for terminals, JSON, SARIF for code scanning,
// JUnit for continuous integration, Markdown, and a page of HTML.
package report

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit"
)

// A Document is one or more reports. Its JSON is described by docs/check.schema.json.
type Document struct {
	Version int             `json:"version"` // of this format: 1. New keys may come; none goes or changes its type
	Tool    string          `json:"tool"`    // the program: "ossl v0.1.0"
	Written time.Time       `json:"written"`
	Reports []*audit.Report `json:"reports"`
}

// Options are the options of [Write].
type Options struct {
	Colour  bool // text has colours
	Brief   bool // text is one screen for each report
	Verbose bool // text has all facts and rules
	Width   int  // of text, in columns: from 80 to 100, which is the default
}

// writers are the formats.
var writers = map[string]func(io.Writer, *Document, Options) error{
	"text": writeText, "json": writeJSON, "sarif": writeSARIF,
	"junit": writeJUnit, "markdown": writeMarkdown, "html": writeHTML,
}

// Formats returns the names of the formats.
func Formats() (names []string) {
	for name := range writers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Write writes a document in a format of [Formats].
func Write(w io.Writer, d *Document, format string, options Options) error {
	write, ok := writers[format]
	if !ok {
		return fmt.Errorf("report: unknown format %q", format)
	}
	return write(w, d, options)
}
