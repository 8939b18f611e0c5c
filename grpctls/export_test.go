package grpctls

// EnforcesALPN returns the meaning of a value of GRPC_ENFORCE_ALPN_ENABLED.
var EnforcesALPN = enforcesALPN

// SetEnforceALPN acts as if the program had started with another value.
func SetEnforceALPN(enforce bool) (restore func()) {
	before := enforceALPN
	enforceALPN = enforce
	return func() { enforceALPN = before }
}
