package main

import "github.com/ossl-go/ossl/cmd/ossl/internal/measure"

// A demoRow is one row of the table.
type demoRow struct {
	Name string `json:"name"`
	// Benchmark names the benchmark of package bench that measures the same.
	Benchmark string       `json:"benchmark"`
	Unit      measure.Unit `json:"unit"`

	// Medians of the rounds, in nanoseconds per operation.
	Std  float64 `json:"std_ns"`
	OSSL float64 `json:"ossl_ns"`
	// The ratio is OSSL divided by Std: if it is below 1, ossl is faster.
	measure.Comparison
	// Bytes is the number of bytes that an operation moves, if Unit is throughput.
	Bytes int `json:"bytes,omitempty"`

	row *measure.Row
}

// demoRowOf returns the table's row for a measurement of crypto/tls and ossl.
func demoRowOf(row *measure.Row) demoRow {
	return demoRow{row.Name, row.Benchmark, row.Unit, row.Median(0), row.Median(1), row.Compare(1, 0), row.Bytes, row}
}
