package libssl

// HasGroupName reports whether the library has a group of this name, which may be one that ossl
// does not use.
func HasGroupName(name string) bool { return ask([]string{name}, nil, false)[0] }
