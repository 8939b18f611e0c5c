package libssl

// HasGroupName reports whether the library has a group of this name, which may be one that ossl
// does not use.
func HasGroupName(name string) bool {
	has, err := ask([]string{name}, nil, false)
	return err == nil && has[0]
}
