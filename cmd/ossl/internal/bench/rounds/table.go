package rounds

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes a table, after an empty line, unless it has no rows. The first column has
// words, the others figures.
func WriteMarkdown(w io.Writer, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n| %s |\n|---|%s\n", strings.Join(head, " | "), strings.Repeat("--:|", len(head)-1))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}

// WriteTSV writes a table for other programs.
func WriteTSV(w io.Writer, head []string, rows [][]string) {
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
}
