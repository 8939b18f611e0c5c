package gofarm

import (
	"fmt"
	"io/fs"

	"github.com/ossl-go/ossl/internal/unchanged/settings"
)

// ReadSettings reads a file of settings for Options.
func ReadSettings(name string) ([]byte, error) { return settings.ReadForBuild(name) }

// checkSettings returns an error for settings that can't be given at the build.
func checkSettings(text []byte) error {
	f, err := settings.Parse(text)
	if err != nil {
		return err
	}
	return f.CheckBuilt()
}

// checkOwner returns an error if another user could have put a folder there, or a file into it. stat is os.Stat
// or os.Lstat.
func checkOwner(dir string, stat func(string) (fs.FileInfo, error)) error {
	info, err := stat(dir)
	if err != nil {
		return err
	}
	if err := settings.CheckOwner(info); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
