// Ratios reads the output of "go test -bench" of package bench and writes the ratios of ossl to
// crypto/tls, with the targets, as Markdown tables.
//
//	go test -bench . -count 10 | ratios
//	ratios FILE...
//
// With -adapters it reads the output of the benchmarks of libp2ptls, httptls and grpctls instead,
// and compares their pairings of server and client.
//
// Package rounds computes the ratios and their ranges: the i-th line of a benchmark is of the i-th
// round. A floor is the ratio of a lower bound for any binding, if that was measured in the same
// rounds: the same handshake in C alone, or the same data over TCP without TLS.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	minimum := flag.Int("min", 1, "fail if a benchmark has fewer `rounds` than this")
	adapters := flag.Bool("adapters", false, "the benchmarks are those of the adapters")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: ratios [-min rounds] [-adapters] [file ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *minimum, *adapters); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, files []string, minimum int, adapters bool) error {
	results := newResults()
	results.adapters = adapters
	if len(files) == 0 {
		if err := results.read(os.Stdin); err != nil {
			return err
		}
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = errors.Join(results.read(f), f.Close())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(results.names) == 0 {
		return errors.New("no benchmarks in the input")
	}
	for _, name := range results.names {
		if n := results.rounds(name); n < minimum {
			return fmt.Errorf("%s has %d rounds, not %d", name, n, minimum)
		}
	}
	if err := results.checkFloors(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if adapters {
		results.writeAdapters(out)
	} else {
		results.write(out)
	}
	return out.Flush()
}
