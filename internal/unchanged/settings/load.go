package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Env names the environment variable with the file of a process's settings.
const Env = "OSSL_SETTINGS"

// built is the source of the settings that were given at the build.
const built = "the settings that this program was built with"

// Loaded are the settings of a process.
type Loaded struct {
	*File
	Source string // for errors
	Note   string // for the user, or ""
}

// Load returns the settings of a process: those in the file with a name, which the environment has given,
// or those that were given at the build. privileged means that the process has more rights than the user
// who has set the environment. Its errors are an [*Error].
func Load(atBuild, name string, privileged bool) (*Loaded, error) {
	l := &Loaded{File: &File{Format: 1}, Source: built}
	if atBuild != "" {
		f, err := Parse([]byte(atBuild))
		if err != nil {
			return nil, from(built, err)
		}
		l.File = f
	}
	switch {
	case name == "":
		return l, nil
	case privileged:
		l.Note = Env + " is ignored: this program has more rights than the user who started it"
		return l, nil
	case l.Locked:
		return nil, &Error{Source: Env, Reason: `this program was built with settings that are locked: unset the variable, ` +
			`or build the program without "locked"`}
	}
	source := Env + "=" + name
	b, err := Read(name)
	if err != nil {
		return nil, from(source, err)
	}
	f, err := Parse(b)
	switch {
	case err != nil:
		return nil, from(source, err)
	case f.Locked:
		return nil, &Error{Source: source, Key: "locked", Reason: `is for settings that are given to "ossl go": leave it out`}
	case l.FIPS && !f.FIPS: // nothing lifts FIPS mode
		f.FIPS = true
		if err := f.CheckFIPS("by " + built); err != nil {
			return nil, from(source, err)
		}
	}
	return &Loaded{File: f, Source: source}, nil
}

// ReadForBuild reads a file of settings that are given at the build. Its errors are an [*Error].
func ReadForBuild(name string) ([]byte, error) {
	source := "--settings " + name
	b, err := Read(name)
	if err != nil {
		return nil, from(source, err)
	}
	f, err := Parse(b)
	if err == nil {
		err = f.CheckBuilt()
	}
	if err != nil {
		return nil, from(source, err)
	}
	return b, nil
}

// from adds the source to an error.
func from(source string, err error) error {
	e := &Error{Reason: err.Error()}
	errors.As(err, &e)
	e.Source = source
	return e
}

// Read reads a file of settings, which must not be another user's, except root's, and only its owner may
// write.
func Read(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without waiting for the writer of a pipe
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	info, err := f.Stat() // of the open file, not of another that may have its name now
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("is not a regular file, but %s", kindOf(info.Mode()))
	}
	if err := CheckOwner(info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "a device or a socket"
}
