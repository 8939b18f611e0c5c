//go:build !linux

package terminator

import "os"

// CommandLine returns the arguments with which the program was executed.
func CommandLine() []string { return os.Args }

func systemFolders() []string { return nil }

func programFile() (string, error) { return "", errNoLandlock }

func landlockVersion() (abi int, err error) { return 0, errNoLandlock }

func timersAreDue() bool { return false }

func privileged() bool { return false }

func (*Inherited) executeAgain(*confinement, *domain, func() error) error { return nil }
