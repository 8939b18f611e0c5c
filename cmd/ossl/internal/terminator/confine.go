package terminator

import (
	"errors"
	"fmt"
)

// DefaultLandlock is the commands' default of Config.Landlock.
const DefaultLandlock = "auto"

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
			return fmt.Errorf("landlock can't be on: keys of scheme %s need an OpenSSL provider, which may open any file and port", scheme)
		}
	default:
		return fmt.Errorf("landlock %q is none of auto, on, off", c.Landlock)
	}
	return nil
}

// errNoLandlock means that this kernel has no Landlock, or that a sandbox forbids it.
var errNoLandlock = errors.New("this kernel doesn't have it, or a sandbox forbids it")

// landlockOff is the reason why a process isn't confined whose configuration doesn't want it.
const landlockOff = "off"

func (c *Config) landlockOff() bool { return c.Landlock == "off" || c.Landlock == "" }
