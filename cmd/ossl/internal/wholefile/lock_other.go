//go:build !unix

package wholefile

// Lock locks nothing on this system.
func Lock(string) (unlock func()) { return func() {} }

// TryLock locks nothing on this system.
func TryLock(string) (unlock func(), locked bool, err error) { return func() {}, true, nil }
