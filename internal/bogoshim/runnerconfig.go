package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossl-go/ossl"
)

// A runnerConfig is the runner's configuration for a shim. The runner ignores unknown fields.
type runnerConfig struct {
	Comment       string `json:",omitempty"`
	DisabledTests map[string]string
	Unimplemented map[string]string   `json:",omitempty"` // ours: reasons for features that are unimplemented
	ErrorMap      map[string][]string `json:",omitempty"`
	AllCurves     []int               `json:",omitempty"`
}

// readConfig reads one file. Unknown fields and duplicate keys are errors, because the runner would
// ignore them.
func readConfig(name string) (*runnerConfig, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := checkDuplicates(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	config := new(runnerConfig)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(config); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return config, nil
}

// checkDuplicates returns an error for an object with a duplicate key, of which package json takes
// the last.
func checkDuplicates(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var value func() error
	value = func() error {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		keys := map[json.Token]bool{}
		switch token {
		case json.Delim('{'), json.Delim('['):
			for decoder.More() {
				if token == json.Delim('{') {
					key, err := decoder.Token()
					if err != nil {
						return err
					}
					if keys[key] {
						return fmt.Errorf("duplicate key %q", key)
					}
					keys[key] = true
				}
				if err := value(); err != nil {
					return err
				}
			}
			_, err = decoder.Token()
		}
		return err
	}
	return value()
}

// loadConfig reads config.json in folder dir, and adds config-NAME.json for each of the names.
func loadConfig(dir string, names ...string) (*runnerConfig, error) {
	config, err := readConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		own, err := readConfig(filepath.Join(dir, "config-"+name+".json"))
		if err != nil {
			return nil, err
		}
		maps.Copy(config.DisabledTests, own.DisabledTests)
		maps.Copy(config.ErrorMap, own.ErrorMap)
		if own.AllCurves != nil {
			config.AllCurves = own.AllCurves
		}
	}
	return config, nil
}

// configNames returns the names of the files for an OpenSSL version: files that begin with
// "before-" apply before a version, and files that begin with "from-" apply from a version on.
func configNames(dir, version string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "config-*-*.json"))
	if err != nil {
		return nil, err
	}
	own, err := minorVersion(version)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "config-"), ".json")
		word, bound, _ := strings.Cut(name, "-")
		limit, err := minorVersion(bound)
		if err != nil || word != "before" && word != "from" {
			return nil, fmt.Errorf("%s: neither before nor from a version", file)
		}
		if (slices.Compare(own[:], limit[:]) < 0) == (word == "before") {
			names = append(names, name)
		}
	}
	return names, nil
}

// minorVersion returns the first two numbers of a version.
func minorVersion(version string) (numbers [2]int, err error) {
	if _, err = fmt.Sscanf(version, "%d.%d", &numbers[0], &numbers[1]); err != nil {
		err = fmt.Errorf("version %q: %w", version, err)
	}
	return numbers, err
}

// group returns the part of a reason before the colon.
func group(reason string) string {
	group, _, _ := strings.Cut(reason, ":")
	return group
}

// printRunnerConfig prints the configuration for the OpenSSL in use: -runner-config DIR [-cache |
// -libssl] [GROUP…]. It omits the tests that are disabled for a reason in these groups. -cache is
// for shims with -with-session-cache, -libssl for shims that use libssl's record path.
func printRunnerConfig(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: bogoshim -runner-config DIR [-cache | -libssl] [GROUP…]")
	}
	library, err := ossl.Library()
	if err != nil {
		return err
	}
	names, err := configNames(args[0], library.Version)
	if err != nil {
		return err
	}
	enabled := args[1:]
	switch {
	case len(enabled) > 0 && enabled[0] == "-cache":
		names, enabled = append(names, "cache"), append(enabled[1:], "session IDs")
	case len(enabled) > 0 && enabled[0] == "-libssl":
		names, enabled = append(names, "libssl"), enabled[1:]
	}
	config, err := loadConfig(args[0], names...)
	if err != nil {
		return err
	}
	maps.DeleteFunc(config.DisabledTests, func(_, reason string) bool { return slices.Contains(enabled, group(reason)) })
	config.Comment = "for " + library.VersionText
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "\t")
	return encoder.Encode(config)
}

// explain counts the causes in a log of -unimplemented-log by reason: -explain DIR LOG. A cause
// without a reason is an error.
func explain(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: bogoshim -explain DIR LOG")
	}
	config, err := readConfig(filepath.Join(args[0], "config.json"))
	if err != nil {
		return err
	}
	log, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	counts, unknown := map[string]int{}, map[string]bool{}
	for cause := range strings.Lines(string(log)) {
		cause = strings.TrimSpace(cause)
		if reason := config.reason(cause); reason != "" {
			counts[reason]++
		} else {
			unknown[cause] = true
		}
	}
	byCount := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for _, reason := range byCount {
		fmt.Printf("%6d  %s\n", counts[reason], reason)
	}
	if len(unknown) > 0 {
		return fmt.Errorf("config.json has no reason under Unimplemented for %q", slices.Sorted(maps.Keys(unknown)))
	}
	return nil
}

// reason returns the reason for a cause, or "".
func (c *runnerConfig) reason(cause string) string {
	flat := strings.ReplaceAll(cause, "/", " ") // path.Match's * stops at a slash
	for _, pattern := range slices.Sorted(maps.Keys(c.Unimplemented)) {
		if ok, _ := path.Match(pattern, flat); ok {
			return c.Unimplemented[pattern]
		}
	}
	return ""
}
