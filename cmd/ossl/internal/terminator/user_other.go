//go:build !unix

package terminator

import "errors"

// checkUser returns an error if this system can't change the user of a process.
func checkUser(name string) error { return become(name) }

func giveTo(name, _ string) error { return become(name) }

func become(name string) error {
	if name == "" {
		return nil
	}
	return errors.New("user: a process can't change its user on this system")
}
