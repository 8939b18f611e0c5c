// Package doctor examines the speed and the safety of TLS on this host: its OpenSSL, its processor,
// its kernel, and its running programs.
package doctor

import (
	"context"
	"path/filepath"
)

// A State is the state of a part of the host.
type State string

// The states.
const (
	OK      State = "ok"
	Advice  State = "advice"  // it works, and could be better
	Problem State = "problem" // it doesn't work, or isn't safe
	Unknown State = "unknown" // it couldn't be found out, or doesn't exist on this system
)

// An Item is the finding on one part of the host, and the advice for it.
type Item struct {
	ID    string   `json:"id"` // stable: "library", "kernel-tls"
	Title string   `json:"title"`
	State State    `json:"state"`
	Found []string `json:"found"` // observations: sentences, or "name: value"
	Do    string   `json:"do"`    // the advice, or "nothing"
	// Speed has the measurements of the item "ciphers".
	Speed []Speed `json:"speed,omitempty"`
	// Ratios compare the ciphers of "ciphers" in full records.
	Ratios []Ratio `json:"ratios,omitempty"`
	// Libraries has the libraries of the item "libraries", and Processes has the processes of "processes".
	Libraries []Found   `json:"libraries,omitempty"`
	Processes []Process `json:"processes,omitempty"`
}

// A Report is the result of [Examine].
type Report struct {
	Items []Item `json:"items"`
}

// Worst returns the worst state of the items: Problem, Advice or OK. Unknown counts as OK.
func (r *Report) Worst() State {
	worst := OK
	for _, item := range r.Items {
		switch {
		case item.State == Problem:
			return Problem
		case item.State == Advice:
			worst = Advice
		}
	}
	return worst
}

// Options are the options of [Examine]. The zero value is usable.
type Options struct {
	// Root is the folder whose proc, sys and usr are read, "/" if empty. The library in use, and the
	// measurements, are always this host's.
	Root string
	// Try loads another libssl and returns its version, or why it is refused. A process has one
	// OpenSSL, so Try must start a process. If it is nil, other libraries are listed and not tried.
	Try func(ctx context.Context, path string) (version string, err error)
	// NoSpeed leaves the measurements out, which take about a second.
	NoSpeed bool
	// Progress is called with the ID of each item before it is examined.
	Progress func(id string)
}

func (o *Options) path(name string) string {
	root := o.Root
	if root == "" {
		root = "/"
	}
	return filepath.Join(root, name)
}

// Examine examines this host. If the context is done, it returns the items so far and the context's
// error.
func Examine(ctx context.Context, options Options) (*Report, error) {
	r := &Report{Items: []Item{}}
	for _, part := range []struct {
		id, title string
		examine   func(context.Context, *Options, *Item)
	}{
		{"library", "OpenSSL in use", library},
		{"libraries", "Other OpenSSL libraries", libraries},
		{"slow-spots", "Known slow spots of this OpenSSL", slowSpots},
		{"policy", "The host's policy for TLS", hostPolicy},
		{"fips", "FIPS mode", fips},
		{"kernel-tls", "Kernel TLS", kernelTLS},
		{"processor", "Processor", processor},
		{"ciphers", "AES-GCM and ChaCha20-Poly1305", ciphers},
		{"limits", "Limits of processes", limits},
		{"sysctl", "Settings of the kernel", sysctls},
		{"processes", "Processes with a replaced OpenSSL", processes},
	} {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if part.id == "ciphers" && options.NoSpeed {
			continue
		}
		if options.Progress != nil {
			options.Progress(part.id)
		}
		item := Item{ID: part.id, Title: part.title, State: OK, Found: []string{}, Do: "nothing"}
		part.examine(ctx, &options, &item)
		if err := ctx.Err(); err != nil {
			return r, err
		}
		r.Items = append(r.Items, item)
	}
	return r, nil
}

func (item *Item) find(text string) { item.Found = append(item.Found, text) }

// judge makes the item's state worse, and adds advice.
func (item *Item) judge(s State, do string) {
	rank := map[State]int{OK: 0, Unknown: 1, Advice: 2, Problem: 3}
	if rank[s] > rank[item.State] {
		item.State = s
	}
	if item.Do == "nothing" {
		item.Do = do
	} else if do != "" {
		item.Do += "; " + do
	}
}
