package libssl

// HasGroupName reports whether the library has a group of this name, which may be one that ossl
// does not use.
func HasGroupName(name string) bool {
	has, err := ask([]string{name}, nil, false)
	return err == nil && has[0]
}

// TrafficSecrets returns the state of a connection with TLS 1.3 traffic secrets; a nil secret makes a side
// unusable.
func TrafficSecrets(suite uint16, read, write []byte) *Secrets {
	s := &Secrets{Suite: suite}
	if copy(s.Read[:], read) > 0 {
		s.Sides |= 1
	}
	if copy(s.Write[:], write) > 0 {
		s.Sides |= 2
	}
	return s
}
