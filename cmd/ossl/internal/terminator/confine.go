package terminator

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// DefaultLandlock is the commands' default of Config.Landlock.
const DefaultLandlock = "auto"

// errNoLandlock means that this kernel has no Landlock, or that a sandbox forbids it.
var errNoLandlock = errors.New("this kernel doesn't have it, or a sandbox forbids it")

// checkLandlock returns an error if the settings of Landlock contradict others.
func (c *Config) checkLandlock() error {
	switch c.Landlock {
	case "", "off":
		if len(c.LandlockRead) > 0 {
			return errors.New("landlock-read: landlock is off")
		}
	case "auto":
	case "on":
		if scheme := c.provided(); scheme != "" {
			return fmt.Errorf("landlock can't be on: the provider of %s: may need any file, socket and port", scheme)
		}
	default:
		return fmt.Errorf("landlock %q is none of auto, on, off", c.Landlock)
	}
	return nil
}

// confine gives up all access that a configuration doesn't need, for good. It returns the domain,
// or nil and the reason why the process isn't confined. former is the domain of the process that
// handed its sockets over, or nil.
func confine(c *Config, former *domain, log *slog.Logger) (d *domain, reason string, err error) {
	scheme := c.provided()
	switch {
	case former != nil:
		return former, "", nil // inherited; the kernel bounds the number of domains within each other
	case c.Landlock == "off" || c.Landlock == "":
		return nil, "off", nil
	case scheme != "":
		return nil, "not used: the provider of " + scheme + ": may need any file, socket and port", nil
	}
	if d, err = needs(c); err != nil {
		return nil, "", err
	}
	own := slices.Concat(d.Read, spare(c))
	d.Read = slices.Concat(own, systemFolders())
	for _, list := range []*[]string{&d.Read, &d.Sockets} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	d.ABI, err = restrict(d)
	if errors.Is(err, errNoLandlock) && c.Landlock == "auto" {
		return nil, "not used: " + err.Error(), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("landlock: %w", err)
	}
	if slices.Contains(own, "/") {
		log.Warn("landlock: all files can be read, because one that the configuration names is in the folder /")
	}
	return d, "", nil
}
