package report

import (
	"encoding/json"
	"io"
)

func writeJSON(w io.Writer, d *Document, _ Options) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}
