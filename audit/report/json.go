package report

import "io"

func writeJSON(w io.Writer, d *Document, _ Options) error { return encodeJSON(w, d) }
