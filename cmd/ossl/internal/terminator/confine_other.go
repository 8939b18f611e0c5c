//go:build !linux

package terminator

func systemFolders() []string { return nil }

func restrict(*domain) (abi int, err error) { return 0, errNoLandlock }
