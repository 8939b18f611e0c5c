package measure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// A Report is the result of measurements.
type Report struct {
	Date    time.Time `json:"date"`
	Command string    `json:"command"`
	Machine Machine   `json:"machine"`
	OpenSSL string    `json:"openssl"` // such as "OpenSSL 3.5.9 29 Sep 2026"
	Libssl  string    `json:"libssl"`  // its path
	FIPS    bool      `json:"fips"`
	Rounds  int       `json:"rounds"`
	Engines []string  `json:"engines"`
	Missing []string  `json:"missing"` // rows that this host can't do, with the reason
	Rows    []*Row    `json:"-"`
}

// Section returns the rows of a section.
func (r *Report) Section(name string) (rows []*Row) {
	for _, row := range r.Rows {
		if row.Section == name {
			rows = append(rows, row)
		}
	}
	return rows
}

// Legend defines the ratios and their ranges.
func (r *Report) Legend() string { return rounds.Legend(r.Rounds) }

// A rowResult is a row in JSON.
type rowResult struct {
	Section   string `json:"section"`
	Name      string `json:"name"`
	Benchmark string `json:"benchmark"`
	Unit      Unit   `json:"unit"`
	Bytes     int    `json:"bytes,omitempty"`
	// Figures has the medians of the engines, in their order; Rounds all of them.
	Figures []float64   `json:"figures"`
	Rounds  [][]float64 `json:"rounds"`
	// Ratios compare each engine except the first one with that.
	Ratios []Comparison `json:"ratios"`
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	type report Report
	result := struct {
		*report
		Rows []rowResult `json:"rows"`
	}{report: (*report)(r), Rows: []rowResult{}}
	if result.Missing == nil {
		result.Missing = []string{}
	}
	for _, row := range r.Rows {
		one := rowResult{Section: row.Section, Name: row.Name, Benchmark: row.Benchmark, Unit: row.Unit, Bytes: row.Bytes,
			Rounds: row.Figures}
		for i := range r.Engines {
			one.Figures = append(one.Figures, row.Median(i))
			if i > 0 {
				one.Ratios = append(one.Ratios, row.Compare(i, 0))
			}
		}
		result.Rows = append(result.Rows, one)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(result)
}

// WriteBenchstat writes each round as a line of Go's benchmark format, with the engine as a
// configuration key: benchstat -col engine.
func (r *Report) WriteBenchstat(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "cpu: %s\nopenssl: %s\n", r.Machine.Processor, r.OpenSSL)
	for i, engine := range r.Engines {
		fmt.Fprintf(b, "engine: %s\n", strings.ReplaceAll(engine, " ", "-"))
		for _, row := range r.Rows {
			for _, figure := range row.Figures[i] {
				unit := "ns/op"
				if row.Unit == Memory {
					unit = "bytes/conn"
				}
				fmt.Fprintf(b, "Benchmark%s-%d 1 %.0f %s", row.Benchmark, r.Machine.CPUs, figure, unit)
				if row.Unit == Throughput {
					fmt.Fprintf(b, " %.2f MB/s", float64(row.Bytes)/figure*1e3)
				}
				fmt.Fprintln(b)
			}
		}
	}
	return b.Flush()
}
