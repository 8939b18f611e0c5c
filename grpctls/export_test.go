package grpctls

// EnforcesALPN is what the value of GRPC_ENFORCE_ALPN_ENABLED says.
var EnforcesALPN = enforcesALPN

// SetEnforceALPN is as if the program had started with another value.
func SetEnforceALPN(enforce bool) (restore func()) {
	before := enforceALPN
	enforceALPN = enforce
	return func() { enforceALPN = before }
}
