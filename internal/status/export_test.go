package status

// Bound is the report as it is sent.
func (r Report) Bound() Report { return r.bound() }

// MaxBytes bounds the JSON of a report.
const MaxBytes = maxBytes
