package terminator

import (
	"errors"
	"fmt"
	"strings"
)

// DefaultLandlock is the commands' default of Config.Landlock.
const DefaultLandlock = "auto"

// A confinement is the part of a plan that is about the access that the process keeps.
type confinement struct {
	landlock string   // as in the Config
	provided string   // the scheme of the first URI that isn't of a file, or ""
	files    []string // to read
	roots    []string // of sites
	folders  []string // further ones to read, as the Config names them
	places   []place  // to listen on
	acme     *acmePlan
	connect  bool   // TCP connections are made
	engine   string // whose own files are read
	text     []byte // of the Config's file
}

// confinement returns it unchecked: see check.
func (c *Config) confinement(places []place, acme *acmePlan) *confinement {
	p := &confinement{landlock: c.Landlock, folders: c.LandlockRead, places: places, acme: acme,
		connect: c.Redis != "" || acme != nil, engine: c.Engine, text: c.text}
	for _, f := range c.namedFiles() {
		if path, isFile := filePath(f.name); isFile {
			p.files = append(p.files, path)
		} else if f.provided && p.provided == "" { // the rest of the URI may have a PIN
			p.provided, _, _ = strings.Cut(f.name, ":")
		}
	}
	for i := range c.Sites {
		if root := c.Sites[i].Root; root != "" {
			p.roots = append(p.roots, root)
		} else {
			p.connect = true
		}
	}
	return p
}

// check returns an error if the settings of Landlock contradict others.
func (p *confinement) check() error {
	switch p.landlock {
	case "", "off":
		if len(p.folders) > 0 {
			return errors.New("landlock-read: landlock is off")
		}
	case "auto":
	case "on":
		if p.provided != "" {
			return fmt.Errorf("landlock can't be on: keys of scheme %s need an OpenSSL provider, which may open any file and port",
				p.provided)
		}
	default:
		return fmt.Errorf("landlock %q is none of auto, on, off", p.landlock)
	}
	return nil
}

// errNoLandlock means that this kernel has no Landlock, or that a sandbox forbids it.
var errNoLandlock = errors.New("this kernel doesn't have it, or a sandbox forbids it")

// landlockOff is the reason why a process isn't confined whose configuration doesn't want it.
const landlockOff = "off"

func (p *confinement) off() bool { return p.landlock == "off" || p.landlock == "" }
