package chain

// ForgetSystemRoots forgets the last look at the system's roots.
func ForgetSystemRoots() { systemTrust.last.Store(nil) }

// SystemRootsLoaded reports whether there was a look since.
func SystemRootsLoaded() bool { return systemTrust.last.Load() != nil }
