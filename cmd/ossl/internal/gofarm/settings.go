package gofarm

import "github.com/ossl-go/ossl/internal/unchanged/settings"

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
